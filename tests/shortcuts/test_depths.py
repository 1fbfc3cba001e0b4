"""Whether requested placements are balanced by question and by answer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from asked_questions import asked, judged

from mmlongbench.shortcuts.depths import UNEVEN, Depths, measure_depths
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.measured import uniforms

SIX = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
N = 120
IDS = [f"q{number}" for number in range(N)]
ANSWERS = ["Yes" if each < 0.5 else "No" for each in uniforms(N, "answers")]


def findings(placements: Sequence[Sequence[float]]) -> dict[str, Finding]:
    return {each.kind: judged(each) for each in measure_depths(IDS, IDS, ANSWERS, placements) if each}


def drawn(share: float, *, is_told: bool) -> list[tuple[float]]:
    """One depth a question, drawn; in a share of questions it is 0, or follows from the answer."""
    found = []
    for number in range(N):
        first, second = uniforms(2, "depth", number)
        depth = SIX[int(6 * first)]
        if second < share:
            depth = SIX[3 * (ANSWERS[number] == "Yes")] if is_told else 0.0
        found.append((depth,))
    return found


def test_all_questions_at_all_depths_have_nothing_to_tell() -> None:
    assert findings([SIX] * N) == {}


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_a_depth_that_tells_the_answer_is_a_leak(share: float) -> None:
    assert findings(drawn(share, is_told=True))["answer from requested placements"].verdict == "leak"


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_a_depth_that_is_requested_too_often_is_a_leak(share: float) -> None:
    finding = findings(drawn(share, is_told=False))["requested placement from priors"]
    assert finding.verdict == "leak"
    assert "placement 0 is requested for" in finding.evidence


def test_drawn_depths_are_no_leak() -> None:
    assert not [each.kind for each in findings(drawn(0, is_told=False)).values() if each.verdict == "leak"]


def test_a_question_that_lacks_a_depth_is_named() -> None:
    depths = Depths("walks")
    for number in range(20):
        depths.add(replace(asked(f"q{number}"), placements=SIX if number != 7 else SIX[:4]))
    finding = next(depths.findings())
    assert (finding.kind, finding.verdict, finding.examples) == (UNEVEN, "leak", ("q7",))
    assert "lacks placement 0.8, 1" in finding.evidence


def test_questions_at_one_depth_each_are_not_counted() -> None:
    depths = Depths("walks")
    for number in range(20):
        depths.add(replace(asked(f"q{number}"), placements=(SIX[number % 6],)))
    assert list(depths.findings()) == []
