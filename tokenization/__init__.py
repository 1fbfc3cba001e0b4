"""Turns strings and pixel sizes into tokens.

`load_tokenizer` returns a `TextTokenizer` for text, `PatchRule` counts an image from its width and height as the
benchmark does, and `vision_rules` returns rules that count an image as the processors of many models do.
`load_template` returns a `ChatTemplate`, which writes a conversation as a model reads it. `CrossModalCounter` counts
whole prompts with these. The package knows nothing of tasks or data sets, and imports no other part of the project.
"""

from tokenization.counting import CrossModalCounter, TokenCount
from tokenization.errors import RefusedSizeError, TokenizationError
from tokenization.template import ChatTemplate, Turns, load_template
from tokenization.text import TextTokenizer, load_tokenizer, tokenizer_json
from tokenization.vision import VisionRule, vision_rule, vision_rules
from tokenization.vision.cells import PatchRule

__all__ = [
    "ChatTemplate",
    "CrossModalCounter",
    "PatchRule",
    "RefusedSizeError",
    "TextTokenizer",
    "TokenCount",
    "TokenizationError",
    "Turns",
    "VisionRule",
    "load_template",
    "load_tokenizer",
    "tokenizer_json",
    "vision_rule",
    "vision_rules",
]
