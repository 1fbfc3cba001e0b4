"""Collects the scores of single examples under every metric, and under every value of a metric's parameter.

A detail called `<parameter>_<value>`, such as `alpha_0.5`, is the score under another value of a parameter. If a metric
has several such details, these scores are used instead of the metric's own score.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mmlongbench.scoring.report.columns import ABSENT, Scores, derived, grouped, values_of
from mmlongbench.statistics import Floats, Ints

_VARIANT = re.compile(r"[a-z]+_[0-9.]+")


@dataclass(frozen=True, slots=True)
class Scored:
    """A score for each example, model and metric; examples and models are numbered in order."""

    by_metric: Mapping[str, Floats]
    """By metric, or by metric and parameter value: a table with a row for each example and a column for each model. NaN
    means that there is no score, or that the example is not the same in all scores (see `differing`)."""
    file: Ints
    """The number of each example's file."""
    question: Ints
    """The number of each example's question. A question has the same number in two files only if these files have
    exactly the same questions."""
    of_line: "pd.Series[int]"
    """The number of the example that each line is about."""


def vectors(scores: Scores) -> Scored:
    """Return the score of each example; an absent prediction scores 0 under all values of a parameter."""
    lines, names = scores.lines, values_of(scores.details["name"])
    example = lines.groupby(["file", "question", "placement"], observed=True).ngroup()
    is_one = len(scores.profiles) == 1
    label = derived(lines["series"], lambda series: series.label if is_one else series.full_label)
    every = pd.DataFrame({"metric": label.cat.codes, "model": lines["model"].cat.codes, "example": example})
    parameters = [name for name in names if _VARIANT.fullmatch(name)]
    varied = scores.details[scores.details["name"].isin(parameters)].join(every, on="line", how="inner")
    several = varied.groupby(["metric", "model"])["name"].transform("nunique") > 1
    # a function, because a column that is given to a frame without rows gives it rows
    varied = varied[several].assign(name=lambda kept: kept["name"].cat.codes)
    absent = every[lines["status"] == ABSENT].merge(varied[["metric", "model", "name"]].drop_duplicates())
    plain = every.assign(name=-1, value=lines["score"]).loc[~lines["series"].isin(lines["series"][varied["line"]])]
    long = pd.concat([plain, absent.assign(value=0.0), varied])
    different = example[lines["is_different"]].unique()
    labels, by_metric = values_of(label), dict[str, Floats]()
    for (metric, name), at in grouped(long, ["metric", "name"]).items():
        some, table = long.iloc[at], np.full((example.max() + 1, len(scores.models)), np.nan)
        table[some["example"], some["model"]] = some["value"]
        table[different] = np.nan
        by_metric[f"{labels[metric]} {names[name]}" if name >= 0 else labels[metric]] = table
    file, question = lines["file"].cat.codes, lines["question"].cat.codes
    held = question.groupby(file).agg(frozenset)
    population = file.map(dict(zip(held.index, pd.factorize(held)[0], strict=True)))
    of_each = pd.DataFrame({"file": file, "question": question.groupby([population, question]).ngroup()})
    first = of_each.groupby(example).first()
    return Scored(by_metric, first["file"].to_numpy(), first["question"].to_numpy(), example)
