"""Questions that are exact by construction: they are read from tables in the layer of PDFs, and no model is asked.

In the order in which a document becomes questions: `page.py` reads the pages, `words.py` reads tables from words alone,
`grids.py` confirms every cell with PyMuPDF's grids, `facts.py` names tables and joins all of it, `kinds.py` asks,
`checks.py` refuses, `make.py` chooses and writes.
"""
