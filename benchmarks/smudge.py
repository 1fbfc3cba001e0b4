"""SMuDGE: golds located under each profile, processor seconds for a thousand answers, and how time grows with words.

Real questions of MMLongBench-Doc are answered in turn with their gold, the gold misspelt, a sentence around it, another
question's gold and a sentence that no page has; the two profiles are correlated over these answers. Growth is that of
drawn documents, from 1,000 words to 64,000, in reading order against trying every run of words with rapidfuzz, and over
the graph of words.
"""

import ast
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import numpy as np
from rapidfuzz.distance import Levenshtein

import mmlongbench.task as mt
from builders.docvqa.rows import Answer, normalise
from mmlongbench.metrics.smudge import SMuDGE
from mmlongbench.metrics.smudge.paths import Paths
from mmlongbench.metrics.smudge.reading import Reading, letters_of
from mmlongbench.metrics.smudge.words import Word, Words, words_of
from mmlongbench.task.metric import ScoringInput, Settings

DRAWS = mt.Draws(("smudge",))
ABSENT = "the quarterly zebra report"
MAX_BRUTE = 4000
"""Words of the largest document whose every run is tried."""
REAL = Path(__file__).parents[2] / "shared/real/mmlongbench-doc"
FORMATS = ("String", "Integer", "Float")
WAYS: dict[str, Callable[[str, str], str]] = {
    "the gold": lambda gold, other: gold,
    "the gold misspelt": lambda gold, other: gold[: len(gold) // 2] + "z" + gold[len(gold) // 2 + 1 :],
    "a sentence around it": lambda gold, other: f"According to the document, the answer is {gold}, as its pages show.",
    "another gold": lambda gold, other: other,
    "an absent sentence": lambda gold, other: f"neither {other} nor quarterly zebras were found on any of those lists",
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--source", default=REAL, type=click.Path(path_type=Path), help="samples.json, and documents/ beside it.")
@click.option("--most", default=64_000, show_default=True, help="Words of the largest drawn document.")
def main(source: Path, most: int) -> None:
    """Print the figures."""
    if (source / "samples.json").is_file():
        asked = list(_questions(source))
        scores = {name: _score(name, asked, settings) for name, settings in _ways(source / "documents").items()}
        _correlate(scores["reading order"], scores["Algorithm 1"])
    _grow(most)


def _ways(documents: Path) -> dict[str, Settings]:
    """Each way to score."""
    return {
        "reading order": Settings(documents=documents),
        "Algorithm 1": Settings(documents=documents, ignores_reading_order=True),
    }


def _questions(source: Path) -> Iterator[ScoringInput]:
    """Questions of one answer with evidence, their gold for a prediction."""
    for number, row in enumerate(json.loads((source / "samples.json").read_bytes())):
        answer, pages = normalise(row["answer"], row["answer_format"]), ast.literal_eval(row["evidence_pages"])
        if isinstance(answer, Answer) and answer.format in FORMATS and pages:
            evidence = tuple(sorted({page - 1 for page in pages if page > 0}))
            yield ScoringInput(
                "documentQA/mmlongdoc_K128.jsonl",
                "mmlongdoc",
                f"mmlongdoc_{number}",
                answer.values[0],
                answer.values[0],
                answer_format=answer.format,
                evidence=mt.Evidence(row["doc_id"].removesuffix(".pdf"), evidence),
            )


def _score(name: str, asked: list[ScoringInput], settings: Settings) -> dict[tuple[str, int], float]:
    """Seconds for a thousand answers, the documents read; the scores by way and question."""
    metric, started = SMuDGE(settings), time.process_time()
    located = Counter(_located(metric, each) for each in asked)
    click.echo(f"{name}: reading every document once, locating every gold: {time.process_time() - started:.1f} s")
    for (kind, outcome), count in sorted(located.items()):
        click.echo(f"  golds of format {kind}: {count} {outcome}")
    golds, scores = [str(each.gold) for each in asked], dict[tuple[str, int], float]()
    spent = dict[str, float]()
    _answer(metric, asked, golds, WAYS["an absent sentence"])  # the graphs of all pages are built once
    for way, say in WAYS.items():
        started = time.process_time()
        found = _answer(metric, asked, golds, say)
        spent[way] = 1000 * (time.process_time() - started) / len(found)
        click.echo(f"  {way}: {spent[way]:.2f} s for 1,000 answers ({len(found)} scored)")
        scores |= {(way, number): score for number, score in found.items()}
    click.echo(f"  all of these: {sum(spent.values()) / len(spent):.1f} s for 1,000 answers")
    return scores


def _located(metric: SMuDGE, asked: ScoringInput) -> tuple[str, str]:
    """The format of a question, and how its gold was located or why it is left out."""
    kind, scored = str(asked.answer_format), metric.score(asked)
    if why := metric.out_of_scope(asked):
        return kind, f"left out: {why}"
    if scored.score is None:
        return kind, "in documents without a word" if "without-words" in scored.failure else scored.failure
    return kind, "exactly" if scored.details["is_gold_exact"] else "by the best similarity"


def _answer(
    metric: SMuDGE, asked: list[ScoringInput], golds: list[str], say: Callable[[str, str], str]
) -> dict[int, float]:
    """The scores of one way to answer, by question."""
    found = dict[int, float]()
    for number, (each, other) in enumerate(zip(asked, golds[7:] + golds[:7], strict=True)):
        score = metric.score(replace(each, prediction=say(str(each.gold), other))).score
        if score is not None:
            found[number] = score
    return found


def _correlate(one: dict[tuple[str, int], float], other: dict[tuple[str, int], float]) -> None:
    """Pearson between two ways to locate strings, over the answers that both score, and for each way to answer."""
    shared = sorted(one.keys() & other.keys())
    found = _pearson(one, other, shared)
    click.echo(f"reading order and Algorithm 1: Pearson {found:.3f} over {len(shared)} answers")
    for way in WAYS:
        keys = [key for key in shared if key[0] == way]
        click.echo(f"  {way}: {_pearson(one, other, keys):.3f} ({len(keys)})")


def _pearson(
    one: dict[tuple[str, int], float], other: dict[tuple[str, int], float], keys: list[tuple[str, int]]
) -> float:
    pair = np.array([[scores[key] for key in keys] for scores in (one, other)])
    return float(np.corrcoef(pair)[0, 1]) if (np.ptp(pair, axis=1) > 0).all() else float("nan")


def _grow(most: int) -> None:
    """Time of one search over documents of more and more words."""
    size, before, brute_before = 1000, 0.0, 0.0
    while size <= most:
        words = _drawn(size)
        reading, pages = Reading(letters_of(words)), words.pages.tolist()
        there = " ".join(words.word(number) for number in range(5))
        equal = _timed(partial(reading.best, there, pages))
        like = _timed(partial(reading.best, ABSENT, pages))
        paths = Paths(letters_of(words))
        paths.best(ABSENT, pages)  # which builds the graphs
        over = _timed(partial(paths.best, ABSENT, pages))
        brute = _timed(partial(_brute, words, ABSENT), rounds=1) if size <= MAX_BRUTE else 0.0
        growth = f"× {like / before:.2f}" if before else ""
        tried = f"; every run tried {brute * 1000:.0f} ms" if brute else ""
        tried += f" × {brute / brute_before:.2f}" if brute and brute_before else ""
        shown = (
            f"equal {equal * 1000:.2f} ms, most like {like * 1000:.1f} ms {growth}, over the graph {over * 1000:.1f} ms"
        )
        click.echo(f"{size} words: {shown}{tried}")
        size, before, brute_before = size * 2, like, brute


def _drawn(size: int) -> Words:
    """Words of drawn letters, 500 a page."""
    letters = "etaoinshrdlucmfw"
    texts = (
        "".join(DRAWS.at(number, place).choice("letter", letters) for place in range(2 + number % 7))
        for number in range(size)
    )
    return words_of((Word(number // 500, text, _box(number % 500)) for number, text in enumerate(texts)), "drawn")


def _box(number: int) -> tuple[float, float, float, float]:
    """The place of a word on its page: 20 a line."""
    x, y = number % 20 / 20, number // 20 / 25
    return x, y, x + 0.045, y + 0.025


def _brute(words: Words, needle: str) -> float:
    """The best of all runs of words that a page has."""
    best = 0.0
    for page in words.pages.tolist():
        inside = words.range_of(page)
        for first in inside:
            for last in range(first, inside.stop):
                run = words.text[words.starts[first] : words.ends[last]]
                best = max(best, Levenshtein.normalized_similarity(run, needle))
    return best


def _timed(call: Callable[[], object], rounds: int = 5) -> float:
    """The least processor seconds of some rounds."""
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return min(spent)


if __name__ == "__main__":
    main()
