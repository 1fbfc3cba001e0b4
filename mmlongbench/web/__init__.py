"""HTML pages: one kit of templates with one stylesheet, and the pages that are made with it."""
