"""The exceptions of the package: one base class, and a subclass for unknown names."""


class TokenizationError(ValueError):
    """A text, a size, a rule or a tokenizer cannot be used; the message says which one, why, and what to do."""


class RefusedSizeError(TokenizationError):
    """A model takes no image of this size."""


class UnknownRuleError(TokenizationError, KeyError):
    """No vision rule has this name. It is also a `KeyError`, so that a mapping of rules behaves like other mappings."""

    __str__ = Exception.__str__  # KeyError's own method would quote the message
