"""Strings and pixel sizes to tokens.

`load_tokenizer` gives a `TextTokenizer` for text, `PatchRule` counts an image from its width and height,
`CrossModalCounter` does both. The package knows nothing of prompts, tasks or data sets, and imports no other part of
the project.
"""

from tokenization.counting import CrossModalCounter, TokenCount
from tokenization.errors import TokenizationError
from tokenization.images import PatchRule
from tokenization.text import TextTokenizer, load_tokenizer

__all__ = ["CrossModalCounter", "PatchRule", "TextTokenizer", "TokenCount", "TokenizationError", "load_tokenizer"]
