"""Questions about documents: made from the layer of a PDF or by models, checked, reviewed, and written as a table.

`question.py` has the typed lines, `table.py` the folder that holds them. `layer/` makes questions without a model,
`writing/` with models; `review.py` is the sheet for people, and what they decided.
"""
