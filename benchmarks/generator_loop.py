"""Text-needle NIAH at 128K against the usual generator loop: examples a second, planning and writing included.

The loop is RULER's (`niah.py`, Hsieh et al. 2024, arXiv:2404.06654) over the same prose and questions, with the same
Llama 2 tokenizer: a binary search for the number of sentences that fit, which tokenises the whole prompt at each trial;
then for every sample the needle goes between two sentences, and the whole prompt is tokenised once more, with fewer
sentences where it is too long. RULER searches once for all samples of a length, over one haystack; a generator whose
haystack differs from sample to sample, as the engine's does, has to search for each. Both are shown, the latter for the
first question alone. Like RULER, the loop counts the token ids of the library `tokenizers`; in the last row it counts
by the engine's own way, which knows most words. It is spared what RULER pays beside it: its sentences are split once.

The engine: everything from the manifest to the lock (cold); the records stage of a process that has priced nothing; the
same once prices are known (warm). All take turns in one process; medians over rounds of CPU time, and of wall time.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from worlds import run_stages, spread

from builders.mm_niah.builder import INSTRUCTION
from mmlongbench.building.build import build
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import RECORDS, PackedRecord
from mmlongbench.building.stages.records import pack_rows
from mmlongbench.io.files import write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import Manifest
from mmlongbench.sentences import sentences
from mmlongbench.task import DEPTHS, Draws
from mmlongbench.task.file_formats import to_json
from tests.drawing.mm_niah.pages import page_of
from tokenization import load_tokenizer

NAME, LENGTH, RESERVE = "retrieval-text", 128 * K, 256
PAGES = 600
"""About 800K tokens: the search begins with prompts of up to three times the length."""
STEP = 500
"""Sentences of the smallest haystack, and what is given up where a prompt is too long, as RULER has it."""
TARGET = 20
CELL = Shard("records", NAME, "128K/measured")
DRAWS = Draws(("generator loop",))


@dataclass(frozen=True, slots=True)
class Loop:
    """The usual generator."""

    count: Callable[[str], int]
    """Returns the tokens of a text."""
    hay: Sequence[str]
    """Sentences."""
    asked: Sequence[dict[str, str]]

    def samples(self, *, searches_each: bool) -> Iterator[dict[str, object]]:
        """A sample for each question and depth."""
        size = self._search(self.asked[0], DEPTHS[0])
        for row in self.asked:
            for depth in DEPTHS:
                yield self._sample(row, depth, self._search(row, depth) if searches_each else size)

    def _search(self, row: dict[str, str], depth: float) -> int:
        """The most sentences that fit, between a few and thrice what they are estimated to be."""
        tokens = self.count(_prompt(self.hay[:STEP], row, depth))
        low, high, best = STEP, min(len(self.hay), max(2 * STEP, 3 * LENGTH * STEP // tokens)), STEP
        while low <= high:
            size = (low + high) // 2
            if self.count(_prompt(self.hay[:size], row, depth)) + RESERVE <= LENGTH:
                low, best = size + 1, size
            else:
                high = size - 1
        return best

    def _sample(self, row: dict[str, str], depth: float, size: int) -> dict[str, object]:
        while (used := self.count(prompt := _prompt(self.hay[:size], row, depth)) + RESERVE) > LENGTH:
            size -= STEP
        return {"input": prompt, "outputs": [row["answer"]], "length": used, "depth": depth}


def _prompt(hay: Sequence[str], row: dict[str, str], depth: float) -> str:
    """Sentences, with the needle at a depth that is counted in them."""
    at = int(len(hay) * depth)
    context = " ".join((*hay[:at], row["needle"], *hay[at:]))
    return f"{INSTRUCTION.format(letter='')}{context}\n\nQuestion: {row['question']}\nAnswer:"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--questions", type=click.IntRange(1, 32), default=16, show_default=True, help="Each at six depths.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
def main(questions: int, rounds: int) -> None:
    """Print examples a second of the engine and of the loop, and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        asked = _draw(root / "source", questions)
        pages = sorted((root / "source/pages").iterdir())
        hay = [sentence for page in pages for text in page.read_text().split("\n\n") for sentence in sentences(text)]
        llama2 = load_tokenizer("llama2")
        loop = Loop(lambda text: len(llama2.encode(text)), hay, asked)
        manifest, build_dir = _manifest(root / "source"), BuildDir(root / "work")
        warm = run_stages(_without_cell(manifest), build_dir.out)
        ways: dict[str, Callable[[], None]] = {
            "engine, manifest to lock": lambda: _build(manifest, root),
            "engine, records, cold": lambda: _records(Session(build_dir.out)),
            "engine, records, warm": lambda: _records(warm),
            "loop, searched once": lambda: _looped(loop, root, searches_each=False),
            "loop, searched for each": lambda: _looped(replace(loop, asked=asked[:1]), root, searches_each=True),
            "loop, the engine's count": lambda: _looped(replace(loop, count=llama2.count), root, searches_each=False),
        }
        examples = dict.fromkeys(ways, 6 * questions) | {"loop, searched for each": 6}
        spent = [{way: _timed(do, examples[way]) for way, do in ways.items()} for _ in range(rounds)]
        _check_engine(build_dir, 6 * questions)
        _check_loop(root, asked)
    _show(spent, 6 * questions)


def _draw(folder: Path, questions: int) -> list[dict[str, str]]:
    """Pages of prose, and questions about sentences that are in none of them."""
    (folder / "pages").mkdir(parents=True)
    for number in range(PAGES):
        text = "\n\n".join(page_of(DRAWS.at("page", number)))
        (folder / "pages" / f"page{number:04}.txt").write_text(text)
    asked = []
    for number in range(questions):
        place, code = f"gate {number + 1}", f"zq{DRAWS.integer(f'code {number}', 10**6, 10**7 - 1)}"
        needle = f"The pass phrase of {place} is {code}."
        asked.append({"question": f"What is the pass phrase of {place}?", "answer": code, "needle": needle})
    rows = [{"question": row["question"], "answer": row["answer"], "needles": [row["needle"]]} for row in asked]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return asked


def _manifest(folder: Path) -> Manifest:
    source = {"questions": str(folder / "questions.jsonl"), "documents": str(folder / "pages")}
    dataset = {"name": NAME, "builder": "mm_niah", "reader": "own_pages", "source": source, "lengths": ["128K"]}
    return Manifest.model_validate({"datasets": [{**dataset, "reserve": RESERVE}]})


def _without_cell(manifest: Manifest) -> Manifest:
    """Of the shortest length: what is packed to prepare is hardly anything of what is measured."""
    return Manifest(datasets=tuple(each.model_copy(update={"lengths": (8 * K,)}) for each in manifest.datasets))


def _build(manifest: Manifest, root: Path) -> None:
    out = root / "release"
    shutil.rmtree(out, ignore_errors=True)
    build(manifest, out, LocalExecutor(1, Progress(is_shown=False)))


def _records(session: Session) -> None:
    packed = pack_rows(session.dataset(NAME), session.questions(NAME), LENGTH)
    session.build_dir.write(CELL, (line for line, _ in packed))


def _looped(loop: Loop, root: Path, *, searches_each: bool) -> None:
    write_whole(root / "loop.jsonl", map(to_json, loop.samples(searches_each=searches_each)))


def _timed(do: Callable[[], None], examples: int) -> tuple[float, float]:
    """Return the seconds that an example took: CPU time and wall time."""
    clocks = time.process_time(), time.perf_counter()
    do()
    return (time.process_time() - clocks[0]) / examples, (time.perf_counter() - clocks[1]) / examples


def _check_engine(build_dir: BuildDir, examples: int) -> None:
    """Check that every example fits the length and is nearly full, and that its needle is at its depth."""
    records = [line.record for line in build_dir.read(CELL, RECORDS) if isinstance(line, PackedRecord)]
    fills = [(record["length"] + RESERVE) / LENGTH for record in records]
    off = max(abs(record["depth"] - record["depth_achieved"]) for record in records)
    print(f"engine: {len(records)} of {examples} examples, fill {_span(fills)}, needles off by {off:.4f} at most")


def _check_loop(root: Path, asked: Sequence[dict[str, str]]) -> None:
    """Check the same for the loop. Its depths are counted in sentences; here they are measured in characters."""
    lines = [json.loads(line) for line in (root / "loop.jsonl").read_text().splitlines()]
    needles = {row["answer"]: row["needle"] for row in asked}
    at = [line["input"].index(needles[line["outputs"][0]]) / len(line["input"]) for line in lines]
    off = max(abs(place - line["depth"]) for place, line in zip(at, lines, strict=True))
    fills = [line["length"] / LENGTH for line in lines]
    print(f"loop:   {len(lines)} examples, fill {_span(fills)}, needles off by {off:.4f} at most")


def _span(fills: Sequence[float]) -> str:
    return f"{min(fills):.4f} to {max(fills):.4f}"


def _show(spent: Sequence[Mapping[str, tuple[float, float]]], examples: int) -> None:
    """Print the rates, and the ratio of the engine to each loop by CPU time, compared round by round."""
    print(f"{examples} examples of 128K, {len(spent)} rounds: medians (least to most)")
    for way in spent[0]:
        cpu, wall = (spread([1 / times[way][clock] for times in spent]) for clock in (0, 1))
        print(f"  {way:<26}{cpu:>24} examples/s of CPU {wall:>24} of wall")
    for loop in (way for way in spent[0] if way.startswith("loop")):
        for engine in (way for way in spent[0] if way.startswith("engine")):
            ratio = spread([times[loop][0] / times[engine][0] for times in spent], ".1f")
            target = f", target >= {TARGET}" if loop.endswith("once") else ""
            print(f"  {engine} / {loop}: {ratio}{target}")


if __name__ == "__main__":
    main()
