"""Finds the rule and the tokenizer with which the prompts for a model are counted."""

from mmlongbench.errors import ReleaseError
from mmlongbench.release.example_cost import Model
from tokenization import TextTokenizer, TokenizationError, VisionRule, vision_rule

NO_RULE = "none"
"""The value of `count_as` for a model whose tokens are not checked."""


def counting(model: str, count_as: str | None, tokenizer: str | None) -> tuple[VisionRule | None, TextTokenizer | None]:
    """Return the rule and the tokenizer that count for a model.

    Args:
        model: the name of the model in requests.
        count_as: the name of a model with a rule; `none` for no rule; None: `model` itself.
        tokenizer: the path or hub id of the model's tokenizer; None: the counts of the release are scaled.

    Raises:
        ReleaseError: no rule has this name, or the tokenizer cannot be read.

    """
    if count_as == NO_RULE:
        return None, None
    try:
        rule = vision_rule(count_as or model)
    except TokenizationError as error:
        if count_as:
            raise ReleaseError(f"--count-as {count_as}: {error}") from error
        raise ReleaseError(
            f"model {model!r}: its name does not say how it counts images; give --count-as with the name of a model "
            f"that counts alike, or --count-as {NO_RULE} to run without receipts"
        ) from error
    return rule, Model(rule.name, tokenizer=tokenizer).text
