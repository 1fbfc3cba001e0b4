"""Checks that the metric of a task can score the answers of its records, as far as this can be known in advance."""

from functools import cached_property
from hashlib import blake2b

from mmlongbench.errors import ScoringError
from mmlongbench.lengths import K
from mmlongbench.manifest.binding import Bound, calling
from mmlongbench.task.formats import to_json
from mmlongbench.task.inputs import scoring_input
from mmlongbench.task.metric import Metric, Settings
from mmlongbench.task.rows import Record, Row

JUDGED = "judge-"
"""The prefix of the names of metrics that ask a model; answers are not checked with these metrics."""


class Golds:
    """Checks the answers of one dataset. If the records of a question have the same answer, this answer is checked
    once.
    """

    def __init__(self, bound: Bound) -> None:
        """Check the records of a dataset."""
        self._bound, self._builder = bound, bound.builder
        self._scored: dict[str, bytes] = {}

    def problem(self, record: Record, row: Row) -> str:
        """Return what is wrong with the answer of a row's record; empty if nothing is. The record must be as it is read
        back from JSON.

        Raises:
            PluginCallError: a method of the builder or of the metric fails.

        """
        gold = self._builder.gold(record)
        if gold is None and "answer" not in record:
            return "the record has no 'answer', and gold() gives none"
        if _is_empty(gold) and not self._bound.task.may_lack_answers:
            return f"the answer is empty: {gold!r:.80}"
        id, digest = str(record.get("id")), blake2b(to_json(gold), digest_size=16).digest()
        if self._metric is None or self._scored.get(id) == digest:
            return ""
        name, spec = self._bound.task.metric, self._bound.task
        file = spec.files.write(self._builder.dataset, K, 1, 1)  # a name in the form of the task's file names
        with calling("builder", self._bound.spec.builder, "a method that scoring calls", row):
            asked = scoring_input(self._builder, record, file)
        try:
            with calling("metric", name, "answer_fault()", about=f"the answer {gold!r:.80}"):
                if fault := self._metric.answer_fault(asked):
                    return f"metric {name!r} cannot score the answer {gold!r:.80}: {fault}"
        except ScoringError:  # the metric needs a package or a source that is not installed
            pass
        self._scored[id] = digest
        return ""

    @cached_property
    def _metric(self) -> Metric | None:
        """The metric; None if it asks a model, or needs something that only scoring has."""
        if self._bound.task.metric.startswith(JUDGED):
            return None
        try:
            return self._bound.metric(Settings())
        except Exception:  # noqa: BLE001  (it may need a judge, documents or a key, which only scoring has)
            return None


def _is_empty(gold: object) -> bool:
    if isinstance(gold, str):
        return not gold.strip()
    return gold is None or (isinstance(gold, list | dict) and (not gold or all(map(_is_empty, gold))))
