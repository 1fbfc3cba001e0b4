"""Cuts a release for models: a release of those of its questions whose examples fit all of them, at each length.

A question that is left out at a length counts as rejected there, so all that is true of a release is true of this one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.errors import Fault, ReleaseError
from mmlongbench.exports.export import appearing, checked_folder
from mmlongbench.io.progress import Progress
from mmlongbench.publishing.takedown import Rest, Withdrawn
from mmlongbench.release.example_cost import Model
from mmlongbench.release.release import PublicFile, Release

REASON = "does-not-fit"
"""The reason of the rejects that a cut adds."""


def cut_release(
    opened: Release,
    out: Path,
    unfit: Mapping[str, Mapping[str, str]],
    models: Sequence[Model],
    progress: Progress,
) -> tuple[int, int, list[PublicFile]]:
    """Write a release of the questions that fit; it appears whole or not at all. Return the number of its examples, of
    those of the release that it is cut from, and the files of which nothing is left.

    `unfit` says by public file what does not fit in the first such example of a question, by id (`FileAudit.unfit`);
    `models` are for the lock.

    Raises:
        ReleaseError: it is no whole release with a lock, or is a cut, nothing of it fits, or `out` cannot be used.

    """
    folder = checked_folder(out, opened.path)
    if opened.is_publication or not opened.is_locked or opened.missing:
        raise ReleaseError(f"{opened.path}: only a whole release that this engine built can be cut")
    if opened.lock.cut:
        raise ReleaseError(f"{opened.path}: is a cut; cut the release that it was cut from, for all models at once")
    questions: dict[tuple[str, int], dict[str, Fault]] = {}
    for file, dataset in ((file, file.dataset) for file in opened.files if file.dataset):
        faults = questions.setdefault((dataset.name, file.length), {})
        for id, why in unfit.get(file.name, {}).items():
            faults.setdefault(id, Fault(REASON, "an example that fits all models", why, is_expected=True))
    rest = Rest(opened, Withdrawn(questions=questions), progress)
    if not any(map(rest.has_examples, opened.files)):
        raise ReleaseError(f"--cut: no question of {opened.path.name} fits; give larger windows, or fewer models")
    fits: dict[str, dict[str, object]] = {}
    for model in models:
        text = {"tokenizer": Path(model.text.name).name, "sha256": model.text.sha256} if model.text else {}
        fits[model.name] = {"window": model.window, **text}
    with appearing(folder) as unfinished:
        files, _ = rest.write(unfinished, progress)
        rest.write_lock(unfinished, files, cut={"of": opened.lock_id, "fits": fits})
    left, before = (
        sum(cell.examples for counts in datasets.values() for cell in counts.cells.values())
        for datasets in (rest.counts(), opened.lock.readable)
    )
    return left, before, [file for file in opened.files if not rest.has_examples(file)]
