"""Says in a few words what a file costs on a model, for tables in a terminal or on a page."""

from mmlongbench.release.findings import ModelTally


def tokens_text(tally: ModelTally) -> str:
    """Return the mean tokens of a file on a model, the share of examples over the window, and how many are refused.

    Returns `n/a` if an example has too many images, `refused` if the model refuses every example, and `not counted` if
    no example could be counted.
    """
    if tally.over_images:
        return "n/a"
    if not tally.tokens.n:
        return "refused" if tally.refused else "not counted"
    counted = tally.tokens.n + tally.refused
    over = f" ({tally.over_window / counted:.0%} over)" if tally.over_window else ""
    return f"{short_tokens(tally.tokens.mean)}{over}{f' ({tally.refused} refused)' if tally.refused else ''}"


def short_tokens(tokens: float) -> str:
    """Return a number of tokens for a narrow column.

    >>> short_tokens(890), short_tokens(7_540), short_tokens(2_357_953)
    ('890', '7.5K', '2,358K')
    """
    if tokens < 1000:
        return f"{tokens:.0f}"
    return f"{tokens / 1000:,.1f}K" if tokens < 100_000 else f"{tokens / 1000:,.0f}K"
