"""Ten counters, three datasets, five lengths: how full examples are, and whether an audit counts the same tokens again.

The counters are the benchmark's, and nine model rules with a byte-level tokenizer, trained here on this repository's
texts, whose tokens cross the borders of units. Prices of units are then only near, so contexts are counted as a whole
and packed again. The last column compares with the fill that the first plan by prices would have, if prices were exact.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
from worlds import decks, draw_photographs

import mmlongbench as mm
from mmlongbench.draft import Draft
from mmlongbench.lengths import TokenBudget, parse_length
from mmlongbench.manifest.model import Manifest
from mmlongbench.packing import pack as packing
from mmlongbench.packing.pricing import Pricer
from tests.drawing.mm_niah.sources import draw_hidden_sentences

MODELS = (
    *("qwen2.5-vl", "qwen3-vl", "internvl2.5", "llava-onevision-nested", "deepseek-vl2", "gemma3", "minicpm-v-2.6"),
    *("idefics2", "gpt-4o"),
)
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How the tokenizer of Qwen2 cuts texts into words."""
LENGTHS = "8K,16K,32K,64K,128K"
Fills = dict[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class Cell:
    """The examples of a dataset at a length."""

    fills: tuple[float, ...]
    planned: tuple[float, ...]
    """The fill of each context by the first plan."""
    over: int


def web_pages(root: Path) -> dict[str, Any]:
    """Sentences hidden in the text of web pages."""
    source = draw_hidden_sentences(root, pages=600, questions=8)
    return {"builder": "mm_niah", "reader": "mm_niah", "source": {name: str(path) for name, path in source.items()}}


def slides(root: Path) -> dict[str, Any]:
    """Questions about decks of slides, each slide an image."""
    return {"builder": "docvqa", **decks(root)}


def photographs(root: Path) -> dict[str, Any]:
    """One photograph among others."""
    source = {**draw_photographs(root, 2600, 8), "questions": str(root / "single.json")}
    return {"builder": "visual_haystack", "reader": "visual_haystacks", "source": source}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--questions", default=2, show_default=True, help="Of each dataset.")
@click.option("--lengths", default=LENGTHS, show_default=True)
@click.option("--only", default="", help="Counters whose names begin so.")
def main(questions: int, lengths: str, only: str) -> None:
    """Print a row for each counter and dataset."""
    tokens = [parse_length(length) for length in lengths.split(",")]
    heads = "".join(f"{length:>15}" for length in lengths.split(","))
    print("fill: mean and smallest; less: the most by which the fill of a length is under that of the plan")
    print(f"{'counter':<23}{'dataset':<12}{'n':>5}{heads}{'over':>5}{'bad':>4}{'less':>8}")
    with tempfile.TemporaryDirectory() as folder:
        text = _byte_level(Path(folder) / "byte-level.json")
        for world in (web_pages, slides, photographs):
            root = Path(folder) / world.__name__
            root.mkdir()
            source = world(root)
            for name in (name for name in ("default", *MODELS) if name.startswith(only)):
                counter = {} if name == "default" else {"counter": {"image": name, "text": str(text)}}
                dataset = {**source, **counter, "name": world.__name__, "lengths": tokens, "seed": 42}
                _show(name, world.__name__, *_measured(dataset, root / f"release-{name}", questions))


def _byte_level(path: Path) -> Path:
    """Train a tokenizer on the texts of this repository."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(QWEN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=6000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    here = Path(__file__).resolve().parents[1]
    texts = sorted(file for end in ("md", "py") for file in (*here.glob(f"docs/*.{end}"), *here.glob(f"*/*/*.{end}")))
    tokenizer.train_from_iterator((file.read_text("utf-8") for file in texts), trainer)
    tokenizer.save(str(path))
    return path


@contextmanager
def _first_plans() -> Iterator[Fills]:
    """Note how full each context is by the first plan."""
    fills: Fills = {}
    pack = packing.pack

    def noting(draft: Draft, budget: TokenBudget, pricer: Pricer, slack: int = 0) -> packing.Packed:
        packed = pack(draft, budget, pricer, slack)
        fills.setdefault((draft.id, budget.length), budget.fill(packing._price(draft, packed, pricer)))
        return packed

    with patch.object(packing, "pack", noting):
        yield fills


def _measured(dataset: dict[str, Any], out: Path, questions: int) -> tuple[list[Cell], int]:
    """Build and audit a release; return a cell for each length, and the number of problems."""
    with _first_plans() as plans:
        mm.build(Manifest.model_validate({"datasets": [dataset]}), out, limit=questions)
    problems = sum(problem.count for line in mm.audit(out) for problem in line.problems)
    cells, release = [], mm.open_release(out)
    for length in dataset["lengths"]:
        sizes = [example.tokens.total + example.reserve for example in release.examples(dataset["name"], length)]
        planned = tuple(fill for (_, at), fill in plans.items() if at == length)
        cells.append(Cell(tuple(size / length for size in sizes), planned, sum(size > length for size in sizes)))
    return cells, problems


def _show(counter: str, dataset: str, cells: list[Cell], problems: int) -> None:
    fills = "".join(f"{statistics.mean(cell.fills):>8.4f}{min(cell.fills):>7.4f}" for cell in cells)
    less = max(statistics.mean(cell.planned) - statistics.mean(cell.fills) for cell in cells)
    examples, over = sum(len(cell.fills) for cell in cells), sum(cell.over for cell in cells)
    print(f"{counter:<23}{dataset:<12}{examples:>5}{fills}{over:>5}{problems:>4}{less:>8.2%}", flush=True)


if __name__ == "__main__":
    main()
