"""What tests of scoring share: public files of every task in miniature, without images."""

import json
from pathlib import Path
from typing import Any

import pytest

DEPTHS = (0.0, 0.2, 0.4)
SUMMARY = [{"section_title": "What GAO Found", "paragraphs": ["Twelve programs lacked metrics.", "Three had them."]}]
EXEMPLARS = [[[{"image": "a.jpg", "id": 0}, {"image": "b.jpg", "id": 1}]]]
TESTS = [
    {"id": "test-1", "name": "red ring", "image": "c.jpg", "answer": 0},
    {"id": "test-2", "name": "blue ring", "image": "d.jpg", "answer": 1},
]


def document_question(number: int, answer: str, answer_format: str, **other: object) -> dict[str, Any]:
    common = {"doc_name": "harbour", "question": "What?", "answer_sources": ["Chart"], "ans_page_list": [1]}
    question = {"id": f"mmlongdoc_{number}", "answer": answer, "answer_format": answer_format, "page_list": ["a/b.jpg"]}
    return {**common, **question, **other}


RECORDS: dict[str, list[dict[str, Any]]] = {
    "vrag/viquae_K8_dep6.jsonl": [
        {"id": f"viquae-{n}", "question": "Who?", "answer": [["Jo Mott"], ["Mott"]], "ctxs": [], "depth": depth}
        for n in (1, 2)
        for depth in DEPTHS
    ],
    "NIAH/vh_multi_test_2_K8_dep3.jsonl": [
        {"id": f"vh_multi-{n}", "question": "Is it?", "answer": answer, "ctxs": ["a.jpg"], "permutation": turn}
        for n, answer in ((0, "Yes"), (1, "No"))
        for turn in (0, 1, 2)
    ],
    "NIAH/counting-text_test_K8_dep3.jsonl": [  # as others publish it: rows differ only by their order
        {"id": "mm-niah-1", "question": "How many?", "answer": counts, "ctxs": [], "image_list": []}
        for counts in ([1, 2], [2, 1, 1], [5])
    ],
    "NIAH/retrieval-image_test_K8_dep6.jsonl": [
        {"id": "mm-niah-7", "question": "Which?", "answer": 2, "ctxs": [], "image_list": [], "depth": depth}
        for depth in DEPTHS
    ],
    "ICL/food101_K8.frozen.jsonl": [
        {"domain": "food101", "set": n, "exemplars": EXEMPLARS[0][0], **test} for n, test in enumerate(TESTS)
    ],
    "summ/gov_K8.jsonl": [{"id": "gao-1", "image_list": [], "summary": SUMMARY}],
    "documentQA/mmlongdoc_K8.jsonl": [
        document_question(0, "12", "Integer"),
        document_question(1, "18.29%", "Float", answer_sources=["Pure-text (Plain-text)"]),
        document_question(2, "Tern Rock", "String", ans_page_list=[1, 2]),
        document_question(3, '["red", "light blue"]', "List"),
        document_question(4, "Not answerable", "None", ans_page_list=[]),
    ],
    "documentQA/mmlongdoc_K16.jsonl": [document_question(0, "12", "Integer")],
}
"""Public files, by their name below `mmlb_data/`."""
GOLD = {
    "vrag": lambda record: record["answer"][0][0],
    "summ": lambda record: "What GAO Found:\nTwelve programs lacked metrics.\nThree had them.",
    "NIAH/retrieval-image": lambda record: "ABCD"[record["answer"]],
}
"""Predictions that give the gold answer, if it is not the answer as a string."""


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def predicted(file: str, record: dict[str, Any], said: object | None = None) -> dict[str, Any]:
    """A line of predictions; the gold answer by default."""
    gold = next((make for start, make in GOLD.items() if file.startswith(start)), lambda found: str(found["answer"]))
    placed: dict[str, Any] = {key: record[key] for key in ("depth", "permutation") if key in record}
    return {"file": file, "id": record["id"], **placed, "prediction": gold(record) if said is None else said}


@pytest.fixture(scope="session")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `mmlb_data/` of public files; not to be changed."""
    root = tmp_path_factory.mktemp("public") / "mmlb_data"
    for file, records in RECORDS.items():
        write_lines(root / file, records)
    found = {"food101": {"exemplar_list": EXEMPLARS * 2, "all_token_count": [1, 1], "test_example": TESTS}}
    (root / "ICL/food101_K8.json").write_text(json.dumps(found), "utf-8")
    return root


@pytest.fixture(scope="session")
def records() -> dict[str, list[dict[str, Any]]]:
    """The records of every public file; not to be changed."""
    return RECORDS


@pytest.fixture(scope="session")
def golds() -> list[dict[str, Any]]:
    """A line of predictions for every example, each the gold answer."""
    return [predicted(file, record) for file, records in RECORDS.items() for record in records]


@pytest.fixture
def docs(golds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line with the gold answer for each of the five document questions."""
    return [each for each in golds if each["file"] == "documentQA/mmlongdoc_K8.jsonl"]
