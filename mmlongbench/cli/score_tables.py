"""Tables of scores by dataset and length, and of problems of predictions."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from mmlongbench.cli.console import say
from mmlongbench.cli.drawing import Table, print_table
from mmlongbench.lengths import format_length
from mmlongbench.scoring.problems import REASONS, Problems
from mmlongbench.scoring.running import Outcome
from mmlongbench.scoring.tallies import Tally
from mmlongbench.task.metric import PROFILES, Provenance


def show_scores(outcome: Outcome, problems: Problems, out: Path | None, *, is_quiet: bool) -> None:
    """Print a table for each profile, the notes and costs, and the problems; if quiet, only the problems."""
    if not is_quiet:
        if out:
            _show_tables(outcome)
        for line in _costs(outcome):
            say(line)
    for line in _wrong(outcome, problems):
        say(line, err=True)
    if not is_quiet:
        compared = f"`mmlongbench report {shlex.quote(str(out.parent))}` compares models" if out else ""
        nothing = "" if outcome.fits else ": no prediction fits an example"
        say(f"{out}: written; {compared}" if out else f"nothing is written{nothing}")


def _show_tables(outcome: Outcome) -> None:
    """Print a table for each profile."""
    for profile in PROFILES:
        metrics = {name: found for name, found in outcome.provenances.items() if found.profile == profile}
        cells = {key: tally for key, tally in outcome.tallies.cells.items() if key[0] in metrics}
        if cells:
            _show_table(f"scores of 100 (examples), {profile}", cells)
            for line in _provenances(metrics):
                say(line)


def _provenances(metrics: Mapping[str, Provenance]) -> Iterator[str]:
    """Yield a line for all metrics that follow the same code or paper with the same choices. Metrics with neither are
    left out.
    """
    together: dict[Provenance, list[str]] = {}
    for name, found in metrics.items():
        together.setdefault(found, []).append(name)
    for found, names in together.items():
        said = [*([f"follows {found.follows}"] if found.follows else []), *found.choices]
        if said:
            yield f"{', '.join(names)}: {'; '.join(said)}"


def _show_table(title: str, cells: Mapping[tuple[str, str, int], Tally]) -> None:
    lengths = sorted({length for _, _, length in cells})
    rows: dict[tuple[str, str], dict[int, Tally]] = {}
    for (metric, dataset, length), tally in cells.items():
        rows.setdefault((metric, dataset), {})[length] = tally
    table = Table(title=title, title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for name in ("dataset", "metric"):
        table.add_column(name, no_wrap=True)
    for length in lengths:
        table.add_column(format_length(length), justify="right", no_wrap=True)
    for (metric, dataset), tallies in rows.items():
        shown = (_cell(tallies[length]) if length in tallies else "" for length in lengths)
        table.add_row(dataset, metric, *shown)
        figures = {length: {**tally.of_samples, **tally.further} for length, tally in tallies.items()}
        for figure in dict.fromkeys(name for found in figures.values() for name in found):
            values = (figures.get(length, {}).get(figure) for length in lengths)
            table.add_row("", f"  {figure}", *(_percent(value) for value in values))
    print_table(table)


def _cell(tally: Tally) -> str:
    """Return a mean with its number of examples; N/A if the model cannot be given some of the examples."""
    if tally.skipped:
        return f"N/A ({tally.skipped:,} of {tally.examples:,} skipped)"
    return f"{_percent(tally.mean)} ({tally.examples:,})"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


_REASONING = {
    "stripped": "reasoning, which is left out of what is scored",
    "unclosed": "reasoning that was cut off; only the text before it is scored",
    "kept": "reasoning, which is scored with the rest",
}


def _costs(outcome: Outcome) -> Iterator[str]:
    yield from outcome.notes
    for kind, words in _REASONING.items():
        if number := outcome.reasoning.get(kind):
            who = "prediction has" if number == 1 else "predictions have"
            yield f"reasoning: {number:,} {who} {words}"
    if outcome.skipped:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in sorted(outcome.skipped.items()))
        total = sum(outcome.skipped.values())
        what = "example" if total == 1 else "examples"
        yield f"skipped: {total:,} {what} that the model cannot take ({reasons}): N/A, not 0"
    for metric, usage in outcome.usage.items():
        yield f"{metric}: {', '.join(f'{name} {value:,.10g}' for name, value in usage.items())}"


def _wrong(outcome: Outcome, problems: Problems) -> Iterator[str]:
    for reason, found in problems.summary().items():
        first = "; ".join(found["first"])
        more = ", …" if found["count"] > len(found["first"]) else ""
        yield f"{reason}: {found['count']:,} {REASONS[reason]}: {first}{more}"
    cells = outcome.tallies.cells.items()
    for name in dict.fromkeys(metric for metric, _, _ in outcome.tallies.cells):
        failed = [tally for (metric, _, _), tally in cells if metric == name and tally.failed]
        if failed:
            count = sum(tally.failed for tally in failed)
            yield f"failed: {name}: {count:,} examples have no score, first {failed[0].first_failure}"
        partly = [tally for (metric, _, _), tally in cells if metric == name and tally.failed_samples]
        if partly:
            count = sum(tally.failed_samples for tally in partly)
            what = f"{count:,} samples of examples with other samples have no score"
            yield f"failed: {name}: {what}, first {partly[0].first_failure}"
