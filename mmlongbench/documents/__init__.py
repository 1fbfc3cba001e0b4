"""Documents: page sizes without rendering, page text, rendering, names that can be folders."""
