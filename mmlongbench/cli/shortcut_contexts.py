"""Prints what models answer in several contexts: means, paired differences, verdicts, and the questions to prune."""

from collections.abc import Iterable, Iterator, Sequence

from mmlongbench.cli.console import say
from mmlongbench.cli.drawing import Table, plain, print_table
from mmlongbench.lengths import format_length
from mmlongbench.scoring.report.estimates import MIN_CLUSTERS
from mmlongbench.scoring.report.resampling import LEVEL, RESAMPLES
from mmlongbench.shortcuts.contexts.blind import MAX_LUCK
from mmlongbench.shortcuts.contexts.needs import FEW, MARGIN, POWER, UNSOLVED
from mmlongbench.shortcuts.contexts.results import BlindQuestion, ContextAudit, ContextMean, ContextRow, Need

_REASONS = {FEW: FEW, UNSOLVED: "full is not above chance"}
"""The reasons of undecided verdicts, as short as a column needs."""
_SHOWN = 10
"""The maximum number of questions of a dataset that are listed; the JSON has all."""


def show_contexts(audit: ContextAudit) -> None:
    """Print a table of means and a table of differences for each model, the questions to prune, and the notes."""
    say(f"scores from 0 to 100; [low, high]: {LEVEL:.0%} intervals over {RESAMPLES:,} resamples of clusters")
    for model in audit.models:
        own = [row for row in audit.rows if row.model == model]
        shown = [row for row in own if not row.facet or any(each.low is not None for each in row.means)]
        _show_means(model, audit.contexts, shown)
        _show_differences(model, shown)
        if left_out := len(own) - len(shown):
            say(f"{left_out:,} groups of fewer than {MIN_CLUSTERS} clusters are not shown; the JSON has them")
    _show_blind(audit)
    for note in audit.notes:
        say(note)


def _show_means(model: str, contexts: Sequence[str], rows: Sequence[ContextRow]) -> None:
    shown = [context for context in contexts if any(each.context == context for row in rows for each in row.means)]
    table = _table(f"{model}: mean score in each context", ("dataset", "length", "group"))
    for head in ("chance", *map(_name, shown)):
        table.add_column(plain(head), justify="right", no_wrap=True)
    for row in rows:
        means = {each.context: each for each in row.means}
        cells = (_mean(means[context]) if context in means else "" for context in shown)
        table.add_row(*_group(row), _percent(row.chance), *cells)
    print_table(table)


def _show_differences(model: str, rows: Iterable[ContextRow]) -> None:
    heads = ("dataset", "length", "group", "full −")
    table = _table(f"{model}: paired differences; survival = (context − chance) / (full − chance)", heads)
    for head in ("questions", "difference", "survival"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in rows:
        for each in row.differences:
            table.add_row(
                *_group(row),
                each.context,
                f"{each.questions:,}",
                _percent(each.mean) + _ends(each.low, each.high),
                "–" if each.survival is None else f"{each.survival:.0%}" + _ends(each.survival_low, each.survival_high),
                _verdict(each.need) if each.need else "",
            )
    if table.row_count:
        print_table(table)
        say(
            f"needs: the score falls by more than {100 * MARGIN:g} points; does not need: by less; both with "
            f"{LEVEL:.0%} confidence; shows: with a probability of {POWER:.0%}"
        )


def _verdict(need: Need) -> str:
    """Return a verdict in words; for an undecided one, what the questions could show and how many would decide."""
    if need.verdict != "undecided":
        return f"{need.verdict} the {need.part}"
    shown = "" if need.smallest is None else f", shows falls from {100 * need.smallest:.0f}"
    more = f", about {need.needed:,} would decide" if need.needed else ""
    return f"undecided (the {need.part}): {_REASONS[need.reason]}{shown}{more}"


def _show_blind(audit: ContextAudit) -> None:
    if not audit.blind_counts:
        return
    table = _table("questions that are answered without the context", ("dataset",))
    for head in ("asked", "all answers right", "two answers offered", "listed", "expected by luck"):
        table.add_column(head, justify="right", no_wrap=True)
    for each in audit.blind_counts:
        numbers = (each.questions, each.right, each.binary, each.listed)
        table.add_row(each.dataset, *(f"{number:,}" for number in numbers), f"{each.by_luck:.1f}")
    print_table(table)
    say(f"listed: guesses do as well with a probability of at most {MAX_LUCK:.0%}; none with two answers or fewer")
    for line in _listed(audit):
        say(line)


def _listed(audit: ContextAudit) -> Iterator[str]:
    for counts in audit.blind_counts:
        found = [each for each in audit.blind if each.dataset == counts.dataset]
        if found:
            more = f", and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            yield f"  {counts.dataset}: {', '.join(map(_question, found[:_SHOWN]))}{more}"


def _question(found: BlindQuestion) -> str:
    return f"{found.id} ({found.right} of {found.answers}, luck {found.luck:.2g})"


def _table(title: str, heads: Iterable[str]) -> Table:
    table = Table(title=plain(title), title_justify="left", box=None)
    table.padding, table.pad_edge = (0, 2, 0, 0), False
    for head in heads:
        table.add_column(head, no_wrap=True)
    return table


def _group(row: ContextRow) -> tuple[str, str, str]:
    length = "all" if row.length is None else format_length(row.length)
    return row.dataset, length, f"{row.facet}: {row.value}" if row.facet else "all"


def _name(context: str) -> str:
    return context or "full"


def _mean(mean: ContextMean) -> str:
    return _percent(mean.mean) + _ends(mean.low, mean.high)


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{_percent(low)}, {_percent(high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
