"""The right choice told by the list of choices, and the right label by the places of its exemplars."""

from dataclasses import replace

import pytest
from asked_questions import asked, found, unit

from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import uniforms
from mmlongbench.shortcuts.offers import LABEL, of_labels, of_offers
from mmlongbench.shortcuts.reading import AskedQuestion
from mmlongbench.task.choices import Choices

WORDS = ("barley", "copper", "drift", "ember", "flint", "gravel", "harbour", "iris", "juniper", "kelp", "larch", "moss")
N = 100


def choosing(number: int, planted: str = "", share: float = 0.0) -> AskedQuestion:
    """A question with four choices of three words; in a share of questions, the right one differs."""
    drawn = uniforms(14, "offers", number, planted)
    offered = [f"{number} " + " ".join(WORDS[int(12 * each)] for each in drawn[3 * at : 3 * at + 3]) for at in range(4)]
    right = int(4 * drawn[12])
    if drawn[13] < share:
        if planted == "longest":
            offered[right] += " and more of it"
        if planted == "overlap":
            others = [each.split()[1] for at, each in enumerate(offered) if at != right]
            offered[right] = f"{number} {' '.join(others)}"
        if planted == "order":
            ordered = sorted(each for at, each in enumerate(offered) if at != right)
            offered[right] = "zebra " + offered[right]
            right = 0 if right == 3 else right
            offered = [*ordered[:right], "zebra " + str(number), *ordered[right:]]
    question = asked(f"q{number}", f"Which one, {number}?", subject=f"s{number}", answers=(offered[right],))
    return replace(question, choices=Choices(tuple(offered), right))


def findings(planted: str = "", share: float = 0.0) -> dict[str, Finding]:
    return found(choosing(number, planted, share) for number in range(N))


def test_choices_are_compared_with_the_list_and_the_question() -> None:
    rows = of_offers(["1", "3", "2"], "Is it 3?")
    assert [row[1] for row in rows] == [0, 1, 1]
    assert [row[2] for row in rows] == [1, 3, 2]
    assert [row[3] for row in rows] == [0, 1, 0]
    assert [row[0] for row in of_offers(["red oak", "red elm", "ash"], "?")] == [0.5, 0.5, 0]


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_the_longest_choice_is_a_leak(share: float) -> None:
    assert findings("longest", share)["right choice from its text"].verdict == "leak"


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_a_choice_of_the_words_of_all_others_is_a_leak(share: float) -> None:
    assert findings("overlap", share)["right choice from the other choices"].verdict == "leak"


def test_a_choice_that_is_out_of_order_is_a_leak() -> None:
    finding = findings("order", 1.0)["right choice from the other choices"]
    assert finding.verdict == "leak"
    assert "places out of order" in finding.evidence


def test_drawn_choices_are_no_leak() -> None:
    assert not [each.kind for each in findings().values() if each.verdict == "leak"]


def shots(number: int, share: float) -> AskedQuestion:
    """A question with 24 exemplars of 6 labels; in a share of contexts, the last one has the right label."""
    drawn = uniforms(26, "shots", number)
    labels = [int(6 * each) for each in drawn[:24]]
    right = labels[-1] if drawn[24] < share else int(6 * drawn[25])
    units = [unit("exemplar", f"\nlabel: {label}", image="") for label in labels]
    named = [replace(each, id=f"{number}-{at}") for at, each in enumerate(units)]
    question = asked(f"q{number}", "", *named, subject=f"s{number}", answers=(str(right),))
    return replace(question, choices=Choices(tuple(map(str, range(6))), right))


def test_labels_are_read_from_exemplars() -> None:
    units = [unit("exemplar", f"label: {label}") for label in ("1", "11", "11")]
    one, eleven, none = (dict(zip(LABEL, row, strict=True)) for row in of_labels(units, ["1", "11", "2"]))
    assert (one["exemplars"], one["place of the last exemplar"]) == (1, 0)
    assert list(eleven.values()) == [2, 0.5, 1, 0.75, 1]
    assert none["exemplars"] == 0
    assert of_labels([unit("exemplar", "no label here")], ["1", "2"]) == []


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_a_label_that_the_last_exemplar_tells_is_a_leak(share: float) -> None:
    kinds = found(shots(number, share) for number in range(N))
    assert kinds["right label from its exemplars"].verdict == "leak"


def test_drawn_exemplars_are_no_leak() -> None:
    assert found(shots(number, 0.0) for number in range(N))["right label from its exemplars"].verdict != "leak"


def test_questions_that_share_a_context_and_a_label_are_compared_once() -> None:
    first = shots(0, 1.0)
    again = [replace(first, id=f"again{number}", subject=f"t{number}") for number in range(30)]
    kinds = found([*again, *(shots(number, 1.0) for number in range(1, 10))])
    assert kinds["right label from its exemplars"].questions == 10
