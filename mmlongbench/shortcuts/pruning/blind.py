"""Drops of the questions that models solve without their context, as far as luck does not explain it."""

from mmlongbench.release.lock import Lock
from mmlongbench.shortcuts.contexts.results import BlindQuestion, ContextAudit
from mmlongbench.shortcuts.pruning.dataset import SOURCE
from mmlongbench.shortcuts.pruning.naming import named
from mmlongbench.shortcuts.pruning.results import Drop, Pruned

BLIND = "answered without the context"
"""The kind of these drops."""


def prune_blind(audit: ContextAudit, lock: Lock | None) -> tuple[Pruned, ...]:
    """Return the drops of each dataset: the questions that the audit lists. Questions with two answers are never
    listed, and no other one where luck has more than 1 %.

    Args:
        audit: what models answer in several contexts.
        lock: the lock of the release; None for public files of other origin.

    """
    return tuple(
        named(
            lock,
            counts.dataset,
            counts.questions,
            [_drop(each) for each in audit.blind if each.dataset == counts.dataset],
        )
        for counts in audit.blind_counts
    )


def _drop(found: BlindQuestion) -> Drop:
    strength = f"{found.right} of {found.answers} answers are right, luck {found.luck:.2g}"
    reason = f"{SOURCE}: {BLIND} by {', '.join(found.models)}: {strength}"
    return Drop(id=found.id, kind=BLIND, reason=reason)
