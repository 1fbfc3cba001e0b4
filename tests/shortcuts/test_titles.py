"""Titles that stand in other titles or texts, and passages that look like the first one of an article."""

import pytest
from asked_questions import asked, found, unit

from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import uniforms
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.shortcuts.titles import CHAIN, PART, of_chain, of_parts, titles_of

NAMES = ("Ardent", "Brook", "Cobalt", "Dune", "Elder", "Fallow", "Gannet", "Heron", "Inlet", "Jasper")
PLACES = ("Mill", "Pond", "Quay", "Ridge", "Stone", "Tower", "Vale", "Wharf", "Yard", "Abbey")
UNITS = 12


def passage(role: str, title: str, text: str) -> ShownUnit:
    return unit(role, f"Document (Title: {title}): ", text)


def context(number: int, *, chained: float = 0.0, first: float = 0.0) -> AskedQuestion:
    """A question with 12 passages. One of them names the title of another, and one is the first of its article; in some
    shares of contexts, these are gold's title and gold.
    """
    drawn = uniforms(4 * UNITS + 6, "titles", number)
    titles = [f"{NAMES[int(10 * a)]} {PLACES[int(10 * b)]} {at}{number}" for at, (a, b) in enumerate(pairs(drawn))]
    gold = int(drawn[-1] * UNITS)
    texts = [f"Near the {PLACES[int(10 * each)]} it has rained since noon." for each in drawn[2 * UNITS : 3 * UNITS]]
    beginning = gold if drawn[-2] < first else int(UNITS * drawn[-5])
    texts[beginning] = f"{titles[beginning]} (1821) is a village near the sea."
    named = gold if drawn[-3] < chained else int(UNITS * drawn[-6])
    other = (named + 1 + int(drawn[-4] * (UNITS - 1))) % UNITS
    texts[other] += f" Many walk to {titles[named]} then."
    units = [
        passage("gold" if at == gold else "negative", *each) for at, each in enumerate(zip(titles, texts, strict=True))
    ]
    return asked(f"q{number}", "Where?", *units, subject=f"s{number}", answers=(f"a{number}",))


def pairs(drawn: object) -> list[tuple[float, float]]:
    values = [float(each) for each in drawn[: 2 * UNITS]]  # type: ignore[index]
    return list(zip(values[::2], values[1::2], strict=True))


def findings(**planted: float) -> dict[str, Finding]:
    return found(context(number, **planted) for number in range(60))


def test_what_all_titles_share_is_the_template() -> None:
    units = [passage("gold", "Tern Rock", "x"), passage("negative", "Tern Quay", "y"), unit("padding", "no title")]
    assert titles_of(units) == [" rock ", " quay ", ""]


def test_titles_in_other_titles_and_texts_are_counted() -> None:
    units = [
        passage("gold", "Tern Rock", "Birds."),
        passage("negative", "Tern Rock Light", "It stands on Tern Rock."),
        passage("negative", "Mill Pond", "Water."),
    ]
    rows = [dict(zip(CHAIN, row, strict=True)) for row in of_chain(units, [0, 1, 2])]
    assert list(rows[0].values()) == [1, 1, 1, 0]
    assert rows[1]["other titles in it"] == 1
    assert list(rows[2].values()) == [0, 0, 0, 0]


def test_a_first_passage_is_recognised_by_its_form() -> None:
    units = [
        passage("gold", "Tern Rock", "Tern Rock (1821) is a rock."),
        passage("negative", "Mill Pond", "of the water, much was lost."),
    ]
    first, later = (dict(zip(PART, row, strict=True)) for row in of_parts(units))
    assert list(first.values()) == [1, 1, 0, 1, 1, 1]
    assert list(later.values()) == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_chained_titles_are_a_leak(share: float) -> None:
    assert findings(chained=share)["gold from chained titles"].verdict == "leak"


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_gold_that_is_the_first_passage_is_a_leak(share: float) -> None:
    assert findings(first=share)["gold from the part of its source"].verdict == "leak"


def test_drawn_passages_are_no_leak() -> None:
    assert findings().keys() >= {"gold from chained titles", "gold from the part of its source"}
    assert not [each.kind for each in findings().values() if each.verdict == "leak"]
