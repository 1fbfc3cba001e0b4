"""Questions that models write about documents, and the checks that every question passes; begin with `stages.py`."""
