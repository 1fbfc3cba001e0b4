"""Which examples of a release `run` and `export` work on."""

from pathlib import Path

import pytest

import mmlongbench as mm
from mmlongbench.release import selecting
from mmlongbench.release.selecting import Selection, select


def names(release: Path, selection: Selection) -> list[tuple[str, str]]:
    cells = select(mm.open_release(release), selection)
    return [(example.file, example.id) for cell in cells for example in cell.examples()]


def test_everything_is_chosen_from_the_shortest_length(finished: Path) -> None:
    found = names(finished, Selection())
    assert found == names(finished, Selection(("mmlongdoc",), ("1K", 2048)))
    assert [file for file, _ in found] == sorted(file for file, _ in found)
    assert len(found) == 12


def test_a_limit_takes_the_first_examples_of_each_file(finished: Path) -> None:
    found = names(finished, Selection(limit=2))
    assert [id for _, id in found] == ["mmlongdoc_0", "mmlongdoc_1"] * 2


def test_a_subset_has_the_same_questions_at_every_length_and_in_an_extended_release(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(selecting.SUBSETS, "paper", 3)
    found = names(finished, Selection(subset="paper"))
    short = [id for file, id in found if file.endswith("K1.jsonl")]
    assert len(short) == 3
    assert short == [id for file, id in found if file.endswith("K2.jsonl")]
    assert short != [id for _, id in names(finished, Selection(lengths=("1K",), limit=3))]
    assert short == [id for _, id in names(finished, Selection(lengths=("1K",), subset="paper"))]


def test_a_subset_is_frozen(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert selecting.SUBSETS == {"paper": 100}
    monkeypatch.setitem(selecting.SUBSETS, "paper", 3)
    found = names(finished, Selection(lengths=("1K",), subset="paper"))
    assert [id for _, id in found] == ["mmlongdoc_3", "mmlongdoc_4", "mmlongdoc_10"]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(("mmlongdok",)), "no dataset 'mmlongdok'.*did you mean 'mmlongdoc'"),
        (Selection(lengths=("4K",)), "no examples of 4K in mmlongdoc; lengths: 1K, 2K"),
        (Selection(subset="small"), "subset 'small': expected paper"),
    ],
)
def test_what_there_is_not_is_refused(finished: Path, selection: Selection, said: str) -> None:
    with pytest.raises(mm.ReleaseError, match=said):
        names(finished, selection)
