"""Selects the lines to compare: for each file, metric and profile, the examples that all models were given."""

import pandas as pd

from mmlongbench.errors import ReleaseError

_TABLE = ["file", "metric", "profile"]
"""The columns in which lines must have the same values; only then are their models compared."""


def shared(lines: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the lines of examples that all models were given, and sentences about what was left out.

    So models with different samples of a file, or with lost outputs, are compared on the examples that they share.

    Raises:
        ReleaseError: the models of a file share no example.

    """
    tables = lines.groupby(_TABLE, observed=True)
    asked = lines.groupby([*_TABLE, "question", "placement"], observed=True)["model"].transform("size")
    is_shared = asked == tables["model"].transform("nunique")
    left_out = lines[~is_shared].groupby(_TABLE, observed=True).indices
    notes = [_said(some, int(is_shared[some.index].sum())) for some in map(tables.get_group, left_out)]
    return lines[is_shared], tuple(sorted(notes))


def _said(lines: pd.DataFrame, in_common: int) -> str:
    """Return a sentence that says how many examples each model was given; raise an error if the models share none."""
    name, series = lines["file"].iloc[0].name, lines["series"].iloc[0]
    by_model = lines.groupby("model", observed=True).size()
    counts = ", ".join(f"{model} {count:,}" for model, count in by_model.items())
    if not in_common:
        raise ReleaseError(
            f"{series.label}, {name}: models were asked different examples ({counts}) and share none: scores of "
            "several samples or releases are mixed; score all models on one, or report each from a folder of its own"
        )
    every = in_common // len(by_model)
    return f"{name}, {series.label}: models were asked different examples ({counts}); here are the {every:,} they share"
