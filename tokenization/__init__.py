"""Turns strings and pixel sizes into tokens.

`load_tokenizer` returns a `TextTokenizer` for text, `PatchRule` counts an image from its width and height as the
benchmark does, and `vision_rules` returns rules that count an image as the processors of many models do.
`CrossModalCounter` counts whole prompts with a tokenizer and one of these rules. The package knows nothing of tasks or
data sets, and imports no other part of the project.
"""

from tokenization.counting import CrossModalCounter, PatchRule, TokenCount, Turns
from tokenization.errors import TokenizationError
from tokenization.text import TextTokenizer, load_tokenizer, tokenizer_file
from tokenization.vision import VisionRule, vision_rule, vision_rules

__all__ = [
    "CrossModalCounter",
    "PatchRule",
    "TextTokenizer",
    "TokenCount",
    "TokenizationError",
    "Turns",
    "VisionRule",
    "load_tokenizer",
    "tokenizer_file",
    "vision_rule",
    "vision_rules",
]
