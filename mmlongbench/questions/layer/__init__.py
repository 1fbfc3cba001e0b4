"""Questions that are exact by construction: they are read from tables in the layer of PDFs, and no model is asked.

In the order in which a document becomes questions: `page.py` reads the pages, `words.py` reads tables from words alone,
`facts.py` names tables and confirms every cell with PyMuPDF's grids, `kinds.py` asks, `checks.py` refuses, `make.py`
chooses and writes.
"""
