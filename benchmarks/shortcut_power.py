"""The power of the shortcut audit: how often a leak of known size is found, by number of questions."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import click
import numpy as np

from mmlongbench.shortcuts.golds import Group, find_golds
from mmlongbench.shortcuts.guesses import guess_answers
from mmlongbench.shortcuts.measured import Floats, Measured, uniforms
from mmlongbench.shortcuts.priors import free_prior, offered_prior
from mmlongbench.shortcuts.verdicts import judge

SIZES = (40, 160, 640)
"""Questions. At chance one half, a test that knows where to look shows an excess of 20, 10 and 5 points with a
probability of 0.8 at about 37, 158 and 620 questions."""
EXCESS = (0, 5, 10, 20)
"""Points above chance; 0 shows the false alarms."""
OTHERS = 19
"""How many clean findings a release has besides: so many that a leak must be chosen among 20."""
UNITS = 20
"""Units of a context."""


@click.command()
@click.option("--rounds", default=100, show_default=True, help="Files that are drawn for each cell.")
@click.option("--processes", default=2, show_default=True)
def power(rounds: int, processes: int) -> None:
    """Find leaks of 5, 10 and 20 points in files of 40, 160 and 640 questions."""
    click.echo(f"share of {rounds} files that are leaks: with one probe / among {OTHERS + 1} findings")
    click.echo(f"{'excess, points':<44}{''.join(f'{excess:>14}' for excess in EXCESS)}")
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for name in PROBES:
            for n in SIZES:
                cells = list(pool.map(_cell, *zip(*[(name, n, excess, rounds) for excess in EXCESS], strict=True)))
                click.echo(f"{f'{name}, {n} questions':<44}{''.join(f'{cell:>14}' for cell in cells)}")


def _cell(name: str, n: int, excess: int, rounds: int) -> str:
    alone, among = 0, 0
    for number in range(rounds):
        key = f"{name} {n} {excess} {number}"
        measured = PROBES[name](n, excess / 100, key)
        if measured is None:
            continue
        alone += judge([("a", "a", measured)]).findings[0].verdict == "leak"
        others = [_clean(at, key) for at in range(OTHERS)]
        findings = judge([("a", "a", measured), *(("b", "b", each) for each in others)]).findings
        among += findings[0].verdict == "leak"
    return f"{100 * alone / rounds:.0f} / {100 * among / rounds:.0f} %"


def _clean(at: int, key: str) -> Measured:
    """A finding of a file of 40 questions in which nothing tells."""
    of = uniforms(40 * 1000, "clean finding", at, key).reshape(1000, 40) < 0.5
    ids = tuple(str(number) for number in range(40))
    return Measured("clean", "", ids, ids, of[0].astype(float), of[1:].mean(axis=1), "", 0.5)


def _ids(n: int) -> list[str]:
    return [f"q{number}" for number in range(n)]


def _place(n: int, excess: float, key: str) -> Measured | None:
    """The first of two choices is right more often."""
    rights = [(0 if each < 0.5 + excess else 1, 2) for each in uniforms(n, key)]
    return offered_prior(_ids(n), _ids(n), rights)


def _frequent(n: int, excess: float, key: str) -> Measured | None:
    """One free answer is right in 1 of 20 and the excess; the others are different."""
    answers = ["often" if each < 0.05 + excess else f"{number}" for number, each in enumerate(uniforms(n, key))]
    return free_prior(_ids(n), _ids(n), answers)


def _guessed(features: int, questions_of_a_subject: int = 1) -> Callable[[int, float, str], Measured | None]:
    """One of some features, with two values, agrees with one of two answers more often."""

    def draw(n: int, excess: float, key: str) -> Measured | None:
        drawn = uniforms(n * features, key, "features").reshape(n, features).copy()
        is_yes, agrees = uniforms(n, key, "answers") < 0.5, uniforms(n, key, "agrees") < 0.5 + excess
        drawn[:, 0] = 2 * (is_yes == agrees)
        answers = ["Yes" if each else "No" for each in is_yes]
        subjects = [f"s{number // questions_of_a_subject}" for number in range(n)]
        return guess_answers("answer", _ids(n), subjects, answers, drawn - drawn.mean(axis=0), "")

    return draw


def _gold(n: int, excess: float, key: str) -> Measured | None:
    """In a share of contexts gold has the largest value of one of six features; nothing tells in the others."""
    groups = []
    for number, own in enumerate(uniforms(2 * n, key, "contexts").reshape(n, 2)):
        features: Floats = uniforms(UNITS * 6, key, number).reshape(UNITS, 6).copy()
        gold = int(own[0] * UNITS)
        if own[1] < 2 * excess:
            features[gold, 0] += 1
        groups.append(Group(f"q{number}", f"s{number}", (f"{number}",), features, _flags(gold)))
    return find_golds("gold", tuple(f"feature {at}" for at in range(6)), groups)


def _flags(gold: int) -> tuple[bool, ...]:
    flags: Sequence[bool] = (np.arange(UNITS) == gold).tolist()
    return tuple(flags)


PROBES: dict[str, Callable[[int, float, str], Measured | None]] = {
    "place of the right choice of two": _place,
    "a frequent free answer": _frequent,
    "answer from 4 numbers": _guessed(4),
    "answer from 50 numbers": _guessed(50),
    "answer from 4 numbers, 4 a subject": _guessed(4, 4),
    "gold from 6 numbers of 20 units": _gold,
}
"""How to measure a drawn file with an excess, by what is planted."""
