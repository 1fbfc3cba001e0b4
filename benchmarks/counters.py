"""Ten counters, three datasets, five lengths: how full examples are, and whether an audit counts the same tokens again.

The counters are the benchmark's, and nine model rules with a byte-level tokenizer, trained here on this repository's
texts, whose tokens cross the borders of units. Prices of units are then only near, so contexts are counted as a whole
and packed again. A counter whose prices are exact takes units until the next one does not fit: `lost` is the most by
which a context is less full than that.
"""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
from worlds import decks, draw_photographs

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.building.stages import records
from mmlongbench.draft import ContextDraft
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
Lost = dict[tuple[str, int], float]


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
    print("fill: mean, smallest; over the length; bad: problems of the audit; lost: what more units would add")
    print(f"{'counter':<23}{'dataset':<12}{'n':>5}{heads}{'over':>5}{'bad':>4}{'lost':>8}")
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
def _tried_with_more() -> Iterator[Lost]:
    """Pack each context once more, with the least room by prices that takes another unit; if even that one fits the
    budget when it is counted, note the share of the length by which it is fuller.
    """
    lost: Lost = {}
    examples = packing.examples

    def trying(
        draft: ContextDraft, budget: TokenBudget, placements: Sequence[Any], pricer: Pricer, draws: mt.Draws
    ) -> list[packing.PackedExample]:
        made = examples(draft, budget, placements, pricer, draws)
        whole, units = max(example.count.total for example in made), len(made[0].units)
        for slack in range(0, -budget.length // 4, -max(1, budget.length // 2048)):
            more = packing.pack(draft, budget, pricer, slack)
            if len(more.units) > units:
                tried = packing._everywhere(draft, more, budget, placements, pricer, draws)
                fuller = max(example.count.total for example in tried)
                lost[draft.id, budget.length] = (fuller - whole) / budget.length if fuller <= budget.room else 0.0
                break
        return made

    with patch.object(records, "examples", trying):
        yield lost


def _measured(dataset: dict[str, Any], out: Path, questions: int) -> tuple[list[tuple[float, ...]], int, float]:
    """Build and audit a release; return the fills of the examples of each length, the number of problems, and the most
    that a context could have been fuller.
    """
    with _tried_with_more() as lost:
        mm.build(Manifest.model_validate({"datasets": [dataset]}), out, limit=questions)
    problems = sum(problem.count for line in mm.audit(out) for problem in line.problems)
    fills, release = [], mm.open_release(out)
    for length in dataset["lengths"]:
        found = release.examples(dataset["name"], length)
        fills.append(tuple((example.tokens.total + example.reserve) / length for example in found))
    return fills, problems, max(lost.values(), default=0.0)


def _show(counter: str, dataset: str, fills: list[tuple[float, ...]], problems: int, lost: float) -> None:
    cells = "".join(f"{statistics.mean(cell):>8.4f}{min(cell):>7.4f}" for cell in fills)
    examples, over = sum(map(len, fills)), sum(fill > 1 for cell in fills for fill in cell)
    print(f"{counter:<23}{dataset:<12}{examples:>5}{cells}{over:>5}{problems:>4}{lost:>8.2%}", flush=True)


if __name__ == "__main__":
    main()
