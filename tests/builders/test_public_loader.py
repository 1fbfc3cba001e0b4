"""A built file through `datasets`, and through a loader that knows the public format only."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from builders.docvqa import DocVQA, DocVQAOptions
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import DatasetSpec, Manifest, SampleSpec

pytestmark = pytest.mark.slow

# As the public loader has them: its template, its page line, its question
USER = (
    "You are given a document with text and images, and a question. Answer the question as concisely as you can, using "
    "a single phrase or sentence if possible. If the question cannot be answered based on the information in the "
    "article, write 'Not answerable.' Write your answer in the following format:\nAnswer: [answer]\n\n{context}\n\n"
    "Question: {question}"
)
SYSTEM = "Answer:"
PAGE = "Document {doc_id:.15}: <image>"
ASKED = "Based on Document {doc_name:.15}, answer the following question. "
FORMATS = {"Integer", "Float", "String", "List", "None"}
COLUMNS = {
    "id": "Value('string')",
    "doc_name": "Value('string')",
    "question": "Value('string')",
    "answer": "Value('string')",
    "answer_format": "Value('string')",
    "ans_page_list": "List(Value('int64'))",
    "page_list": "List(Value('string'))",
    "answer_sources": "List(Value('string'))",
    "doc_type": "Value('string')",
    "page_label": "Value('string')",
    "question_names_page": "Value('bool')",
    "gaps": "Value('string')",
    "anchor": "Value('string')",
    "anchor_page_list": "List(Value('int64'))",
    "evidence_position": "Value('string')",
    "length": "Value('int64')",
    "tokens": "{'text': Value('int64'), 'image': Value('int64'), 'reserve': Value('int64')}",
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release")
    dataset = DatasetSpec(
        name="mmlongdoc",
        builder="docvqa",
        reader="mmlongbench_doc",
        source="sample",
        lengths=(8 * 1024, 16 * 1024),
        sample=SampleSpec(n=5, stratify="answer_format"),
        options={"max_answer_words": 5},
    )
    build(Manifest(datasets=(dataset,)), out, LocalExecutor(1, Progress(False)))
    return out


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def loaded(release: Path, cache: Path, *lengths: str) -> Any:
    """The files of some lengths as one dataset, read without the network."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of what `datasets` imports
        import datasets

    datasets.disable_progress_bars()
    files = [str(release / f"mmlb_data/documentQA/mmlongdoc_K{length}.jsonl") for length in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        return datasets.load_dataset("json", data_files=files, split="train", cache_dir=str(cache))


@pytest.mark.parametrize("lengths", [["8"], ["16"], ["8", "16"], ["16", "8"]], ids=" then ".join)
def test_every_column_has_one_type_at_every_length(release: Path, cache: Path, lengths: list[str]) -> None:
    rows = loaded(release, cache, *lengths)
    assert {name: repr(feature) for name, feature in rows.features.items()} == COLUMNS
    assert len(rows) == 5 * len(lengths)


@pytest.mark.parametrize("length", ["8", "16"])
def test_a_public_loader_makes_the_prompt_that_was_counted(release: Path, cache: Path, length: str) -> None:
    task = DocVQA("mmlongdoc", DocVQAOptions())
    for row in loaded(release, cache, length):
        doc_ids = [path.split("/")[-2] for path in row["page_list"]]
        context = "\n\n".join(PAGE.format(doc_id=doc_id) for doc_id in doc_ids)
        question = ASKED.format(doc_name=row["doc_name"]) + row["question"]
        prompt = USER.format(context=context, question=question) + "\n" + SYSTEM
        assert prompt == task.prompt(row).rendered()
        assert prompt.count("<image>") == len(row["page_list"])


def test_a_public_scorer_can_read_the_answers(release: Path, cache: Path) -> None:
    rows = list(loaded(release, cache, "8"))
    assert {row["answer_format"] for row in rows} == FORMATS
    for row in rows:
        if row["answer_format"] == "List":
            assert all(isinstance(element, str) for element in json.loads(row["answer"]))
        elif row["answer_format"] == "Integer":
            int(row["answer"].replace(",", ""))
        assert (row["answer_format"] == "None") == (row["answer"] == "Not answerable") == (row["ans_page_list"] == [])


def test_answer_pages_are_shown_by_folder_and_number_and_every_image_is_there(release: Path, cache: Path) -> None:
    for row in loaded(release, cache, "8", "16"):
        folder = f"mmlongbench-doc/{row['doc_name']}/{row['doc_name']}"
        assert {f"{folder}_page{page}.jpg" for page in row["ans_page_list"]} <= set(row["page_list"])
        for path in row["page_list"]:
            with Image.open(release / "mmlb_image" / path) as picture:
                assert picture.format == "JPEG"


def test_rows_are_the_same_questions_at_every_length(release: Path, cache: Path) -> None:
    short, long = (list(loaded(release, cache, length)) for length in ("8", "16"))
    assert [row["id"] for row in short] == [row["id"] for row in long]
    assert all(set(a["page_list"]) <= set(b["page_list"]) for a, b in zip(short, long, strict=True))
