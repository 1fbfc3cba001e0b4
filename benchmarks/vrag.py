"""Examples of visual RAG packed and written a second at 128K, against tokenising their prompts once.

The records stage alone, with rankings, negatives and prices on disk: drafts, packing, records, lines of JSON. Both
sides take turns in one process; the medians of the rounds are printed. Passages are drawn with Zipf frequencies, or are
the words of the pages of PDFs; every question is about one of them and has a rare word of it as its answer.
"""

import cProfile
import pstats
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click
from passages import read_pages
from PIL import Image
from sources import LIMITS, spread
from staged import run_stages
from zipf import WORDS, rows

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import RECORDS, PackedRecord
from mmlongbench.building.stages.records import pack_block
from mmlongbench.io.files import write_whole
from mmlongbench.manifest.model import Manifest
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.rows import Record

NAMES = ("infoseek", "viquae")
"""With three permutations, and with six depths."""
CELL = "128K/00000"
RATE, RATIO = 20, 3
"""Targets: least examples/s, least ratio to tokenising."""
SHORTEST, STEP = 60, 37
"""Words of the shortest passage: whole sentences fill a passage to 60 to 100 words. The step mixes their lengths."""
PARTS = {
    "negatives read from the corpus": ("search.py", "negatives"),
    "places drawn": ("draws.py", "rank"),
    "prices looked up": ("pricing.py", "text"),
    "closing units chosen": ("pack.py", "closest_sum"),
    "units placed, prompt joined": ("pack.py", "_stood"),
    "records": ("records.py", "finished_record"),
    "items": ("records.py", "_items"),
    "lines of JSON": ("formats.py", "to_json"),
}
"""The functions that the table shows, which hardly call each other."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--documents", type=click.Path(path_type=Path, exists=True, file_okay=False), help="PDFs to take text of."
)
@click.option("--passages", default=20_000, show_default=True, help="Passages that are drawn.")
@click.option("--questions", type=click.IntRange(1, 32), default=16, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
def main(documents: Path | None, passages: int, questions: int, rounds: int) -> None:
    """Print examples/s of the records stage, prompts tokenised/s, and where the time goes."""
    with tempfile.TemporaryDirectory() as folder:
        found = rows(0, passages) if documents is None else _pieces(documents)
        pieces = [piece[: SHORTEST + n * STEP % (WORDS - SHORTEST + 1)] for n, piece in enumerate(found)]
        build_dir = _prepared(Path(folder), pieces, questions)
        for name in NAMES:
            cold = _packed(build_dir, name)
            done = [_round(build_dir, name, turn) for turn in range(rounds)]
            _show(build_dir, name, cold, done)
            _show_parts(build_dir, name)


def _pieces(documents: Path) -> Iterator[list[str]]:
    """The words of all pages, a hundred at a time."""
    words = (word for page in read_pages(sorted(documents.rglob("*.pdf")), LIMITS) for word in page.split())
    while len(piece := list(islice(words, WORDS))) == WORDS:
        yield piece


def _prepared(root: Path, pieces: list[list[str]], questions: int) -> BuildDir:
    """A build of drawn sources whose negatives are found."""
    write_sources(root, pieces, questions)
    images = root / "images"
    common = {"builder": "vrag", "corpus": root / "corpus.json", "lengths": ["8K"]}
    infoseek = {"questions": root / "infoseek.jsonl", "entities": root / "entities.jsonl", "images": images}
    viquae = {"questions": root / "viquae.jsonl", "images": images}
    datasets = [
        {**common, "name": "infoseek", "reader": "infoseek", "source": infoseek, "options": {"gold": "lead"}},
        {**common, "name": "viquae", "reader": "viquae", "source": viquae, "options": {"gold": "span"}},
    ]
    with run_stages(Manifest.model_validate({"datasets": datasets}), root / "release") as session:
        return session.build_dir


def write_sources(root: Path, pieces: list[list[str]], questions: int) -> None:
    """Articles of given pieces of text as Wikipedia's own dump has them, and questions about them."""
    articles = [
        {
            "_id": f"{n}",
            "wikipedia_id": f"{n}",
            "wikipedia_title": f"Sheet {n}",
            "text": [f"Sheet {n}", " ".join(piece)],
        }
        for n, piece in enumerate(pieces)
    ]
    _write(root / "corpus.json", articles)
    known = Counter(word for piece in pieces for word in set(piece))
    asked = list(_asked(pieces, known))[:questions]
    (root / "images").mkdir()
    for n, _ in asked:
        Image.new("RGB", (640, 480), (n % 256, 90, 120)).save(root / "images" / f"oven_{n:08d}.jpg")
    _write(root / "infoseek.jsonl", (_infoseek(n, answer) for n, answer in asked))
    _write(root / "entities.jsonl", ({"data_id": f"val_{n:08d}", "entity_text": f"Sheet {n}"} for n, _ in asked))
    _write(root / "viquae.jsonl", (_viquae(n, answer) for n, answer in asked))


def _asked(pieces: list[list[str]], known: Mapping[str, int]) -> Iterator[tuple[int, str]]:
    """Pieces that have a word of letters which few others have, with that word."""
    for number, piece in enumerate(pieces):
        rare = [word for word in piece if word.isascii() and word.isalpha() and len(word) > 3 and known[word] < 30]
        if rare:
            yield number, max(rare)


def _infoseek(n: int, answer: str) -> dict[str, Any]:
    said = {"question": "Which word of the sheet is rare?", "answer": [answer], "answer_eval": [answer]}
    return {"data_id": f"val_{n:08d}", "image_id": f"oven_{n:08d}", **said}


def _viquae(n: int, answer: str) -> dict[str, Any]:
    span = {"title": [f"Sheet {n}"], "wikipedia_id": [f"{n}"], "start_paragraph_id": [1], "end_paragraph_id": [1]}
    output = {"original_answer": answer, "answer": [answer], "provenance": [span]}
    question = f"Which word of Sheet {n} is rare?"
    return {"image": f"oven_{n:08d}.jpg", "input": "Which is rare?", "original_question": question, "output": output}


def _write(path: Path, lines: Iterable[Any]) -> None:
    write_whole(path, map(to_json, lines))


def _packed(build_dir: BuildDir, name: str) -> float:
    """Seconds of packing and writing all examples of 128K, with nothing in memory but the questions."""
    with Session(build_dir.out) as session:
        session.questions(name)
        shard = Shard("records", name, CELL)
        began = time.perf_counter()
        build_dir.write(shard, pack_block(session, shard))
        return time.perf_counter() - began


def _records(build_dir: BuildDir, name: str) -> list[Record]:
    lines = build_dir.read(Shard("records", name, CELL), RECORDS)
    return [line.record for line in lines if isinstance(line, PackedRecord)]


def _tokenised(build_dir: BuildDir, name: str) -> tuple[float, int]:
    """Seconds of tokenising their prompts, and how many there are; the texts are read and joined before."""
    dataset = Session(build_dir.out).dataset(name)
    texts = [dataset.builder.prompt(record).text for record in _records(build_dir, name)]
    began = time.perf_counter()
    for text in texts:
        dataset.pricer.counter.text.count(text)
    return time.perf_counter() - began, len(texts)


def _round(build_dir: BuildDir, name: str, turn: int) -> tuple[float, float, int]:
    """Seconds of both ways, and the examples; which one goes first changes from round to round."""
    if turn % 2:
        tokenised, count = _tokenised(build_dir, name)
        return _packed(build_dir, name), tokenised, count
    packed = _packed(build_dir, name)
    return packed, *_tokenised(build_dir, name)


def _show(build_dir: BuildDir, name: str, cold: float, rounds: list[tuple[float, float, int]]) -> None:
    packed, tokenised, count = (statistics.median(column) for column in zip(*rounds, strict=True))
    fills = [(r["length"] + r["tokens"]["reserve"]) / (128 * 1024) for r in _records(build_dir, name)]
    ratio = spread([slow / fast for fast, slow, _ in rounds])
    print(f"{name}: {count:.0f} examples of 128K, fill {min(fills):.5f} at least, {len(rounds)} rounds: medians")
    print(f"  packed and written  {count / packed:8.1f} examples/s   target >= {RATE}")
    print(f"  prices not yet kept {count / cold:8.1f} examples/s")
    print(f"  prompts tokenised   {count / tokenised:8.1f} examples/s   ratio {ratio}, target >= {RATIO}")


def _show_parts(build_dir: BuildDir, name: str) -> None:
    """Shares of one profiled run."""
    profile = cProfile.Profile()
    profile.runcall(_packed, build_dir, name)
    stats: Any = pstats.Stats(profile)
    spent = {(Path(file).name, function): entry[3] for (file, _, function), entry in stats.stats.items()}
    whole = spent["build_dir.py", "write"]
    shares = {part: spent[where] / whole for part, where in PARTS.items()}
    shares["the rest"] = 1 - sum(shares.values())
    print("  where the time goes (profiled)")
    for part, share in shares.items():
        print(f"    {part:32}{share:6.0%}")


if __name__ == "__main__":
    main()
