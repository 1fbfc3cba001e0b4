"""Errors of judges that a user must fix before scoring can continue; an unusable reply is not one of them."""

from mmlongbench.errors import ScoringError
from mmlongbench.models.settings import EndpointError


class JudgeError(EndpointError, ScoringError):
    """A judge cannot be called at all: it is not named, not reachable, not allowed, or its cache cannot be used."""
