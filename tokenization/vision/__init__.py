"""Turns image sizes into tokens, for many models.

`vision_rules` maps the name of a model to a `VisionRule`, which counts an image from its width and height. Each rule
consists of one of a few formulas and the numbers published for the model.
"""

from tokenization.vision.registry import VisionRules, rule_fields, rule_of_fields, vision_rule, vision_rules
from tokenization.vision.rule import Crowd, Provenance, VisionRule, numbered

__all__ = [
    "Crowd",
    "Provenance",
    "VisionRule",
    "VisionRules",
    "numbered",
    "rule_fields",
    "rule_of_fields",
    "vision_rule",
    "vision_rules",
]
