"""Lines of JSON: the same bytes as those of the json module, whichever library writes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.task.file_formats import to_json, written

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)
EVERY_CHARACTER = "".join(map(chr, range(0x110000)))


@given(st.dictionaries(st.text(), VALUES))
def test_a_line_has_the_bytes_of_the_json_module(record: dict[str, object]) -> None:
    text = json.dumps(record, ensure_ascii=False) + "\n"
    assert written(record) == (to_json(record), json.loads(text))
    assert to_json(record) == text.encode("utf-8", "backslashreplace")


CELLS: st.SearchStrategy[object] = st.sampled_from([0, 1, True, False, None, "0", '",\n "', "}, {", "\ud800", 0.5, []])
UNITS = st.lists(st.dictionaries(st.sampled_from(["a", "b", '",\n    "']), CELLS))


@given(st.lists(st.dictionaries(st.text(), UNITS)))
def test_units_that_records_share_have_the_same_bytes(records: list[dict[str, object]]) -> None:
    known: dict[tuple[object, ...], bytes] = {}
    for record in (*records, *records):
        assert written(record, known) == written(record) == (to_json(record), json.loads(json.dumps(record)))


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"a": [], "b": {}, "c": [[]]},
        [0.0, -0.0, 1e-4, 9.9e-5, 1e15, 1e16, -1e22, 0.1, 5e-324],
        [2**63, 2**64, -(2**63) - 1, True, False, None],
        {1: "a", None: "b"},
        EVERY_CHARACTER,
        EVERY_CHARACTER.replace("\n", ",\n ").encode("utf-8", "replace").decode(),
        [EVERY_CHARACTER[:0xD800], EVERY_CHARACTER[0xE000:], " ,", ", ", '",\n "'],
        [[[[{"a": [[1, 2], " x "]}]]]],
    ],
)
def test_odd_values_are_written_alike(value: object) -> None:
    assert to_json(value) == (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a"}, b"a", object(), 1j])
def test_a_record_that_json_cannot_hold_has_no_line(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        written({"id": "a", "value": value})
