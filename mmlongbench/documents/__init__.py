"""Documents: page sizes without rendering, page text, rendering, and names that can be used as folders."""
