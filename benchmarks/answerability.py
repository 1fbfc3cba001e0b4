"""Whether a context tells that its question has an answer: question words on shown pages, as a detector of answers.

A detector gives every example a number; the area under its ROC curve is the chance that an answerable question has a
larger one than an unanswerable question: 0.5 where it tells nothing, below 0.5 where it tells the other way round.
Intervals are of a bootstrap over documents, since the questions about one are alike.

Without RELEASE, MMLongBench-Doc's questions are packed under each rule of `options.unanswerable_anchor`; nothing is
rendered. So are twins: every answerable question whose document has text is asked once more as if it had no answer.
Twins differ from their questions in their anchors alone, so what tells them apart is the anchor, not the question.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from worlds import LIMITS, REAL, run_stages

import mmlongbench.task as mt
from builders.common import page_number
from mmlongbench.building.stages.records import finished_record, pack_row
from mmlongbench.documents.pages import texts_of
from mmlongbench.lengths import K, format_length, parse_length
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.release.layout import DATA
from mmlongbench.shortcuts.answerable import DETECTORS, Shown, shown_of, words_of_page

SAMPLES = REAL.parent / "samples.json"
LENGTHS = tuple(k * K for k in (8, 16, 32, 64, 128))
RULES = ("middle", "best_match")
RESAMPLES = 1000
DRAWS = mt.Draws(("answerability",))
Records = Mapping[int, Sequence[mt.Record]]
"""By length."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
@click.option("--dataset", default="mmlongdoc", show_default=True, help="Which dataset of RELEASE.")
@click.option("--samples", type=click.Path(path_type=Path), default=SAMPLES, show_default=False, help="samples.json.")
@click.option("--documents", type=click.Path(path_type=Path), default=REAL, show_default=False, help="The PDFs.")
def main(release: Path | None, dataset: str, samples: Path, documents: Path) -> None:
    """Print each detector's area under the curve at each length."""
    if release is not None:
        _show(f"{dataset} of {release}", _released(release, dataset), documents)
        return
    if not samples.is_file():
        raise click.UsageError(f"no {samples}: give RELEASE, or --samples and --documents of MMLongBench-Doc")
    rows: list[dict[str, Any]] = json.loads(samples.read_bytes())
    for rule in RULES:
        _show(f"{rule}, questions as they are", _packed(rows, documents, rule), documents)
    for rule in RULES:
        twins = _packed(list(_twins(rows, documents)), documents, rule)
        _show(
            f"{rule}, questions and their twins", {at: list(_paired(found)) for at, found in twins.items()}, documents
        )


def _released(release: Path, dataset: str) -> Records:
    files = {parse_length(path.stem.rpartition("_K")[2] + "K"): path for path in _files(release, dataset)}
    if not files:
        raise click.UsageError(f"{release}: no documentQA/{dataset}_K<k>.jsonl")
    return {at: [json.loads(line) for line in path.open(encoding="utf-8")] for at, path in sorted(files.items())}


def _files(release: Path, dataset: str) -> Iterator[Path]:
    yield from (release / DATA / "documentQA").glob(f"{dataset}_K*.jsonl")


def _packed(rows: Sequence[Mapping[str, Any]], documents: Path, rule: str) -> Records:
    """The records of questions at each length, their contexts packed and no page rendered."""
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples.json"
        samples.write_text(json.dumps(rows), "utf-8")
        source = {"samples": str(samples), "documents": str(documents)}
        about = {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": source}
        options = {"unanswerable_anchor": rule}
        spec = DatasetSpec.model_validate({**about, "options": options, "lengths": LENGTHS})
        out = Path(folder) / "release"
        with run_stages(Manifest(datasets=(spec,)), out, until_questions=True) as session:
            made, kept = session.dataset(spec.name), session.questions(spec.name)
            return {
                at: [finished_record(made, each) for row in kept for each in pack_row(made, row, at)] for at in LENGTHS
            }


def _twins(rows: Sequence[Mapping[str, Any]], documents: Path) -> Iterator[Mapping[str, Any]]:
    """Every answerable question about a document with text, and after it the same question without its answer."""
    for row in rows:
        if row["answer_format"] != "None" and any(_words(documents / row["doc_id"])):
            yield row
            yield {**row, "answer": "Not answerable", "answer_format": "None", "evidence_pages": "[]"}


def _paired(records: Sequence[mt.Record]) -> Iterator[mt.Record]:
    """Return the questions that have a twin, and their twins."""
    numbers = {int(record["id"].rpartition("_")[2]): record for record in records}
    for number, record in sorted(numbers.items()):
        if number ^ 1 in numbers:
            yield record


def _show(what: str, records: Records, documents: Path) -> None:
    """Print a line a detector: the area at each length, and of how many examples where some have no number."""
    shown = {at: [(record, _shown(record, documents)) for record in found] for at, found in records.items()}
    kinds = [record["answer_format"] != "None" for record in next(iter(records.values()))]
    click.echo(f"{what}: {sum(kinds)} answerable, {len(kinds) - sum(kinds)} unanswerable")
    for name, detect in DETECTORS.items():
        click.echo(f"  {name}")
        cells = []
        for at, found in shown.items():
            values = [(record, value) for record, each in found if (value := detect(each)) is not None]
            cells.append(f"{format_length(at)} {_curve(values, len(found))}")
        click.echo(f"    {'  '.join(cells)}")


def _shown(record: mt.Record, documents: Path) -> Shown:
    own_name = str(record["doc_name"]).removesuffix(".pdf")
    places = [(PurePosixPath(path).parent.name, page_number(path)) for path in record["page_list"]]
    words = {name: _words(documents / f"{name}.pdf") for name, _ in places}
    own = {at: number for at, (name, number) in enumerate(places) if name == own_name}
    pages = [words[name][number] for name, number in places]
    return shown_of(record["question"], pages, own, len(words[own_name]))


@cache
def _words(path: Path) -> tuple[frozenset[str], ...]:
    """The distinct words of each page of a PDF."""
    return tuple(map(words_of_page, texts_of(path, LIMITS)))


def _curve(values: Sequence[tuple[mt.Record, float]], every: int) -> str:
    """The area under the curve with its interval."""
    is_answered = np.array([record["answer_format"] != "None" for record, _ in values], bool)
    count, others = int(is_answered.sum()), int((~is_answered).sum())
    if not (count and others):
        return "–"
    found = np.array([value for _, value in values], float)
    wins = found[is_answered][:, None] - found[~is_answered][None]
    scores = (np.sign(wins) + 1) / 2
    weights = _resampled(tuple(str(record["doc_name"]) for record, _ in values))
    areas = sorted(area for each in weights if (area := _area(scores, each[is_answered], each[~is_answered])) >= 0)
    low, high = areas[int(0.025 * len(areas))], areas[int(0.975 * len(areas)) - 1]
    of = "" if len(values) == every else f" of {count} and {others}"
    return f"{scores.mean():.3f} ({low:.2f} to {high:.2f}{of})"


def _area(scores: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the area with these weights of examples; -1 if one of the two kinds is missing."""
    total = first.sum() * second.sum()
    return float(first @ scores @ second / total) if total else -1.0


@cache
def _resampled(documents: tuple[str, ...]) -> tuple[NDArray[np.float64], ...]:
    """How often each example stands in each resample of as many documents as there are."""
    names = sorted(set(documents))
    place = np.array([names.index(name) for name in documents])
    found = []
    for number in range(RESAMPLES):
        draws = DRAWS.at("resample", number)
        chosen = [draws.integer(f"document {at}", 0, len(names) - 1) for at in range(len(names))]
        found.append(np.bincount(chosen, minlength=len(names)).astype(float)[place])
    return tuple(found)


if __name__ == "__main__":
    main()
