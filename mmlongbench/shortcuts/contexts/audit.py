"""Audits a release by the answers of models in several contexts: what `mmlongbench shortcuts --predictions` shows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.shortcuts.contexts.answers import Answers, Asked
from mmlongbench.shortcuts.contexts.blind import blind_questions
from mmlongbench.shortcuts.contexts.reading import read_answers
from mmlongbench.shortcuts.contexts.results import FULL, ContextAudit
from mmlongbench.shortcuts.contexts.rows import rows


def audit_contexts(
    release: Path, predictions: Sequence[Path], progress: Progress, tasks: TaskFiles = NO_TASK_FILES
) -> ContextAudit:
    """Score the predictions of models in several contexts, and compare the contexts question by question.

    Args:
        release: a release of this engine, or public files of other origin.
        predictions: predictions files of `mmlongbench run --context …`, scores files of them, or folders of such files.
        progress: shows a bar while predictions are scored.
        tasks: the task files that the release was built with.

    Raises:
        ScoringError: there are no predictions, they are of other examples, or a file has several models or contexts.
        ReleaseError: the release or a scores file cannot be read.

    """
    return audited(read_answers(release, predictions, progress, tasks))


def audited(answers: Answers) -> ContextAudit:
    """Return what the answers say, as a table and a list of questions that are answered blind."""
    datasets: dict[str, list[Asked]] = defaultdict(list)
    for each in answers.examples:
        datasets[each.dataset].append(each)
    models = tuple(sorted({model for model, _ in answers.given}))
    blind, counts = blind_questions(answers.examples)
    return ContextAudit(
        models=models,
        contexts=tuple(sorted({context for _, context in answers.given})),
        rows=tuple(row for name, found in datasets.items() for model in models for row in rows(found, name, model)),
        blind=blind,
        blind_counts=counts,
        notes=(*answers.notes, *_unpaired(answers, models)),
    )


def _unpaired(answers: Answers, models: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about each model of which contexts cannot be compared."""
    for model in models:
        contexts = {context for name, context in answers.given if name == model}
        if FULL not in contexts:
            yield f"{model}: no predictions of the released prompt, so nothing is compared; give them too"
        elif len(contexts) == 1:
            yield f"{model}: only predictions of the released prompt; `mmlongbench run --context none` makes others"
