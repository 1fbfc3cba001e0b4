"""Scoring by rules: predictions a second on one core, against the public scorer's own functions; memory over examples.

20,000 drawn predictions, a few of one word, most of some sentences, over six metrics of the benchmark in turn. With
`--public`, a checkout of EdinburghNLP/MMLongBench, its `calculate_metrics` scores the same rows in the same run, in
turn; what differs is counted. The command is run whole on a drawn release of 2,000 and of 20,000 examples.
"""

import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import click

from mmlongbench.metrics.benchmark import binary_acc, cls_acc, doc_qa, mc_acc, rouge, rouge_scorer, soft_acc, sub_em
from mmlongbench.task import Draws

TEXT = (
    "the a harbour report says that in 2018 the north pier held 1,577 boats which is 12.5% more than Tern Rock and yes "
    "no table page label: 7 [1, 2] (B) C of visitors red blue Answer: 42 not answerable feet million"
)
ROUGE_ROWS = 40
Row = tuple[str, str, Any, str]
"""(metric, prediction, gold, format)."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--predictions", "count", default=20_000, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--public", type=click.Path(path_type=Path, exists=True, file_okay=False), help="A checkout to compare.")
def main(count: int, rounds: int, public: Path | None) -> None:
    """Print predictions a second, ratios, what differs, and the memory of the command."""
    rows = [_draw(Draws(("scoring benchmark", number)), number) for number in range(count)]
    scorers: dict[str, Callable[[Row], float]] = {"ours": _own_scorer()}
    theirs = _public_scorer(public) if public else None
    if theirs:
        scorers["public"] = theirs
    click.echo(f"{count} predictions of {statistics.mean(len(row[1]) for row in rows):.0f} characters, {rounds} rounds")
    _compare("six metrics", rows, scorers, rounds)
    summaries = [
        ("rouge", _text(Draws(("said", n)), 250), _text(Draws(("gold", n)), 450), "") for n in range(ROUGE_ROWS)
    ]
    _compare("rouge", summaries, scorers, rounds)
    with tempfile.TemporaryDirectory() as folder:
        found = {number: _command(Path(folder), rows[:number]) for number in (count // 10, count)}
    for number, (seconds, peak) in found.items():
        click.echo(f"the command over {number:,} examples: {number / seconds:,.0f}/s, peak RSS {peak:.0f} MB")


def _draw(draws: Draws, number: int) -> Row:
    said = _text(draws, 1 if number % 5 == 0 else draws.integer("words", 10, 120))
    whole = draws.integer("gold", 0, 9)
    rows: tuple[Row, ...] = (
        ("sub_em", said, ["Tern Rock", "the Rock of Terns"], ""),
        ("binary_acc", said, "Yes", ""),
        ("soft_acc", said, [1, whole], ""),
        ("mc_acc", said, whole % 4, ""),
        ("cls_acc", said, whole, ""),
        ("doc_qa", said, "1577", "Integer"),
        ("doc_qa", said, "12.5%", "Float"),
        ("doc_qa", said, "the north pier", "String"),
        ("doc_qa", said, '["red", "blue", "42"]', "List"),
    )
    return rows[number % len(rows)]


def _text(draws: Draws, words: int) -> str:
    known = TEXT.split()
    return " ".join(draws.choice(f"word {place}", known) for place in range(words))


def _own_scorer() -> Callable[[Row], float]:
    scorer = rouge_scorer()
    functions: dict[str, Callable[[str, Any, str], float]] = {
        "sub_em": lambda said, gold, form: sub_em(said, gold),
        "binary_acc": lambda said, gold, form: binary_acc(said, gold, 1),
        "soft_acc": lambda said, gold, form: soft_acc(said, gold),
        "mc_acc": lambda said, gold, form: mc_acc(said, gold),
        "cls_acc": lambda said, gold, form: cls_acc(said, gold),
        "doc_qa": doc_qa,
        "rouge": lambda said, gold, form: rouge(scorer, said, [gold])["rougeL_f1"],
    }
    return lambda row: functions[row[0]](*row[1:])


def _public_scorer(checkout: Path) -> Callable[[Row], float]:
    """Return the public `calculate_metrics`, without imports that scoring does not use."""
    for name in ("torch", "tqdm", "utils_prompt", "vlm_model", "vlm_model.model_utils"):
        sys.modules[name] = MagicMock()
    sys.path.insert(0, str(checkout))
    calculate = importlib.import_module("utils").calculate_metrics

    def score(row: Row) -> float:
        metric, said, gold, form = row
        key = {"binary_acc": "acc", "rouge": "rougeL_f1"}.get(metric, metric)
        found = calculate((said, 1) if metric == "binary_acc" else said, gold, metric, {"answer_format": form})
        return float(found[key])

    return score


def _compare(what: str, rows: list[Row], scorers: dict[str, Callable[[Row], float]], rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in scorers}
    scores: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, scorer in scorers.items():
            start = time.process_time()
            scores[name] = [scorer(row) for row in rows]
            times[name].append(time.process_time() - start)
    for name, seconds in times.items():
        ratio = statistics.median(other / own for other, own in zip(times[name], times["ours"], strict=True))
        differ = sum(abs(a - b) > 1e-9 for a, b in zip(scores[name], scores["ours"], strict=True))
        said = "" if name == "ours" else f"   ours is {ratio:.1f}× as fast, {differ} scores differ"
        click.echo(f"  {what}: {name:<7} {len(rows) / statistics.median(seconds):>10,.0f}/s{said}")


def _command(folder: Path, rows: list[Row]) -> tuple[float, float]:
    """(seconds of the processor, MB) of `mmlongbench score` over document questions and predictions of a KB."""
    public = folder / f"{len(rows)}/mmlb_data/documentQA/mmlongdoc_K8.jsonl"
    public.parent.mkdir(parents=True)
    said = folder / f"{len(rows)}.jsonl"
    with public.open("w") as records, said.open("w") as predictions:
        for number, (_, text, _, _) in enumerate(rows):
            pages = [f"mmlongbench-doc/harbour/harbour_page{page}.jpg" for page in range(12)]
            question = {"id": f"mmlongdoc_{number}", "doc_name": "harbour", "question": "Which pier?"}
            answer = {"answer": "the north pier", "answer_format": "String", "page_list": pages}
            records.write(json.dumps({**question, **answer}) + "\n")
            line = {
                "file": "documentQA/mmlongdoc_K8.jsonl",
                "id": f"mmlongdoc_{number}",
                "prediction": text.ljust(1000),
            }
            predictions.write(json.dumps(line) + "\n")
    command = [sys.executable, "-c", _RUN, "score", str(public), str(said), "--out", str(folder / "scores"), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), float(peak) / 1024


_RUN = """
import resource
from mmlongbench.cli import main
try:
    main()
except SystemExit:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


if __name__ == "__main__":
    main()
