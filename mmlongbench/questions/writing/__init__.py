"""Questions that models write about documents, and the checks that every one passes; begin with `funnel.py`."""
