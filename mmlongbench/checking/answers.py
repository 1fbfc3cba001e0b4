"""The rule that the metrics of a task give full scores to its answers, and less to an empty answer."""

from collections.abc import Iterator
from dataclasses import replace

from mmlongbench.building.stages.golds import JUDGED
from mmlongbench.checking.findings import Failure, Outcome, Skipped
from mmlongbench.checking.world import World
from mmlongbench.errors import MMLongBenchError
from mmlongbench.lengths import K
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.packing.pack import PackedExample
from mmlongbench.task.inputs import scoring_input
from mmlongbench.task.metric import Metric, Settings

_FULL = 1 - 1e-9


def answers_score_full(world: World) -> Iterator[Outcome]:
    """Yield every example whose answer, given as a model's output, does not score full, or whose empty output does."""
    name = world.dataset.builder.spec.metric
    if name.startswith(JUDGED):
        yield Skipped(f"metric {name!r} asks a judge")
        return
    try:
        metric = metric_type(name)(Settings())
        plain = metric_type(name)(Settings(profile="ours")) if "ours" in metric.offered() else metric
    except MMLongBenchError as error:  # it needs a judge, or documents
        yield Skipped(str(error))
        return
    has_answer = False
    for length in world.lengths[-1:]:
        for example in world.examples(length):
            found = _scored(world, example, metric, plain)
            has_answer |= found is not None
            if found:
                yield Failure(found, "record()", example.id)
    if not has_answer:
        yield Skipped(f"metric {name!r} has no output that scores full (Metric.full_answer)")


def _scored(world: World, example: PackedExample, metric: Metric, plain: Metric) -> str | None:
    """Return what is wrong with the scores of an example; empty if nothing is, None if there is no full answer.

    `plain` is the metric under rules that do not guess if there is no answer.
    """
    builder, name = world.dataset.builder, world.dataset.spec.builder
    record, row = world.record(example), world.row(example)
    with calling("builder", name, "a method that scoring calls", row):
        asked = scoring_input(builder, record, builder.spec.files.write(world.name, K, 1, 1))
    with calling("metric", metric.name, "score()", about=f"the answer {asked.gold!r:.60}"):
        said = metric.full_answer(asked)
        if said is None:
            return None
        full, empty = metric.score(replace(asked, prediction=said)), plain.score(asked)
    if full.score is None or full.score < _FULL:
        found = full.failure if full.score is None else f"{full.score:.3f}"
        return f"metric {metric.name!r}: expected score 1 for the answer {asked.gold!r:.60}, found {found}"
    if empty.score is not None and empty.score >= _FULL:
        return f"metric {metric.name!r} gives an empty output the full score; the answer is {asked.gold!r:.60}"
    return ""
