"""Questions that are exact by construction: they are read from the layer of PDFs, and no model is asked.

In the order in which a document becomes questions: `layers.py` reads the pages (`page.py`), `pieces.py`, `columns.py`
and `headers.py` read tables from words alone, `grids.py` confirms every cell with PyMuPDF's grids, `titles.py` says
what a table is called, `facts.py` joins all of it, `kinds/` asks, `checks.py` refuses, `choosing.py` chooses.
"""
