"""The exceptions of the package: one, and one of its kind for names."""


class TokenizationError(ValueError):
    """A text, a size, a rule or a tokenizer cannot be used; the message says which, why, and what to do."""


class UnknownRuleError(TokenizationError, KeyError):
    """No vision rule has this name; also a `KeyError`, so that a mapping of rules behaves as one."""

    __str__ = Exception.__str__  # that of KeyError would quote the message
