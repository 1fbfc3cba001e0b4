"""Questions about documents: made from the layer of a PDF or by models, checked, reviewed, and written as a table.

`table.py` has the typed lines and the folder that holds them. `layer/` makes questions without a model, `writing/` with
models; `review.py` is the sheet for people, and what they decided.
"""
