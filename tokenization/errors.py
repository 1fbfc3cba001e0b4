"""The one exception of the package."""


class TokenizationError(ValueError):
    """A text, a size, a rule or a tokenizer cannot be used; the message says which, why, and what to do."""
