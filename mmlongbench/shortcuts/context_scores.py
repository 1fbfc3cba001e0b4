"""Reads predictions files of several models and contexts, and scores each context by the own metric of each dataset.

An example without a prediction is left out, and does not count as wrong: some examples do not have a context such as
`oracle`, and a run may have been limited to some of them.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from mmlongbench.errors import ScoringError
from mmlongbench.io.json_lines import json_lines
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.release import Release
from mmlongbench.scoring.joining import ExampleDigests, builder_name, open_scorable, records_of, scorable_files
from mmlongbench.scoring.predictions import REASONS, Key, key_of
from mmlongbench.scoring.running import DEFAULT, Run
from mmlongbench.scoring.score_model import filled_settings, model_of, score_model
from mmlongbench.scoring.scores import CONTEXT, ScoreLine, read_scores
from mmlongbench.task.metric import Settings

FULL = ""
"""The name of the released prompt among contexts."""
BLIND = "none"
"""The context in which a model sees the question alone."""
Given: TypeAlias = tuple[str, str]
"""A model, and the context that it was given."""
_Example: TypeAlias = tuple[str, Key]
"""The public file and the key of an example."""


@dataclass(slots=True)
class Asked:
    """One example of a release, with the scores of all models in all contexts."""

    dataset: str
    length: int
    """The length of the file, in tokens."""
    id: str
    """The id of the question, the same at every length and placement."""
    cluster: str
    """The id of the thing that the question is about; empty if it has none."""
    facets: Mapping[str, tuple[str, ...]]
    """The groups of the example, by facet."""
    options: int = 0
    """The number of answers that the question offers; 0 if the answer is free."""
    chance: float = 0.0
    """The probability that a guess among them is right; 0 if the answer is free."""
    gold: str = ""
    """The answer in one form, so that questions with equal answers are found."""
    scores: dict[Given, dict[int, float]] = field(default_factory=dict)
    """The score of each sample, by the number of the sample."""
    blind: dict[tuple[str, int], str] = field(default_factory=dict)
    """A hash of each answer without context, by model and sample, if the model has several samples."""

    def mean(self, given: Given) -> float | None:
        """Return the mean over the samples; None if there is no score."""
        scores = self.scores.get(given)
        return sum(scores.values()) / len(scores) if scores else None


def read_answers(
    release: Path, predictions: Sequence[Path], progress: Progress, tasks: TaskFiles = NO_TASK_FILES
) -> tuple[list[Asked], list[Given], list[str]]:
    """Score predictions files of `mmlongbench run`, or read scores files of `mmlongbench score`.

    Returns:
        The examples in the order of the files; the models and contexts, sorted; and sentences about predictions that
        were left out.

    """
    files, scores_files = _sorted(predictions)
    examples: dict[_Example, Asked] = {}
    notes: list[str] = []
    digests = ExampleDigests(open_scorable(release, None, None, tasks))
    with TemporaryDirectory() as folder:
        for (model, context), paths in sorted(files.items()):
            out = Path(folder) / "scores.jsonl"
            run = Run(model, (DEFAULT,), filled_settings(release, Settings()), is_partial=True, only_answered=True)
            scored = score_model(run, release, paths, out, progress, digests=digests)
            for problem in scored.problems:
                said = f"{problem.count:,} {REASONS[problem.reason]}: {'; '.join(problem.first)}"
                notes.append(f"{_named(model, context)}: {said}")
            if out.exists():  # it does not appear if nothing fits
                notes += _add(examples, ((context, line) for line in read_scores(out)))
                out.unlink()
    for path in scores_files:
        notes += _add(examples, ((_context_of(line), line) for line in read_scores(path)))
    given = sorted({given for asked in examples.values() for given in asked.scores})
    if not given:
        why = notes[0] if notes else "no line has a score by the own metric of its dataset"
        raise ScoringError(
            f"no prediction fits an example of {release.name}: {why}; give what `mmlongbench run` wrote for it"
        )
    _add_guesses(examples, digests.opened)
    return list(examples.values()), given, notes


def _sorted(predictions: Sequence[Path]) -> tuple[dict[Given, list[Path]], list[Path]]:
    files: list[Path] = []
    for path in predictions:
        inside = sorted(file for file in path.rglob("*.jsonl") if file.is_file()) if path.is_dir() else [path]
        if not inside:
            raise ScoringError(f"{path}: no predictions there; expected *.jsonl files of `mmlongbench run`")
        files += inside
    for path in files:
        if not path.is_file():
            raise ScoringError(f"{path}: no such file of predictions; `mmlongbench run` writes them")
    by_given: dict[Given, list[Path]] = defaultdict(list)
    scores = []
    for path in dict.fromkeys(files):
        kinds, given = _content(path)
        if not kinds:
            raise ScoringError(f"{path}: no line is a JSON object; expected predictions of `mmlongbench run`")
        if len(kinds) > 1:
            raise ScoringError(f"{path}: has both predictions and scores; give each in a file of its own")
        if len(given) > 1 and "predictions" in kinds:
            one, two = (_named(model, context) for model, context in sorted(given)[:2])
            raise ScoringError(
                f"{path}: has predictions of {one} and of {two}; give each model and context in a file of its own"
            )
        if "scores" in kinds:
            scores.append(path)
        else:
            by_given[next(iter(given))].append(path)
    return by_given, scores


def _content(path: Path) -> tuple[set[str], set[Given]]:
    """Return whether a file has `predictions` or `scores`, and the models and contexts of its predictions."""
    kinds, given = set[str](), set[Given]()
    for line in json_lines(path):
        if not isinstance(line.value, dict):
            continue
        if "metric" in line.value and "status" in line.value:
            kinds.add("scores")
            continue
        kinds.add("predictions")
        model, context = line.value.get("model"), line.value.get("context")
        known = context if isinstance(context, str) else ""
        if not isinstance(model, str) or not model:  # the name of the file without the context
            model = model_of(path).removesuffix(f".{known}" if known else "")
        given.add((model, known))
    return kinds, given


def _named(model: str, context: str) -> str:
    return f"{model}, {context or 'released prompt'}"


def _context_of(line: ScoreLine) -> str:
    return next((choice.removeprefix(CONTEXT) for choice in line.choices if choice.startswith(CONTEXT)), "")


def _add(examples: dict[_Example, Asked], lines: Iterable[tuple[str, ScoreLine]]) -> Iterator[str]:
    """Add the scores of the datasets' own metrics; yield a sentence about answers without a score."""
    without: dict[Given, Counter[str]] = defaultdict(Counter)
    for context, line in lines:
        given = line.model, context
        if not line.is_own:
            continue
        if line.score is None or line.status == "absent":
            without[given][line.skipped or line.status] += 1
            continue
        key = key_of({"id": line.id, "depth": line.depth, "permutation": line.permutation})
        facets = {facet: tuple(values) for facet, values in line.facets.items()}
        asked = Asked(line.dataset, line.length, line.id, line.cluster, facets)
        asked = examples.setdefault((line.file, key), asked)
        scores = asked.scores.setdefault(given, {})
        if line.sample in scores:
            where = f"{line.file}, id {line.id!r}"
            raise ScoringError(f"{_named(*given)}: {where} is scored twice; give each scores file once")
        scores[line.sample] = line.score
        if context == BLIND and line.answer:
            asked.blind[line.model, line.sample] = line.answer
    for given, counts in without.items():
        said = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
        yield f"{_named(*given)}: {counts.total():,} answers have no score and are left out: {said}"


def _add_guesses(examples: Mapping[_Example, Asked], opened: Release) -> None:
    guesses: dict[_Example, tuple[int, float, str]] = {}
    names = {file for file, _ in examples}
    for file in (file for file in scorable_files(opened) if file.file.name in names):
        for record, key in records_of(file):
            with calling("builder", builder_name(file), "choices()", about=f"example {record.get('id')!r}"):
                choices, gold = file.builder.choices(record), file.builder.answer_of(record)
            text = json.dumps(gold, sort_keys=True, default=str).casefold()
            options, chance = (len(choices.offered), choices.chance) if choices and choices.offered else (0, 0.0)
            guesses[file.file.name, key] = options, chance, text
    for (name, key), asked in examples.items():
        guess = guesses.get((name, key)) or guesses.get((name, (key[0], "", 0.0)))
        if guess is None:
            raise ScoringError(f"{name}: the release has no example {key[0]!r}; the scores are of another release")
        asked.options, asked.chance, asked.gold = guess
