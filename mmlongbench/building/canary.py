"""The canary of a release: a text that is in its records and nowhere else, so that training data can be searched for
them. It is derived, not drawn: the same manifest has the same canary.
"""

import hashlib
import uuid
from collections.abc import Iterable
from typing import Any

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.release.lock import CANARY
from mmlongbench.task.formats import to_json

_CHANGING = frozenset({"lengths", "sample", "source", "source_sha256"})
"""The keys of a resolved dataset that an extension of the release may change; its canary stays."""


def canary_of(plans: Iterable[DatasetPlan]) -> str:
    """Return the canary of a release; empty if no dataset asks for one.

    It is derived from the first dataset that asks for one, as the lock has it, without what an extension may change.
    """
    first = next((plan for plan in plans if plan.spec.canary), None)
    return canary_text(first.public()) if first else ""


def canary_text(public: dict[str, Any]) -> str:
    """Return the canary that belongs to a dataset in the form of the lock.

    >>> canary_text({"name": "a", "lengths": [1]}) == canary_text({"name": "a", "lengths": [1, 2]})
    True
    """
    fixed = {key: value for key, value in sorted(public.items()) if key not in _CHANGING}
    digest = hashlib.sha256(b"canary\n" + to_json(fixed)).digest()
    return f"{CANARY} {uuid.UUID(bytes=digest[:16], version=5)}"
