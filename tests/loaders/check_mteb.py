"""Reads an export back with mteb itself: `python check_mteb.py RELEASE OUT`, in an environment with mteb.

The loader of mteb reads each folder; pages, questions, relevant pages and candidates are compared with the release.
"""

import io
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    from loader_check import Truth
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

    started, truth = time.monotonic(), Truth(release)
    for folder in sorted(path for path in out.iterdir() if path.is_dir()):
        data: Any = RetrievalDatasetLoader(hf_repo=str(folder), revision=None, split="test").load()
        check(truth, folder.name, data)
    truth.end(f"mteb {version('mteb')}", out, time.monotonic() - started)


def check(truth: Any, dataset: str, data: Any) -> None:
    """Compare what mteb loaded with the examples of a dataset."""
    from PIL import Image

    examples = [each for each in truth.examples.values() if each.dataset == dataset]
    corpus = {row["id"]: row for row in data["corpus"]}
    queries = {row["id"]: row["text"] for row in data["queries"]}
    for id, row in corpus.items():
        if "image" in row:
            file = Image.open(io.BytesIO((truth.release / "mmlb_image" / id).read_bytes()))
            same = row["image"].convert("RGB").tobytes() == file.convert("RGB").tobytes()
            truth.same("pages", f"{dataset} {id}", same, True)
        else:
            truth.same("texts of pages", f"{dataset} {id}", bool(row["text"].strip()), True)
    expected: dict[str, dict[str, int]] = {}
    for each in examples:
        found = each.evidence
        names = found.images if not found.texts else {page: f"{found.document}#page={page}" for page in found.texts}
        pages = {names[page]: 1 for page in found.pages if names.get(page) in corpus}
        if pages:
            expected.setdefault(each.id, {}).update(pages)
            truth.same("questions", each.id, queries.get(each.id), each.record["question"].strip())
    truth.same("tables of relevant pages", dataset, dict(data["relevant_docs"]), expected)
    for id, pages in expected.items():
        truth.same("lists of candidates", id, pages.keys() <= set(data["top_ranked"][id]), True)


if __name__ == "__main__":
    main()
