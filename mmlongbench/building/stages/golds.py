"""Checks that the metric of a task can score the answers of its records, as far as this can be known in advance."""

from hashlib import blake2b

from mmlongbench.errors import ScoringError
from mmlongbench.lengths import K
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.task.builder import Builder, scoring_input
from mmlongbench.task.formats import to_json
from mmlongbench.task.metric import Metric, Settings
from mmlongbench.task.rows import Record, Row

JUDGED = "judge-"
"""The prefix of the names of metrics that ask a model; answers are not checked with these metrics."""
_UNKNOWN = "unknown"


class Golds:
    """Checks the answers of one dataset. If the records of a question have the same answer, this answer is checked
    once.
    """

    def __init__(self, builder: Builder[Row], name: str) -> None:
        """Check the records of `builder`; `name` is the name of the builder, for error messages."""
        self._builder, self._name = builder, name
        self._metric: Metric | str | None = _UNKNOWN
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
        if _is_empty(gold) and not self._builder.spec.may_lack_answers:
            return f"the answer is empty: {gold!r:.80}"
        id, digest = str(record.get("id")), blake2b(to_json(gold), digest_size=16).digest()
        if self._scored.get(id) == digest:
            return ""
        found = self._score(record, gold, row)
        if not found:
            self._scored[id] = digest
        return found

    def _score(self, record: Record, gold: object, row: Row) -> str:
        metric, spec = self._rules(), self._builder.spec
        if metric is None:
            return ""
        file = spec.files.write(self._builder.dataset, K, 1, 1)  # a name in the form of the task's file names
        with calling("builder", self._name, "a method that scoring calls", row):
            asked = scoring_input(self._builder, record, file)
        try:
            with calling("metric", spec.metric, "answer_fault()", about=f"the answer {gold!r:.80}"):
                fault = metric.answer_fault(asked)
        except ScoringError:  # the metric needs a package or a source that is not installed
            return ""
        return f"metric {spec.metric!r} cannot score the answer {gold!r:.80}: {fault}" if fault else ""

    def _rules(self) -> Metric | None:
        """Return the metric; None if it asks a model, or needs something that only scoring has."""
        if self._metric == _UNKNOWN:
            self._metric = _metric_of(self._builder.spec.metric)
        return self._metric if not isinstance(self._metric, str) else None


def _metric_of(name: str) -> Metric | None:
    if name.startswith(JUDGED):
        return None
    try:
        return metric_type(name)(Settings())
    except Exception:  # noqa: BLE001  (it may need a judge, documents or a key, which only scoring has)
        return None


def _is_empty(gold: object) -> bool:
    if isinstance(gold, str):
        return not gold.strip()
    return gold is None or (isinstance(gold, list | dict) and (not gold or all(map(_is_empty, gold))))
