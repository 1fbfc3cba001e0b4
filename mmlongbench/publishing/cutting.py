"""Cuts a release for models: a release of those of its questions whose examples fit all of them, at each length.

A question that is left out at a length counts as rejected there, so all that is true of a release is true of this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import Fault, ReleaseError
from mmlongbench.exports.export import appearing, checked_folder
from mmlongbench.io.progress import Progress
from mmlongbench.publishing.takedown import Rest, Withdrawn
from mmlongbench.release.example_cost import Model
from mmlongbench.release.release import Release

REASON = "does-not-fit"
"""The reason of the rejects that a cut adds."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The result of a cut."""

    out: Path
    before: int
    """The examples of the release that it was cut from."""
    examples: int


def cut_release(
    opened: Release,
    out: Path,
    unfit: Mapping[str, Mapping[str, str]],
    models: Sequence[Model],
    progress: Progress,
) -> Cut:
    """Write a release of the questions that fit; it appears whole or not at all.

    Args:
        opened: the release.
        out: the folder, which is new or empty.
        unfit: by public file, what does not fit in the first such example of a question, by id (`FileAudit.unfit`).
        models: the models, for the lock.
        progress: shows the bars.

    Raises:
        ReleaseError: it is no whole release with a lock, nothing of it fits, or `out` cannot be used.

    """
    folder = checked_folder(out, opened.path)
    if opened.is_publication or not opened.is_locked or opened.missing:
        raise ReleaseError(f"{opened.path}: only a whole release that this engine built can be cut")
    questions: dict[tuple[str, int], dict[str, Fault]] = {}
    for file, dataset in ((file, file.dataset) for file in opened.files if file.dataset):
        faults = questions.setdefault((dataset.name, file.length), {})
        for id, said in unfit.get(file.name, {}).items():
            faults.setdefault(id, Fault(REASON, "an example that fits all models", said, is_expected=True))
    rest = Rest(opened, Withdrawn(questions=questions), progress)
    if not any(map(rest.has_examples, opened.files)):
        raise ReleaseError(f"--cut: no question of {opened.path.name} fits; give larger windows, or fewer models")
    fits = {model.name: {"window": model.window} | _named(model) for model in models}
    with appearing(folder) as made:
        files, _ = rest.write(made, progress)
        rest.write_lock(made, files, cut={"of": opened.lock_id, "fits": fits})
    counted = [cell.examples for counts in opened.lock.readable.values() for cell in counts.cells.values()]
    left = [cell.examples for counts in rest.counts().values() for cell in counts.cells.values()]
    return Cut(out, sum(counted), sum(left))


def _named(model: Model) -> dict[str, str]:
    """Return the tokenizer of a model; empty if its text is counted as in the release."""
    return {"tokenizer": Path(model.text.name).name, "sha256": model.text.sha256} if model.text else {}
