"""Samples of MM-NIAH: drawn web pages, and questions about what is hidden in them."""
