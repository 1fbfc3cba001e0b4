"""What a user has to mend before a judge can go on; an answer that cannot be used is none of it."""

from mmlongbench.errors import ScoringError


class JudgeError(ScoringError):
    """A judge that cannot be asked at all: not named, not there, not allowed, or with no place for its answers."""
