"""Packing: what a text costs, which units fit a length, and where each stands."""
