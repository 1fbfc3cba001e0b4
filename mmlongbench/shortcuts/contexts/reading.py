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

from mmlongbench.errors import ScoringError
from mmlongbench.io.json_lines import json_lines
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.release import Release
from mmlongbench.scoring.joining import (
    ExampleDigests,
    ScorableFile,
    builder_name,
    open_scorable,
    records_of,
    scorable_files,
)
from mmlongbench.scoring.predictions import REASONS, Key, key_of
from mmlongbench.scoring.running import DEFAULT, Run
from mmlongbench.scoring.score_model import filled_settings, model_of, score_model
from mmlongbench.scoring.scores import CONTEXT, ScoreLine, read_scores
from mmlongbench.shortcuts.contexts.answers import Answers, Asked, Given, Guess
from mmlongbench.shortcuts.contexts.results import BLIND
from mmlongbench.task.metric import Settings
from mmlongbench.task.rows import Record

_Example = tuple[str, Key]
"""The public file and the key of an example."""


@dataclass(slots=True)
class _Scored:
    """The scores of one example, while files are read."""

    line: ScoreLine
    """The first line about the example."""
    scores: dict[Given, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    blind: dict[tuple[str, int], str] = field(default_factory=dict)
    """See `Asked.blind`."""


def read_answers(
    release: Path, predictions: Sequence[Path], progress: Progress, tasks: TaskFiles = NO_TASK_FILES
) -> Answers:
    """Score predictions files of `mmlongbench run`, or read scores files of `mmlongbench score`.

    Args:
        release: a release of this engine, or public files of other origin.
        predictions: files, or folders of `*.jsonl` files; each file has the answers of one model in one context.
        progress: shows a bar while predictions are scored.
        tasks: the task files that the release was built with.

    Raises:
        ScoringError: there are no predictions, or a file has several models or contexts.
        ReleaseError: the release or a scores file cannot be read.

    """
    given, scores_files = _sorted(_files(predictions))
    found: dict[_Example, _Scored] = {}
    notes: list[str] = []
    digests = ExampleDigests(open_scorable(release, None, None, tasks))
    with TemporaryDirectory() as folder:
        for (model, context), paths in sorted(given.items()):
            out = Path(folder) / "scores.jsonl"
            run = Run(model, (DEFAULT,), filled_settings(release, Settings()), is_partial=True, only_answered=True)
            scored = score_model(run, release, paths, out, progress, digests=digests)
            for problem in scored.problems:
                said = f"{problem.count:,} {REASONS[problem.reason]}: {'; '.join(problem.first)}"
                notes.append(f"{_named(model, context)}: {said}")
            if out.exists():  # it does not appear if nothing fits
                notes += _add(found, ((context, line) for line in read_scores(out)))
                out.unlink()
    for path in scores_files:
        notes += _add(found, ((_context_of(line), line) for line in read_scores(path)))
    names = sorted({given for each in found.values() for given in each.scores})
    if not names:
        why = notes[0] if notes else "no line has a score by the own metric of its dataset"
        raise ScoringError(
            f"no prediction fits an example of {release.name}: {why}; give what `mmlongbench run` wrote for it"
        )
    guesses = _guesses(digests.opened, {file for file, _ in found})
    return Answers(tuple(_asked(found, guesses)), tuple(names), tuple(notes))


def _files(paths: Sequence[Path]) -> list[Path]:
    found = []
    for path in paths:
        files = sorted(each for each in path.rglob("*.jsonl") if each.is_file()) if path.is_dir() else [path]
        if not files:
            raise ScoringError(f"{path}: no predictions there; expected *.jsonl files of `mmlongbench run`")
        found += files
    for path in found:
        if not path.is_file():
            raise ScoringError(f"{path}: no such file of predictions; `mmlongbench run` writes them")
    return list(dict.fromkeys(found))


def _sorted(files: Iterable[Path]) -> tuple[dict[Given, list[Path]], list[Path]]:
    """Return the predictions files by model and context, and the scores files.

    Raises:
        ScoringError: a file has no line that can be read, or several models or contexts.

    """
    predictions: dict[Given, list[Path]] = defaultdict(list)
    scores = []
    for path in files:
        kinds, given = _content(path)
        if not kinds:
            raise ScoringError(f"{path}: no line is a JSON object; expected predictions of `mmlongbench run`")
        if len(kinds) > 1:
            raise ScoringError(f"{path}: has both predictions and scores; give each in a file of its own")
        if len(given) > 1 and "predictions" in kinds:
            one, two = (_named(*each) for each in sorted(given)[:2])
            raise ScoringError(
                f"{path}: has predictions of {one} and of {two}; give each model and context in a file of its own"
            )
        if "scores" in kinds:
            scores.append(path)
        else:
            predictions[next(iter(given))].append(path)
    return predictions, scores


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
        given.add((model if isinstance(model, str) and model else _unnamed(path, known), known))
    return kinds, given


def _unnamed(path: Path, context: str) -> str:
    """Return the name of a model that lines do not name: the name of the file without the context."""
    return model_of(path).removesuffix(f".{context}" if context else "")


def _named(model: str, context: str) -> str:
    return f"{model}, {context or 'released prompt'}"


def _context_of(line: ScoreLine) -> str:
    named = [choice.removeprefix(CONTEXT) for choice in line.choices if choice.startswith(CONTEXT)]
    return named[0] if named else ""


def _add(found: dict[_Example, _Scored], lines: Iterable[tuple[str, ScoreLine]]) -> Iterator[str]:
    """Add the scores of the datasets' own metrics; yield a sentence about answers without a score."""
    without: dict[Given, Counter[str]] = defaultdict(Counter)
    for context, line in lines:
        given = line.model, context
        if not line.is_own:
            continue
        if line.score is None or line.status == "absent":
            without[given][line.skipped or line.status] += 1
            continue
        example = found.setdefault((line.file, _key(line)), _Scored(line))
        scores = example.scores[given]
        if line.sample in scores:
            where = f"{line.file}, id {line.id!r}"
            raise ScoringError(f"{_named(*given)}: {where} is scored twice; give each scores file once")
        scores[line.sample] = line.score
        if context == BLIND and line.answer:
            example.blind[line.model, line.sample] = line.answer
    for given, counts in without.items():
        said = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
        yield f"{_named(*given)}: {counts.total():,} answers have no score and are left out: {said}"


def _key(line: ScoreLine) -> Key:
    return key_of({"id": line.id, "depth": line.depth, "permutation": line.permutation})


def _guesses(opened: Release, files: set[str]) -> dict[_Example, Guess]:
    found = {}
    for file in scorable_files(opened):
        if file.file.name in files:
            for record, key in records_of(file):
                about = f"example {record.get('id')!r}"
                with calling("builder", builder_name(file), "choices()", about=about):
                    found[file.file.name, key] = _guess(file, record)
    return found


def _guess(file: ScorableFile, record: Record) -> Guess:
    choices, gold = file.builder.choices(record), file.builder.gold(record)
    text = json.dumps(gold, sort_keys=True, default=str).casefold()
    if choices is None or not choices.offered:
        return Guess(0, 0.0, text)
    return Guess(len(choices.offered), choices.chance, text)


def _asked(found: Mapping[_Example, _Scored], guesses: Mapping[_Example, Guess]) -> Iterator[Asked]:
    for (file, key), each in found.items():
        guess = guesses.get((file, key)) or guesses.get((file, (key[0], "", 0.0)))
        if guess is None:
            raise ScoringError(f"{file}: the release has no example {key[0]!r}; the scores are of another release")
        line = each.line
        facets = {name: tuple(values) for name, values in line.facets.items()}
        yield Asked(line.dataset, line.length, line.id, line.cluster, facets, guess, each.scores, each.blind)
