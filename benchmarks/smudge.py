"""SMuDGE: golds located on their pages, processor seconds for a thousand answers, and how time grows with words.

Real questions of MMLongBench-Doc are answered in turn with their gold, the gold misspelt, a sentence around it, another
question's gold and a sentence that no page has. Growth is that of drawn documents, from
1,000 words to 64,000, against trying every run of words with rapidfuzz.
"""

import ast
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
from rapidfuzz.distance import Levenshtein

import mmlongbench as mm
from builders.docvqa.answers import Answer, normalise
from mmlongbench.errors import Fault
from mmlongbench.scoring.metric import Asked, Settings
from mmlongbench.scoring.smudge import SMuDGE
from mmlongbench.scoring.smudge.library import Library, Text
from mmlongbench.scoring.smudge.reading import Reading
from mmlongbench.scoring.smudge.windows import letters_of
from mmlongbench.scoring.smudge.words import Word, Words, split, words_of

DRAWS = mm.Draws(("smudge",))
ABSENT = "the quarterly zebra report"
MOST_BRUTE = 4000
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
        for is_walked in (False, True):
            click.echo(f"{'walked' if is_walked else 'in reading order'}:")
            _locate(asked, source / "documents", is_walked)
            _score(asked, source / "documents", is_walked)
    _grow(most)


def _questions(source: Path) -> Iterator[Asked]:
    """Questions of one answer with evidence, their gold for a prediction."""
    for number, row in enumerate(json.loads((source / "samples.json").read_bytes())):
        answer, pages = normalise(row["answer"], row["answer_format"]), ast.literal_eval(row["evidence_pages"])
        if isinstance(answer, Answer) and answer.format in FORMATS and pages:
            record: dict[str, Any] = {
                "id": f"mmlongdoc_{number}",
                "doc_name": row["doc_id"].removesuffix(".pdf"),
                "answer_format": answer.format,
                "ans_page_list": [page - 1 for page in pages if page > 0],
            }
            yield Asked("documentQA/mmlongdoc_K128.jsonl", "mmlongdoc", record, answer.values[0], answer.values[0])


def _locate(asked: list[Asked], documents: Path, is_walked: bool) -> None:
    """Which golds stand on their evidence pages."""
    library, counts = Library(documents, None, is_walked=is_walked), Counter[tuple[str, str]]()
    for each in asked:
        text, kind = library.open(each.record["doc_name"]), each.record["answer_format"]
        counts[kind, "asked"] += 1
        if isinstance(text, Fault):
            counts[kind, text.reason] += 1
            continue
        found = text.locator.best(" ".join(split(each.gold)), each.record["ans_page_list"])
        counts[kind, "exact"] += found.similarity == 1
        counts[kind, "above 0.3"] += bool(found.places)
    texts = [
        text for name in {each.record["doc_name"] for each in asked} if isinstance(text := library.open(name), Text)
    ]
    words = sum(text.size for text in texts)
    click.echo(f"  {len(texts)} documents with text, {sum(len(text.pages) for text in texts)} pages, {words} words")
    for kind in FORMATS:
        told = ", ".join(f"{what} {count}" for (of, what), count in counts.items() if of == kind)
        click.echo(f"  golds of format {kind} on their pages: {told}")


def _score(asked: list[Asked], documents: Path, is_walked: bool) -> None:
    """Seconds for a thousand answers: the words read on the way, then at hand."""
    metric = SMuDGE(Settings(documents=documents, is_walked=is_walked))
    golds = [each.gold for each in asked]
    started = time.process_time()
    for each in asked:
        metric.score(each)
    cold = time.process_time() - started
    click.echo(f"  reading every document once, locating every gold: {cold:.1f} s")
    spent, scored = dict.fromkeys(WAYS, 0.0), Counter[str]()
    for way, say in WAYS.items():
        started = time.process_time()
        for each, other in zip(asked, golds[7:] + golds[:7], strict=True):
            said = Asked(each.file, each.dataset, each.record, each.gold, say(each.gold, other))
            scored[way] += metric.score(said).score is not None
        spent[way] = time.process_time() - started
        click.echo(f"  {way}: {1000 * spent[way] / scored[way]:.2f} s for 1,000 answers ({scored[way]} scored)")
    warm, answers = sum(spent.values()), sum(scored.values())
    click.echo(f"  all of these: {1000 * warm / answers:.1f} s for 1,000 answers, the documents read")


def _grow(most: int) -> None:
    """Time of one search over documents of more and more words."""
    size, before, brute_before = 1000, 0.0, 0.0
    while size <= most:
        words = _drawn(size)
        reading, pages = Reading(letters_of(words)), words.pages.tolist()
        there = " ".join(words.word(number) for number in range(5))
        equal = _timed(partial(reading.best, there, pages))
        like = _timed(partial(reading.best, ABSENT, pages))
        brute = _timed(partial(_brute, words, ABSENT), rounds=1) if size <= MOST_BRUTE else 0.0
        growth = f"× {like / before:.2f}" if before else ""
        tried = f"; every run tried {brute * 1000:.0f} ms" if brute else ""
        tried += f" × {brute / brute_before:.2f}" if brute and brute_before else ""
        click.echo(f"{size} words: equal {equal * 1000:.2f} ms, most like {like * 1000:.1f} ms {growth}{tried}")
        size, before, brute_before = size * 2, like, brute


def _drawn(size: int) -> Words:
    """Words of drawn letters, 500 a page."""
    letters = "etaoinshrdlucmfw"
    texts = (
        "".join(DRAWS.at(number, place).choice("letter", letters) for place in range(2 + number % 7))
        for number in range(size)
    )
    return words_of((Word(number // 500, text, (0, 0, 1, 1)) for number, text in enumerate(texts)), "drawn")


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
