"""Rows of document questions: what each reader makes of a raw row, which answers are repaired, and what is refused."""

import csv
import datetime
import io
import json
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import needs
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import Sources

import mmlongbench.task as mt
from builders.docvqa import DocVQAOptions, LongDocURL, MLongDoc, MMLongBenchDoc, OwnDocuments, SlideVQA
from builders.docvqa.own_documents import COLUMNS
from builders.docvqa.rows import DocumentQuestion, normalise
from mmlongbench.answers import NOT_ANSWERABLE, AnswerFormat, format_of, literal_list
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.io import tables
from mmlongbench.io.tables import ENDINGS

# --- answers and their formats ----------------------------------------------------------------------------------------

NONE = (NOT_ANSWERABLE,)
HUGE = f"[0x{'f' * 5000}]"
KEPT: list[tuple[object, str, AnswerFormat, tuple[str, ...]]] = [
    ("8", "Int", "Integer", ("8",)),
    ("8", "Integer", "Integer", ("8",)),
    (" 8\n", "Int", "Integer", ("8",)),
    ("-3", "Int", "Integer", ("-3",)),
    ("+3", "Int", "Integer", ("+3",)),
    ("1,234,567", "Int", "Integer", ("1,234,567",)),
    (5.0, "Integer", "Integer", ("5",)),
    ("19.5", "Float", "Float", ("19.5",)),
    ("20%", "Float", "Float", ("20%",)),
    ("$1.5 million", "Float", "Float", ("$1.5 million",)),
    (0.5, "Float", "Float", ("0.5",)),
    ("Less well-off", "Str", "String", ("Less well-off",)),
    ("  two\twords ", "String", "String", ("two\twords",)),
    ("['red', 'blue']", "List", "List", ("red", "blue")),
    ('["red", "blue"]', "List", "List", ("red", "blue")),
    ("[' red ', 1, 2.5]", "List", "List", ("red", "1", "2.5")),
    ("[\n  'red',\n  'blue',\n]", "List", "List", ("red", "blue")),
    (r"['50\% of C:\data']", "List", "List", (r"50\% of C:\data",)),
    (["a", 2], "List", "List", ("a", "2")),
    ("Not answerable", "None", "None", NONE),
    ("not answerable.", "None", "None", NONE),
]
REPAIRED: list[tuple[object, str, AnswerFormat, tuple[str, ...], str]] = [
    ("21%", "Int", "String", ("21%",), "integer-to-string"),
    ("14:04 CET", "Int", "String", ("14:04 CET",), "integer-to-string"),
    ("$1,200", "Integer", "String", ("$1,200",), "integer-to-string"),
    ("12.0", "Int", "String", ("12.0",), "integer-to-string"),
    ("1,23", "Int", "String", ("1,23",), "integer-to-string"),
    ("['1']", "Int", "List", ("1",), "integer-to-list"),
    ("[1.5, 2.5]", "Float", "List", ("1.5", "2.5"), "float-to-list"),
    ("1,234 tons", "Float", "String", ("1,234 tons",), "float-to-string"),
    ("inf", "Float", "String", ("inf",), "float-to-string"),
    ("['red', 'blue']", "Str", "List", ("red", "blue"), "string-to-list"),
    ("[7]", "String", "List", ("7",), "string-to-list"),
    (["a"], "String", "List", ("a",), "string-to-list"),
    ("92", "List", "String", ("92",), "list-to-string"),
    ("red, blue", "List", "String", ("red, blue",), "list-to-string"),
    ("['red', 'blue'", "List", "String", ("['red', 'blue'",), "list-to-string"),
    ("('red', 'blue')", "List", "String", ("('red', 'blue')",), "list-to-string"),
    ("[red]", "List", "String", ("[red]",), "list-to-string"),
    (HUGE, "List", "String", (HUGE,), "list-to-string"),
    ("Not answerable", "Str", "None", NONE, "string-to-none"),
    ("Not answerable.", "Int", "None", NONE, "integer-to-none"),
    (" NOT ANSWERABLE. ", "List", "None", NONE, "list-to-none"),
]
REFUSED = [
    ("", "Str", "empty-answer", "answer"),
    (" \n", "Int", "empty-answer", "answer"),
    ("[]", "List", "list-answer", "answer"),
    ("[ ]", "Str", "list-answer", "answer"),
    ("[['red'], 'blue']", "List", "list-answer", "answer"),
    ("[('red', 'blue')]", "List", "list-answer", "answer"),
    ("[{'red': 1}]", "List", "list-answer", "answer"),
    ("['red', None]", "List", "list-answer", "answer"),
    ("[b'red']", "Str", "list-answer", "answer"),
    ("[...]", "Str", "list-answer", "answer"),
    ("['red', ' ']", "List", "list-answer", "answer"),
    ("8", "None", "answer-of-format-none", "answer"),
    ("", "None", "answer-of-format-none", "answer"),
    ("8", "int", "unknown-answer-format", "answer_format"),
    ("8", "", "unknown-answer-format", "answer_format"),
]


@pytest.mark.parametrize(("value", "declared", "format", "values"), KEPT)
def test_an_answer_of_its_declared_format_is_kept(
    value: object, declared: str, format: AnswerFormat, values: tuple[str, ...]
) -> None:
    assert normalise(value, declared) == (format, values, ())


@pytest.mark.parametrize(("value", "declared", "format", "values", "repair"), REPAIRED)
def test_an_answer_of_another_format_is_repaired_by_name(
    value: object, declared: str, format: AnswerFormat, values: tuple[str, ...], repair: str
) -> None:
    assert normalise(value, declared) == (format, values, (repair,))


@pytest.mark.parametrize(("text", "declared", "reason", "field"), REFUSED)
def test_an_answer_that_cannot_be_repaired_is_refused(text: str, declared: str, reason: str, field: str) -> None:
    with pytest.raises(mt.Rejected) as caught:
        normalise(text, declared)
    fault = caught.value.fault
    assert (fault.reason, fault.field) == (reason, field)
    if field == "answer_format":
        assert fault.expected == "one of Int, Integer, Float, Str, String, List, None"
        assert fault.found == repr(declared)


list_like = st.text("[]()'\",\\ \n0x1e+-j{}:*ab", max_size=30).map(lambda text: f"[{text}]")


@given(
    st.text() | st.text(st.characters()) | list_like,
    st.sampled_from(["Int", "Integer", "Float", "Str", "String", "List", "None"]) | st.text(max_size=8),
)
def test_any_text_becomes_an_answer_or_a_fault(text: str, declared: str) -> None:
    try:
        format, values, _ = normalise(text, declared)
    except mt.Rejected:
        return
    assert format in get_args(AnswerFormat)
    assert values
    assert all(value and value == value.strip() for value in values)
    assert format == "List" or len(values) == 1
    assert (format == "None") == (values == NONE) or format == "List"
    if format == "Integer":
        int(values[0].replace(",", ""))


@pytest.mark.parametrize(
    "text", [f"[{'-' * 100_000}1]", "[" * 100_000, f"[1{'+1' * 50_000}]", "[\x00]", "[\ud800]", f"[{'9' * 5000}]"]
)
def test_a_hostile_list_is_a_string(text: str) -> None:
    assert literal_list(text) is None
    assert normalise(text, "Str") == ("String", (text,), ())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-(10**9), 10**9)))
def test_a_list_is_read_as_it_was_written(values: list[str | int]) -> None:
    assert literal_list(repr(values)) == values


def test_reading_a_list_prints_and_warns_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert literal_list(r"['\d', 1if 1else 2]") is None
        assert literal_list(r"['\d']") == [r"\d"]
    assert not caught
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("format", "answers"),
    [
        ("Integer", ["1066", "1,066"]),
        ("Float", ["12.5", "$3.2 million", "45%"]),
        ("String", ["Tern Rock", "2019-04-01"]),
        ("List", ['["a", "b"]']),
        ("None", ["Not answerable"]),
    ],
)
def test_the_format_of_an_answer_is_derived_where_the_source_has_none(format: str, answers: list[str]) -> None:
    assert [format_of(answer) for answer in answers] == [format] * len(answers)


@pytest.mark.parametrize("text", ["€5", "¥ 1,200", "-$5", "--5", "+$5", "$£5"])
def test_what_the_public_scorer_cannot_read_as_a_number_is_released_as_text(text: str) -> None:
    """It strips one unit from each end and calls `float`, which would end the whole evaluation."""
    assert normalise(text, "Float")[0] == format_of(text) == "String"


# --- one row of each source -------------------------------------------------------------------------------------------

DOC: dict[str, Any] = {
    "doc_id": "PH_2016.06.08_Economy-Final.pdf",
    "doc_type": "Research report / Introduction",
    "question": "Who was worse off?",
    "answer": "Less well-off",
    "evidence_pages": "[5]",
    "evidence_sources": "['Chart']",
    "answer_format": "Str",
}
LONG: dict[str, Any] = {
    "question_id": "a",
    "doc_no": "4055915",
    "total_pages": 84,
    "start_end_idx": [42, 71],
    "question_type": "calculate",
    "question": "How many criteria are there?",
    "answer": 5,
    "evidence_pages": [54],
    "evidence_sources": ["Table"],
    "answer_format": "Integer",
    "task_tag": "Reasoning",
}
SLIDE: dict[str, Any] = {"deck_name": "a_deck", "question": "How many?", "answer": "1,066", "evidence_pages": [4]}
OWN: dict[str, Any] = {"doc": "a.pdf", "question": "Who?", "answer": "Tern Rock", "pages": "3"}
OPEN: dict[str, Any] = {
    "question": "How do the two tables differ?",
    "answer": "",
    "category": "tables",
    "evidence_pages": [24],
    "raw_output": "",
    "pred": "",
    "source": "data/test/2499.00001.json",
    "annotator": "azure",
    "generator": "",
    "retrieved_pages": [],
    "judgements": [],
}
READERS: dict[str, tuple[mt.readers.Reader[Any], dict[str, Any]]] = {
    "mmlongbench_doc": (MMLongBenchDoc(), DOC),
    "longdocurl": (LongDocURL(), LONG),
    "slidevqa": (SlideVQA(), SLIDE),
    "own_documents": (OwnDocuments(), OWN),
    "m_longdoc": (MLongDoc(), OPEN),
}


def question(reader: str, **changed: Any) -> DocumentQuestion:
    """What a reader makes of its row above, with some fields changed."""
    by, raw = READERS[reader]
    found = by.row(mt.readers.RawRow("id", {**raw, **changed}, "file", "line 1"), {})
    assert isinstance(found, DocumentQuestion), found
    return found


def fault(reader: str, **changed: Any) -> mt.Fault:
    with pytest.raises(mt.Rejected) as caught:
        question(reader, **changed)
    return caught.value.fault


def read(reader: str, path: Path, **more: Path) -> list[Any]:
    """The rows and faults of a file of questions."""
    by, _ = READERS[reader]
    return list(read_rows(by, {by.sources[0]: path, "documents": path.parent, **more}))


def in_file(path: Path, data: object) -> Path:
    """Write bytes, a text, or JSON."""
    raw = data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
    path.write_bytes(raw)
    return path


UNANSWERABLE = {"answer": "Not answerable", "answer_format": "None"}
DROPPED = {"answer_format": "None", "pages": (), "repairs": ("pages-of-unanswerable-dropped",)}
TIME = {"answer_format": "String", "answer": ("14:04 CET",), "repairs": ("integer-to-string",)}
WINDOWED = {"doc": "4055915", "pages": (53,), "window": (41, 70), "question_type": "Reasoning: calculate"}
COLUMNS_READ = {"region": " north ", "year": 2019, "tags": ["a"], "long": "x" * 1000, "bad": "a\ud800"}
OPEN_READ = {"doc": "2499.00001", "pages": (23,), "sources": ("Table",), "answer_format": "String"}
READ: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "mmlongbench_doc": [
        ({"evidence_pages": "[12, 3, 3, 7]"}, {"pages": (2, 6, 11)}),
        ({"answer": "14:04 CET", "answer_format": "Int"}, TIME),
        ({**UNANSWERABLE, "evidence_pages": "[]"}, {"answer": NONE, "pages": (), "repairs": ()}),
        *(({**UNANSWERABLE, "evidence_pages": pages}, DROPPED) for pages in ("[3]", "[0]", "none", "")),
        ({"evidence_sources": "Chart"}, {"sources": (), "repairs": ("unreadable-evidence-sources-dropped",)}),
        ({"question": "What is <image>?"}, {"question": "What is < image >?"}),
        ({"answer": "['<image>', 'b']", "answer_format": "List"}, {"answer": ("< image >", "b")}),
        *(({"doc_id": f"2310.07609v1{ending}"}, {"doc": "2310.07609v1"}) for ending in ("", ".PDF")),
    ],
    "longdocurl": [
        ({}, {**WINDOWED, "answer": ("5",), "answer_format": "Integer", "repairs": ()}),
        ({"evidence_pages": ["54"]}, {"pages": (53,), "repairs": ("answer-pages-as-text",)}),
    ],
    "slidevqa": [({}, {"doc": "a_deck", "pages": (3,), "answer": ("1,066",), "answer_format": "Integer"})],
    "own_documents": [
        ({}, {"doc": "a", "pages": (2,), "answer": ("Tern Rock",), "label_width": "distinct"}),
        *(({"pages": written}, {"pages": (3,)}) for written in ("4", 4, " 4 ", ["4"])),
        *(({"pages": written}, {"pages": (2, 4)}) for written in ("3; 5", "5, 3", "[3, 5]", [3, 5])),
        *(({"answer": "2019", "answer_format": given}, {"answer_format": "Integer"}) for given in ("", " ", None)),
        ({"answer": "2019", "answer_format": "string"}, {"answer_format": "String"}),
        ({"sources": "text; Chart;map"}, {"sources": ("Text", "Chart", "map")}),
        ({"sources": ["table"]}, {"sources": ("Table",)}),
        ({"sources": ""}, {"sources": ()}),
        ({"accepted": "IBM; I.B.M."}, {"accepted": ("IBM", "I.B.M.")}),
        ({"accepted": '["a; b", "c"]'}, {"accepted": ("a; b", "c")}),
        ({"accepted": ["x", 3]}, {"accepted": ("x", "3")}),
        *(({"accepted": nothing}, {"accepted": ()}) for nothing in (None, " ; ")),
        ({"accepted": ["a"] * 100}, {"accepted": ("a",) * 100}),
        (COLUMNS_READ, {"columns": {"region": "north", "year": "2019", "tags": "", "long": "x" * 101}}),
    ],
    "m_longdoc": [
        ({}, {**OPEN_READ, "has_reference": False}),
        ({"answer": "It has <image> more. "}, {"has_reference": True, "answer": ("It has < image > more.",)}),
        *(({"valid": mark}, {"doc": "2499.00001"}) for mark in (1, 1.0, True, "1", "TRUE", "1.0")),
    ],
}


@pytest.mark.parametrize(
    ("reader", "changed", "facts"), [(reader, *case) for reader, cases in READ.items() for case in cases]
)
def test_a_row_is_read(reader: str, changed: dict[str, Any], facts: dict[str, Any]) -> None:
    found = question(reader, **changed)
    assert {name: getattr(found, name) for name in facts} == facts


PAGES_WRONG = "answer-pages-not-a-list"
MISTYPED = "missing-or-mistyped-field"
WRONG: dict[str, list[tuple[dict[str, Any], str, str]]] = {
    "mmlongbench_doc": [
        ({"evidence_pages": "[0]"}, "answer-page-out-of-range", "evidence_pages"),
        ({"evidence_pages": "[3, -1]"}, "answer-page-out-of-range", "evidence_pages"),
        ({"evidence_pages": "[]"}, "no-answer-pages", "evidence_pages"),
        *(
            ({"evidence_pages": pages}, PAGES_WRONG, "evidence_pages")
            for pages in ("", "5", "5-7", "(5, 7)", "['five']", "[5.0]", "[True]", "[[5]]", "[5", f"[-{HUGE[1:]}")
        ),
        ({"evidence_pages": "[__import__('os').getpid()]"}, PAGES_WRONG, "evidence_pages"),
        ({"evidence_pages": [5]}, MISTYPED, "evidence_pages"),
        ({"answer": "[]", "answer_format": "List"}, "list-answer", "answer"),
        ({"answer": ""}, "empty-answer", "answer"),
        ({"answer": 5, "answer_format": "Int"}, MISTYPED, "answer"),
        ({"answer": None}, MISTYPED, "answer"),
        ({"answer": float("nan")}, MISTYPED, "answer"),
        ({"answer_format": "Date"}, "unknown-answer-format", "answer_format"),
        ({"answer_format": "None"}, "answer-of-format-none", "answer"),
        ({"question": " \n"}, "empty-question", "question"),
        ({"doc_type": None}, MISTYPED, "doc_type"),
    ],
    "longdocurl": [
        ({"evidence_pages": []}, "no-answer-pages", "evidence_pages"),
        ({"evidence_pages": None}, PAGES_WRONG, "evidence_pages"),
        ({"evidence_pages": [0]}, "answer-page-out-of-range", "evidence_pages"),
        ({"evidence_pages": ["four"]}, PAGES_WRONG, "evidence_pages"),
        ({"evidence_pages": [4.5]}, PAGES_WRONG, "evidence_pages"),
        ({"answer_format": "Bool"}, "unknown-answer-format", "answer_format"),
        ({"question": "  "}, "empty-question", "question"),
        ({"question": None}, MISTYPED, "question"),
        ({"doc_no": 4055915}, MISTYPED, "doc_no"),
        ({"start_end_idx": [0, 3]}, "window-out-of-range", "start_end_idx"),
        ({"start_end_idx": "42-71"}, "window-out-of-range", "start_end_idx"),
        ({"start_end_idx": [9, 3]}, "window-out-of-range", "start_end_idx"),
    ],
    "own_documents": [
        ({"doc": None}, MISTYPED, "doc"),
        ({"question": " "}, "empty-question", "question"),
        ({"answer": ""}, "empty-answer", "answer"),
        ({"answer": "[[]]"}, "list-answer", "answer"),
        ({"answer": "[]"}, "list-answer", "answer"),
        ({"answer": "3", "answer_format": "None"}, "answer-of-format-none", "answer"),
        ({"answer": "about three", "answer_format": "Integer"}, "answer-of-another-format", "answer"),
        ({"answer_format": "Number"}, "unknown-answer-format", "answer_format"),
        ({"pages": ""}, "no-answer-pages", "pages"),
        ({"pages": "0"}, "answer-page-out-of-range", "pages"),
        ({"pages": "a"}, PAGES_WRONG, "pages"),
        ({"pages": {}}, PAGES_WRONG, "pages"),
        ({"sources": {"a": 1}}, MISTYPED, "sources"),
        ({"accepted": [["a"]]}, MISTYPED, "accepted"),
        ({"accepted": "[1, x]"}, MISTYPED, "accepted"),
        ({"accepted": ["a"] * 101}, MISTYPED, "accepted"),
        ({"accepted": ["a\ud800"]}, "invalid-unicode", "accepted"),
        ({"accepted": "b", "answer": '["a", "b"]'}, "accepted-answers", "accepted"),
        ({"accepted": "b", "answer": "Not answerable", "pages": ""}, "accepted-answers", "accepted"),
    ],
    "m_longdoc": [
        ({"question": " \n"}, "empty-question", "question"),
        ({"question": None}, MISTYPED, "question"),
        ({"answer": None}, MISTYPED, "answer"),
        ({"answer": ["a"]}, MISTYPED, "answer"),
        ({"category": "pictures"}, "unknown-category", "category"),
        ({"category": 3}, MISTYPED, "category"),
        ({"evidence_pages": []}, "no-answer-pages", "evidence_pages"),
        ({"evidence_pages": [0]}, "answer-page-out-of-range", "evidence_pages"),
        ({"evidence_pages": "all"}, PAGES_WRONG, "evidence_pages"),
        ({"source": "data/test/"}, "unknown-source", "source"),
        ({"source": "../../etc/passwd"}, "unknown-source", "source"),
        ({"source": 7}, MISTYPED, "source"),
        *(({"valid": mark}, "not-kept-by-people", "valid") for mark in ("0", 0.0, None)),
        ({"valid": "no mark"}, "not-marked", "valid"),
        ({"valid": "maybe"}, "unknown-mark", "valid"),
    ],
}
"""What is wrong with a row of each reader: the changed fields, the reason, the field that is named."""


@pytest.mark.parametrize(
    ("reader", "changed", "reason", "field"), [(reader, *case) for reader, cases in WRONG.items() for case in cases]
)
def test_a_row_that_cannot_be_asked_says_why_and_what_to_do(
    reader: str, changed: dict[str, Any], reason: str, field: str
) -> None:
    found = fault(reader, **changed)
    assert (found.reason, found.field) == (reason, field)
    assert found.todo
    assert found.is_expected == (reason == "not-kept-by-people")


@pytest.mark.parametrize("value", [None, float("nan"), True, {"a": 1}, [], [""], [["a"], "b"], [None]])
@pytest.mark.parametrize("reader", ["longdocurl", "slidevqa", "own_documents"])
def test_an_answer_of_no_usable_type_is_refused(reader: str, value: object) -> None:
    assert fault(reader, answer=value).field == "answer"


@pytest.mark.parametrize(
    ("pages", "todo"),
    [
        ("3-5", "write 3; 4; 5"),
        ("3 – 4", "write 3; 4"),
        ("3 and 6", "write 3; 6"),
        ("6-3", "write 6; 3"),
        ("1-99999", "write 1; 99999"),
    ],
)
def test_pages_in_words_or_as_a_range_are_answered_with_how_to_write_them(pages: str, todo: str) -> None:
    found = fault("own_documents", pages=pages)
    assert (found.reason, found.field, found.todo) == (PAGES_WRONG, "pages", todo)


# --- the file of MMLongBench-Doc --------------------------------------------------------------------------------------


def test_the_rows_of_a_file_are_numbered_and_faults_name_file_row_and_field(tmp_path: Path) -> None:
    without = [{name: value for name, value in DOC.items() if name != lost} for lost in DOC]
    rows: list[object] = [
        DOC,
        {**DOC, "note": "new", "score": 0.5},
        [],
        "row",
        None,
        5,
        {**DOC, "question": "a \ud800 b"},
        *without,
    ]
    clean, again, *faults = read("mmlongbench_doc", in_file(tmp_path / "samples.json", rows))
    assert clean == DocumentQuestion(
        id="mmlongdoc_0",
        doc="PH_2016.06.08_Economy-Final",
        doc_type="Research report / Introduction",
        question="Who was worse off?",
        answer=("Less well-off",),
        answer_format="String",
        pages=(4,),
        sources=("Chart",),
        file="samples.json",
        place="row 0",
    )
    assert again == clean.model_copy(update={"id": "mmlongdoc_1", "place": "row 1"})
    assert [(row.id, row.fault.file, row.fault.place) for row in faults] == [
        (f"mmlongdoc_{number}", "samples.json", f"row {number}") for number in range(2, len(rows))
    ]
    assert [(row.fault.reason, row.fault.found) for row in faults[:4]] == [
        ("not-a-row", name) for name in ("list", "str", "NoneType", "int")
    ]
    assert (faults[4].fault.reason, faults[4].fault.field) == ("invalid-unicode", "question")
    assert [(row.fault.reason, row.fault.field, row.fault.found) for row in faults[5:]] == [
        (MISTYPED, name, "nothing") for name in DOC
    ]


@pytest.mark.parametrize(
    ("name", "data", "reason", "facts"),
    [
        (
            "samples.json",
            '[\n  {"doc_id": "a.pdf",\n   "answer" 5}\n]',
            "invalid-json",
            ["line 3, column 13", "Expecting ':' delimiter"],
        ),
        *(
            ("samples.json", text, "invalid-source", [f"found {kind}"])
            for text, kind in (("{}", "dict"), ('"rows"', "str"), ("null", "NoneType"), ("3", "int"))
        ),
        *(
            ("samples.json", data, "unreadable-source", [])
            for data in (b'["\xff"]', b"[" * 100_000, b"[" + b"9" * 5000 + b"]")
        ),
        ("train.parquet", b"no table", "broken-parquet", ["expected a Parquet file"]),
        ("samples.json", None, "unreadable-source", ["Is a directory"]),
    ],
)
def test_a_file_that_holds_no_rows_is_refused_by_its_cause(
    name: str, data: object, reason: str, facts: list[str], tmp_path: Path
) -> None:
    if data is None:
        (tmp_path / name).mkdir()
    else:
        in_file(tmp_path / name, data)
    with pytest.raises(mt.readers.SourceError) as caught:
        read("mmlongbench_doc", tmp_path / name)
    assert (caught.value.fault.reason, caught.value.fault.file) == (reason, name)
    assert all(fact in str(caught.value) for fact in facts)
    assert str(tmp_path) not in str(caught.value)


def test_a_byte_order_mark_an_empty_array_and_parquet_are_read(tmp_path: Path) -> None:
    rows = [DOC, {**DOC, "evidence_pages": "[0]"}, {**DOC, "answer": None}, {**DOC, "answer": "é <image>"}]
    plain = read("mmlongbench_doc", in_file(tmp_path / "samples.json", rows))
    assert [type(row) for row in plain] == [
        DocumentQuestion,
        mt.readers.RowFault,
        mt.readers.RowFault,
        DocumentQuestion,
    ]
    (tmp_path / "marked.json").write_text(json.dumps(rows), encoding="utf-8-sig")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    for name in ("marked.json", "train.parquet"):
        found = read("mmlongbench_doc", tmp_path / name)
        kept = [row.model_copy(update={"file": "samples.json"}) for row in found if isinstance(row, mt.Row)]
        assert kept == [row for row in plain if isinstance(row, mt.Row)]
        faults = [
            [
                (each.id, each.fault.reason, each.fault.field, each.fault.place)
                for each in rows
                if isinstance(each, mt.readers.RowFault)
            ]
            for rows in (found, plain)
        ]
        assert faults[0] == faults[1] != []
    assert read("mmlongbench_doc", in_file(tmp_path / "none.json", [])) == []


def test_documents_are_known_by_their_names_without_the_ending_unless_two_differ(tmp_path: Path) -> None:
    for name in ("2310.07609v1.pdf", "B.PDF", "notes.txt", "README", ".hidden.pdf", "._B.pdf", "x.pdf"):
        (tmp_path / name).touch()
    (tmp_path / "x.PDF").write_bytes(b"another")
    found = MMLongBenchDoc().documents({"samples": tmp_path, "documents": tmp_path})
    assert found.keys() == {"2310.07609v1", "B", "x"}
    assert (found["2310.07609v1"], found["B"]) == (tmp_path / "2310.07609v1.pdf", tmp_path / "B.PDF")
    twice = found["x"]
    assert isinstance(twice, mt.Fault)
    assert (twice.reason, twice.found) == ("two-documents-of-one-name", "x.PDF, x.pdf")
    (tmp_path / "x.pdf").write_bytes(b"another")  # a copy
    assert isinstance(MMLongBenchDoc().documents({"documents": tmp_path})["x"], Path)
    with pytest.raises(mt.readers.SourceError, match=r"notes\.txt: unreadable-source: .* found a file"):
        MMLongBenchDoc().documents({"documents": tmp_path / "notes.txt"})


@pytest.mark.parametrize("doc_id", ["../../etc/passwd.pdf", "/etc/passwd.pdf", "sub/passwd.pdf", "..", ".pdf", ""])
def test_a_path_for_a_document_is_a_missing_document(doc_id: str) -> None:
    documents = mt.advanced.Documents({"passwd": mt.Document("passwd", "passwd", "11", ())})
    with pytest.raises(mt.Rejected, match="missing-document"):
        documents[question("mmlongbench_doc", doc_id=doc_id).doc]


def test_the_real_rows_are_read_and_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    real = needs.shared("real", "mmlongbench-doc")
    found = read("mmlongbench_doc", real / "samples.json")
    rows = {row.id: row for row in found if isinstance(row, DocumentQuestion)}
    assert [row.id for row in found] == [f"mmlongdoc_{number}" for number in range(213)]
    formats = Counter(row.answer_format for row in rows.values())
    assert formats == {"Float": 52, "String": 50, "Integer": 46, "None": 37, "List": 26}
    refused = {row.id: row.fault.reason for row in found if isinstance(row, mt.readers.RowFault)}
    assert refused == {"mmlongdoc_109": "no-answer-pages", "mmlongdoc_116": "no-answer-pages"}
    repairs = Counter(repair for row in rows.values() for repair in row.repairs)
    assert repairs == {"pages-of-unanswerable-dropped": 3, "integer-to-string": 2}
    assert {row.doc for row in rows.values()} <= {path.stem for path in (real / "documents").iterdir()}
    assert (rows["mmlongdoc_0"].pages, rows["mmlongdoc_142"].answer) == ((2, 4), ("14:04 CET",))
    assert capsys.readouterr() == ("", "")


# --- tables of one's own ----------------------------------------------------------------------------------------------

HEADER = "doc,question,answer,pages"
TABLE = [["doc", "question", "answer", "pages"], ["a.pdf", "Who, and where?", "Tern; Rock", "3"]]


def lines(separator: str) -> str:
    return "".join(separator.join(f'"{cell}"' for cell in cells) + "\r\n" for cells in TABLE)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("q.csv", lines(",")),
        ("q.csv", lines(";")),
        ("q.csv", lines("\t")),
        ("q.tsv", lines("\t")),
        ("q.csv", lines(";").encode("utf-8-sig")),
        ("q.txt.csv", lines("\t").encode("utf-16")),
        ("q.csv", lines(",").replace('"doc"', '"Doc "').replace('"pages"', "PAGES")),
        ("q.json", [dict(zip(*TABLE, strict=True))]),
        ("q.jsonl", json.dumps(dict(zip(*TABLE, strict=True)))),
        ("q.csv", f'{HEADER},\na.pdf,"Who, and where?",Tern; Rock,3,x\n'),
    ],
    ids=["commas", "semicolons", "tabs", "tsv", "BOM", "utf-16", "capitals", "array", "lines", "column without a name"],
)
def test_every_form_of_a_table_gives_the_same_row(name: str, data: object, tmp_path: Path) -> None:
    (found,) = read("own_documents", in_file(tmp_path / name, data))
    assert isinstance(found, DocumentQuestion), found
    assert (found.id, found.doc, found.question, found.answer, found.pages, dict(found.columns)) == (
        "own_0",
        "a",
        "Who, and where?",
        ("Tern; Rock",),
        (2,),
        {},
    )


def test_the_sample_is_read_in_three_formats_alike(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    def rows_in(path: Path) -> list[mt.Row]:
        found = read("own_documents", path, documents=source["documents"])
        return [row.model_copy(update={"file": "", "place": ""}) for row in found]

    source = sample("own_documents")
    with source["questions"].open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    first = rows_in(source["questions"])
    assert len(first) == len(table) > 8
    assert rows_in(in_file(tmp_path / "q.json", table)) == first
    assert rows_in(in_file(tmp_path / "q.jsonl", "".join(json.dumps(row) + "\n" for row in table))) == first


def test_ids_are_texts_and_whole_numbers_and_others_reject_their_rows(tmp_path: Path) -> None:
    ids = [7.0, " x ", None, " ", 1.5, True, ["q"], {}, "a\rb", "\ud83d"]
    rows = [{**OWN, "id": id} for id in ids]
    found = read("own_documents", in_file(tmp_path / "q.jsonl", "\n".join(map(json.dumps, rows))))
    assert [row.id for row in found[:4]] == ["7", "x", "own_2", "own_3"]
    assert all(isinstance(row, DocumentQuestion) for row in found[:4])
    assert [(row.id, row.fault.reason, row.fault.place) for row in found[4:]] == [
        *((f"own_{number}", "wrong-id", f"line {number + 1}") for number in range(4, 9)),
        ("own_9", "invalid-unicode", "line 10"),
    ]


def test_the_list_names_every_form_and_column_of_the_table() -> None:
    said = OwnDocuments.source_forms["questions"]
    for word in (*COLUMNS.known, *ENDINGS, "semicolons"):
        assert word in said
    assert "page images" in OwnDocuments.source_forms["documents"]


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"document;question;answer;page\na;Who?;I;1\n", ["found no doc, pages", "'document' to 'doc'", "'page' to"]),
        (b"doc,question,answer,pages,doc\na,Who?,I,1,b\n", ["line 1", "wrong-columns", "found 'doc'"]),
        (f"{HEADER}\n".encode("utf-16-le"), ["expected CSV in UTF-8", "found UTF-16"]),
        (f"{HEADER}\na,Who?,Café,1\n".encode("latin-1"), ["line 2", "0xe9", "Latin-1 or Windows-1252"]),
        (b"doc,question\na,Who?\n", [HEADER.replace(",", ", "), "found no answer, pages"]),
        (b"doc,question,answer\na.pdf,Who?,I\n", ["pages"]),
        (b"", []),
    ],
    ids=["other names", "twice", "utf-16 without a mark", "latin-1", "two missing", "one missing", "empty"],
)
def test_a_table_of_another_form_is_told_by_its_cause(data: bytes, facts: list[str], tmp_path: Path) -> None:
    with pytest.raises(mt.readers.SourceError, match=r"^q\.csv") as refused:
        read("own_documents", in_file(tmp_path / "q.csv", data))
    assert all(fact in str(refused.value) for fact in facts)


def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    data = f"{HEADER}\na,Who?,I\0,1\na.pdf,Who?\na.pdf,Who?,I,1,2\na,Who?,I,1\n"
    *faults, good = read("own_documents", in_file(tmp_path / "q.csv", data))
    assert [row.fault.place for row in faults] == ["line 2", "line 3", "line 4"]
    assert (faults[0].fault.reason, faults[0].fault.field) == ("invalid-text", "answer")
    assert "NUL" in faults[0].fault.found
    assert isinstance(good, DocumentQuestion)


# --- spreadsheets -----------------------------------------------------------------------------------------------------

COLUMN_NAMES = ("doc", "question", "answer", "pages")
CELLS = ("a", "Who?", "I", 1)


def sheet(path: Path, *rows: Sequence[object], **formats: str) -> Path:
    book = openpyxl.Workbook()
    for cells in rows:
        book.active.append(list(cells))
    for cell, shape in formats.items():
        book.active[cell].number_format = shape
    book.save(path)
    return path


def edited(path: Path, *changes: tuple[bytes, bytes]) -> Path:
    """Replace bytes in the parts of a spreadsheet."""
    data = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(data, "w") as new:
        for part in old.namelist():
            text = old.read(part)
            for before, after in changes:
                text = text.replace(before, after)
            new.writestr(part, text)
    return in_file(path, data.getvalue())


def test_cells_are_read_as_a_person_sees_them(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "q.xlsx",
        COLUMN_NAMES,
        ("a", "Which year?", 2019.0, 3),
        (None, None, None, None),
        ("a", "Which share?", 0.125, "3; 5"),
        ("a", "When?", datetime.datetime(2019, 4, 1), 3),  # noqa: DTZ001  (a sheet has no time zones)
        ("a", "How many?", 3927, 3),
        C4="0.0%",
        C6="#,##0",
    )
    assert [(row.answer[0], row.answer_format, row.pages, row.place) for row in read("own_documents", path)] == [
        ("2019", "Integer", (2,), "row 2"),
        ("12.5%", "Float", (2, 4), "row 4"),
        ("2019-04-01", "String", (2,), "row 5"),
        ("3,927", "Integer", (2,), "row 6"),
    ]


def test_the_error_of_a_formula_is_named_in_its_cell(tmp_path: Path) -> None:
    path = sheet(tmp_path / "q.xlsx", COLUMN_NAMES, ("a", "Who?", "=1/0", 1))
    edited(path, (b"<f>1/0</f><v />", b"<f>1/0</f><v>#DIV/0!</v>"), (b'r="C2"', b'r="C2" t="e"'))
    (found,) = read("own_documents", path)
    fault = found.fault
    assert (fault.reason, fault.file, fault.place, fault.field) == ("invalid-text", "q.xlsx", "row 2", "answer")
    assert "#DIV/0!" in fault.found


def test_a_file_that_is_no_spreadsheet_or_needs_the_extra_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (b"", b"PK", b"not a zip", b"\0" * 1000):
        with pytest.raises(mt.readers.SourceError, match=r"^q\.xlsx: unreadable-source: expected an Excel file"):
            read("own_documents", in_file(tmp_path / "q.xlsx", data))
    with pytest.raises(mt.readers.SourceError, match=r"q\.xls: .*\.xlsx.*CSV UTF-8"):
        read("own_documents", in_file(tmp_path / "q.xls", b"\xd0\xcf\x11\xe0"))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(mt.readers.SourceError, match=r'pip install "mmlongbench\[xlsx\]".*CSV UTF-8'):
        read("own_documents", in_file(tmp_path / "q.xlsx", b"PK"))


def test_a_sheet_that_would_take_all_memory_is_refused_before_it_does(tmp_path: Path) -> None:
    path = sheet(tmp_path / "q.xlsx", COLUMN_NAMES, CELLS)
    block = b" " * 1_000_000
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/big.xml", "w") as part:
        for _ in range(200):
            part.write(block)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(mt.readers.SourceError, match="bytes after unpacking, found"):
        read("own_documents", path)
    far = edited(sheet(path, COLUMN_NAMES, CELLS), (b'r="2"', b'r="999999999"'), (b'2"', b'999999999"'))
    with pytest.raises(mt.readers.SourceError, match=r"q\.xlsx: unreadable-source"):
        read("own_documents", far)


def test_a_table_has_at_most_so_many_rows_and_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 2)
    assert len(read("own_documents", sheet(tmp_path / "q.xlsx", COLUMN_NAMES, CELLS))) == 1
    with pytest.raises(mt.readers.SourceError, match="at most 2 rows, found more"):
        read("own_documents", sheet(tmp_path / "q.xlsx", COLUMN_NAMES, *[CELLS] * 2))
    wide = range(tables.MAX_COLUMNS - 4)
    assert len(read("own_documents", sheet(tmp_path / "q.xlsx", (*COLUMN_NAMES, *wide), (*CELLS, *wide)))) == 1
    with pytest.raises(mt.readers.SourceError, match="at most 100 columns"):
        read("own_documents", sheet(tmp_path / "q.xlsx", (*COLUMN_NAMES, *wide, "one more")))


# --- files of M-LongDoc -----------------------------------------------------------------------------------------------


def test_ids_name_the_file_and_the_row_and_other_files_are_named(tmp_path: Path) -> None:
    in_file(tmp_path / "test_product.json", f"{json.dumps(OPEN)}\nnot json\n{json.dumps(OPEN)}\n")
    (tmp_path / "train.json").touch()
    rows = list(MLongDoc().raw_rows({"questions": tmp_path, "documents": tmp_path}))
    assert [row.id for row in rows] == [f"m_longdoc_product_{number}" for number in range(3)]
    assert isinstance(rows[1], mt.readers.RowFault)
    assert isinstance(rows[0], mt.readers.RawRow)
    assert question("m_longdoc").columns["annotator"] == "azure"
    notes = MLongDoc().notes({"questions": tmp_path, "documents": tmp_path}, DocVQAOptions())
    assert "not read: train.json" in notes[0]
    assert "851 of 1,051" in notes[1]
    assert len(list(MLongDoc().raw_rows({"questions": tmp_path / "test_product.json"}))) == 3


def test_only_questions_with_the_mark_1_are_kept_from_sheets_with_other_columns(tmp_path: Path) -> None:
    questions = [f"Question {number}?" for number in range(4)]
    text = "".join(f"{json.dumps({**OPEN, 'question': each})}\n" for each in questions)
    in_file(tmp_path / "test_finance.json", text)
    (tmp_path / "annotation").mkdir()
    marks: dict[str, dict[int, float]] = {"a": {0: 1, 1: 0}, "b": {2: 1.0}}
    for name, marked in marks.items():
        rows = [("x.pdf", "none", f" {questions[number]}\n", mark) for number, mark in marked.items()]
        sheet(tmp_path / f"annotation/{name}.xlsx", ("file", "comments", "question", "valid"), *rows)
    found = read("m_longdoc", tmp_path / "test_finance.json", annotations=tmp_path / "annotation")
    assert [isinstance(row, DocumentQuestion) for row in found] == [True, False, True, False]


def test_a_source_without_questions_or_marks_and_an_unknown_facet_are_named(tmp_path: Path) -> None:
    for sources, named in (
        ({"questions": tmp_path}, "test_academic.json"),
        ({"questions": tmp_path / "test_a.json", "annotations": tmp_path}, "data/annotation"),
    ):
        with pytest.raises(mt.readers.SourceError, match=named):
            list(MLongDoc().raw_rows(sources))
    with pytest.raises(mt.readers.SourceError, match="did you mean 'subject'"):
        MLongDoc().notes({"questions": tmp_path}, DocVQAOptions(facets=("subjct",)))
