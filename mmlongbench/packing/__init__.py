"""Packing: what a text costs in tokens, which units fit a length, and where each unit goes in the prompt."""
