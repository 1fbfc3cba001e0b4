"""The samples of the built-in readers: small sources, each in the exact form of its dataset's own download.

A family has an archive, with a folder for each reader. `python -m tests.drawing` draws them in a checkout.
"""

from collections.abc import Mapping
from pathlib import Path

import mmlongbench.task as mt

_HERE = Path(__file__).parent


def _sample(place: str, about: str, **sources: str) -> mt.readers.SampleFiles:
    family, _, folder = place.partition("/")
    return mt.readers.SampleFiles(about, _HERE / f"{family}.tar.xz", folder, sources)


class _MMNIAH(mt.readers.SampleFiles):
    """Sentences that are hidden in web pages. Where a dataset asks for counts or pictures, it is the annotation file of
    MM-NIAH for this task, in a small version of MM-NIAH's download.
    """

    def __call__(self, folder: Path, options: Mapping[str, object] | None = None) -> dict[str, Path]:
        """Unpack the sample for the options of a dataset."""
        chosen = {"task": "retrieval", "needle": "text", **(options or {})}
        if chosen["task"] != "counting" and chosen["needle"] != "image":
            return super().__call__(folder)
        questions = f"mm_niah_val/annotations/{chosen['task']}-{chosen['needle']}.jsonl"
        sources = {"questions": questions, "images": ".", "obelics": "obelics.jsonl"}
        return mt.readers.SampleFiles(self.about, self.archive, "mm_niah_download", sources)(folder)

    def __str__(self) -> str:
        """Return the place of the sample."""
        return f"{super().__str__()} (mm_niah_download/ for counts and pictures)"


longdocurl = _sample(
    "docvqa/longdocurl",
    "Reports, and questions about windows of their pages.",
    questions="LongDocURL.jsonl",
    documents="documents",
)
m_longdoc = _sample(
    "docvqa/m_longdoc",
    "Reports, one of them parsed, open questions about them, and people's marks.",
    questions="questions",
    documents="documents",
    annotations="annotations",
    metadata="metadata.csv",
)
mmlongbench_doc = _sample(
    "docvqa/mmlongbench_doc",
    "Twelve reports, and questions whose answers are on known pages.",
    samples="samples.json",
    documents="documents",
)
own_documents = _sample(
    "docvqa/own_documents",
    "Reports, and a table of questions about them.",
    questions="questions.csv",
    documents="documents",
)
slidevqa = _sample(
    "docvqa/slidevqa", "Decks of slides, and questions about them.", questions="test.jsonl", decks="decks"
)
image_folders = _sample("many_shot/image_folders", "Shapes, in a folder for each class.", train="train", test="test")
image_tables = _sample(
    "many_shot/image_tables",
    "Shapes in a Parquet file for each split, with class labels as `datasets` writes them.",
    data="data",
)
inaturalist = _sample(
    "many_shot/inaturalist",
    "Shapes of two domains, with annotations for each split.",
    images=".",
    train="train.json",
    test="test.json",
)
mm_niah = _MMNIAH(
    "Web pages, and questions about sentences hidden in them.",
    _HERE / "mm_niah.tar.xz",
    "mm_niah",
    {"questions": "questions.jsonl", "images": "images", "obelics": "obelics.jsonl"},
)
own_pages = _sample(
    "mm_niah/own_pages",
    "Pages with pictures, and questions about pictures hidden in them.",
    questions="questions.jsonl",
    documents="pages",
)
govreport = _sample(
    "summarization/govreport", "Reports with a summary page like GAO's.", reports="gov-report", documents="documents"
)
multi_lexsum = _sample(
    "summarization/multi_lexsum", "Court files with their summaries.", cases="test.json", documents="documents"
)
photographs = _sample(
    "visual_haystacks/photographs",
    "Photographs of plain objects, and questions with two or three needles each.",
    questions="questions.jsonl",
    images="coco",
    annotations="instances_train2017.json",
)
visual_haystacks = _sample(
    "visual_haystacks/visual_haystacks",
    "Photographs of plain objects, and questions with one needle each.",
    questions="visual_haystack_10.json",
    images="coco",
    annotations="instances_train2017.json",
)
infoseek = _sample(
    "vrag/infoseek",
    "An encyclopedia, pictures of its entities, and questions about them in InfoSeek's form.",
    questions="infoseek_val.jsonl",
    entities="infoseek_val_withkb.jsonl",
    images="oven_images",
    corpus="kilt.json",
)
viquae = _sample(
    "vrag/viquae",
    "An encyclopedia, pictures of its entities, and questions about them in ViQuAE's form.",
    questions="test.jsonl",
    images="images",
    corpus="kilt.json",
)
