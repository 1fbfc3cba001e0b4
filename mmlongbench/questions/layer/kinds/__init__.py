"""The kinds of questions, one module a kind or two; `table.py` lists them. Each yields candidates of a document."""
