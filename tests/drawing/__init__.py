"""Draws the samples of the built-in readers, and such sources in other sizes for tests and benchmarks.

`python -m tests.drawing` says whether the archives in `builders/samples` hold what is drawn, and writes those that do
not. The bytes of pictures, PDFs and tables depend on the versions of Pillow, PyMuPDF and PyArrow.
"""
