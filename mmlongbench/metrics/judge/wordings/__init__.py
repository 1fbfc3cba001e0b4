"""Prompts of this project for judges: the structure is the public code's, the words and examples are not."""
