"""Faults hold texts, whatever a plug-in gives."""

import pytest

from mmlongbench.task import Fault, Rejected
from mmlongbench.task.readers import RowFault


def test_what_is_given_as_another_type_becomes_its_text() -> None:
    given: dict[str, object] = {"reason": 5, "expected": 3, "found": None, "place": 7, "field": ("a", 1)}
    fault = Fault(**given)  # type: ignore[arg-type]
    assert fault.fields() == {
        "reason": "5",
        "expected": "3",
        "found": "None",
        "file": "",
        "place": "7",
        "field": "('a', 1)",
        "todo": "",
    }
    assert str(fault) == "7, ('a', 1): 5: expected 3, found None"


def test_a_text_stays_as_it_is_also_where_it_is_no_unicode() -> None:
    assert Fault("a", "\udcff", "b").expected == "\udcff"
    assert RowFault("q\udcff", Fault("a", "b", "c")).id == "q\udcff"


def test_the_id_of_a_row_that_cannot_be_read_becomes_its_text() -> None:
    assert RowFault(12, Fault("a", "b", "c")).id == "12"  # type: ignore[arg-type]


def test_whether_a_fault_is_expected_becomes_true_or_false() -> None:
    assert Fault("a", "b", "c", is_expected=2).is_expected is True  # type: ignore[arg-type]


def test_what_is_noted_of_a_refusal_becomes_texts() -> None:
    assert Rejected(Fault("a", "b", "c"), (5, None)).noted == ("5", "None")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [(5,), (Fault("a", "b", "c"), 5), (Fault("a", "b", "c"), None)])
def test_a_refusal_of_something_else_is_a_mistake_of_its_plug_in(given: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Rejected(*given)  # type: ignore[arg-type]
