"""Documents and pictures: page sizes without rendering, texts, OCR, page images, crops, joined pages, in a process with
limits of time and memory; and names that can be used as folders.
"""
