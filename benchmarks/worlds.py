"""What the benchmarks measure on: PDFs, drawn sources for every builder, and builds whose stages are done.

Drawn sources suffice for examples of 1M: many units, drawn as cheaply as possible. What is measured over them is
arithmetic, which looks at sizes and texts only: most pictures are of one colour, and pages are empty. Everything is
drawn by name, so the same arguments give the same sources.
"""

import hashlib
import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pymupdf
from PIL import Image

import mmlongbench.task as mt
from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.planning import check_manifest, plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.stages.table import PREPARED, STAGES
from mmlongbench.corpus.build import make_corpus
from mmlongbench.documents.limits import Limits
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.plugins import sample_function
from tests.drawing.docvqa.pages import draw_report
from tests.drawing.docvqa.reports import read_reports, sample_row
from tests.drawing.mm_niah.sources import draw_hidden_sentences

REAL = Path(__file__).resolve().parents[2] / "shared/real/mmlongbench-doc/documents"
"""Real PDFs that may lie beside the checkout."""
LIMITS = Limits()
QUESTIONS = 32
"""One block of a cell."""
DRAWS = mt.Draws(("haystacks",))
Source = dict[str, Any]
"""Keys of a dataset in a manifest besides its builder and lengths."""


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Return the median of several rounds, with the smallest and the largest value.

    >>> spread([3, 1, 2])
    '2.00 (1.00 to 3.00)'
    """
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


@contextmanager
def open_pdfs(folder: Path | None) -> Iterator[list[Path]]:
    """The PDFs of a folder; without one the real ones, or else the reports of a sample."""
    with tempfile.TemporaryDirectory() as drawn:
        if folder is None:
            folder = REAL if REAL.is_dir() else sample_function("mmlongbench_doc")(Path(drawn))["documents"]
        pdfs = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".pdf")
        if not pdfs:
            raise SourceError(Fault("no-documents", "a folder with PDFs", "none in it", folder.name))
        yield pdfs


def run_stages(manifest: Manifest, out: Path, *, until_questions: bool = False) -> Session:
    """Do every stage of all datasets in this process, or only choose their questions; the session is to be closed."""
    build_dir, executor = BuildDir(out), LocalExecutor(1, Progress(is_shown=False))
    build_dir.root.mkdir(parents=True, exist_ok=True)
    session = Session(out, plan_build(check_manifest(manifest), build_dir, executor)[0])
    do_stages(session, executor, stages=PREPARED if until_questions else STAGES)
    return session


# --- a world for each builder -----------------------------------------------------------------------------------------


def decks(root: Path) -> Source:
    """Document questions over 1,200 slides."""
    lines = []
    for deck in range(60):
        name = f"{deck:03}_deck_of_slides"
        (root / "decks" / name).mkdir(parents=True)
        for slide in range(1, 21):  # no two look alike, because a context shows no page that looks like another
            path = root / "decks" / name / f"deck-{deck}-{slide}-1024.jpg"
            clouds = hashlib.shake_256(path.name.encode()).digest(8 * 8 * 3)
            picture = Image.frombytes("RGB", (8, 8), clouds).resize((1024, 768), Image.Resampling.BILINEAR)
            picture.save(path, quality=60)
        lines.append({"deck_name": name, "question": "Which deck?", "answer": f"deck {deck}", "evidence_pages": [4]})
    questions = write(root / "test.jsonl", lines[:QUESTIONS])
    return {"reader": "slidevqa", "source": {"questions": questions, "decks": str(root / "decks")}}


def cases(root: Path) -> Source:
    """Lawsuits of six documents, which are the same in every one, with 420 letter-size pages in all."""
    (root / "pdf").mkdir(parents=True)
    for number in range(6):
        with pymupdf.open() as pdf:
            for _ in range(65 + 2 * number):
                pdf.new_page(width=612, height=792)
            pdf.save(root / "pdf" / f"{100 + number}.pdf")
    ids = [str(100 + number) for number in range(6)]
    lines = [{"case_id": f"{n}", "case_documents": ids, "summary/short": "It was settled."} for n in range(QUESTIONS)]
    source = {"cases": write(root / "cases.json", lines), "documents": str(root / "pdf")}
    return {"reader": "multi_lexsum", "source": source, "options": {"kind": "case"}, "reference_length": "1M"}


def web_pages(root: Path) -> Source:
    """Sentences hidden in web pages of prose, with a view on every other page."""
    source = draw_hidden_sentences(root, pages=2400, questions=QUESTIONS)
    return {"reader": "mm_niah", "source": {name: str(path) for name, path in source.items()}}


def photographs(root: Path) -> Source:
    """One photograph among 6,500 of COCO's sizes."""
    source = {**draw_photographs(root, 6500, QUESTIONS), "questions": str(root / "single.json")}
    return {"reader": "visual_haystacks", "source": source}


def classes(root: Path) -> Source:
    """Fifty classes of seventy pictures, and four to be asked about: contexts are shared by up to 200 questions."""
    names = [f"class {number:03}" for number in range(50)]
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    kinds = [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())]
    schema = pa.schema(kinds, metadata={"huggingface": json.dumps({"info": {"features": features}})})
    (root / "table").mkdir(parents=True)
    for split, count in (("train", 70), ("validation", 4)):
        with pq.ParquetWriter(root / "table" / f"{split}-00000-of-00001.parquet", schema) as writer:
            for label in range(len(names)):
                pictures = [_picture(root, f"{split} {label} {number}") for number in range(count)]
                rows = [{"image": {"bytes": picture, "path": None}, "label": label} for picture in pictures]
                writer.write_table(pa.Table.from_pylist(rows, schema))
    return {"reader": "image_tables", "source": {"data": str(root / "table")}, "sample": {"stratify": "kind"}}


def _picture(root: Path, name: str) -> bytes:
    """A JPEG file of Food101's sizes (60 % are square) in a colour of its own."""
    at = DRAWS.integer(f"size {name}", 0, 9)
    size = (512, 512) if at < 6 else (512, 384) if at < 8 else (384, 512)
    colour = tuple(DRAWS.integer(f"{name} {channel}", 0, 255) for channel in "rgb")
    Image.new("RGB", size, colour).save(root / "picture.jpg", quality=60)
    return (root / "picture.jpg").read_bytes()


def passages(root: Path) -> Source:
    """Questions about single passages of a corpus of 12,000."""
    source = draw_encyclopedia(root, 12_000, QUESTIONS)
    common = {"corpus": str(root / "corpus.json"), "options": {"gold": "span"}, "retrieval": {"k": 10_000}}
    return {"reader": "viquae", "source": source, **common}


WORLDS: Mapping[str, Callable[[Path], Source]] = {
    "docvqa": decks,
    "many_shot": classes,
    "summary": cases,
    "mm_niah": web_pages,
    "visual_haystack": photographs,
    "vrag": passages,
}
"""For each builder, a function that draws its source into an existing folder and returns the keys of a manifest."""


def draw_reports(root: Path, copies: int) -> Source:
    """The twelve reports of the sample, each drawn so many times with other words; a DocVQA dataset of them."""
    (root / "documents").mkdir(parents=True)
    asked = []
    for copy in range(copies):
        for report in read_reports():
            own = report.model_copy(update={"name": f"{report.name}-{copy}"})
            pdf = draw_report(own, mt.Draws(("benchmark", copy, report.name)))
            (root / "documents" / f"{own.name}.pdf").write_bytes(pdf)
            asked += [sample_row(own, question) for question in report.questions]
    (root / "samples.json").write_text(json.dumps(asked), "utf-8")
    source = {"samples": root / "samples.json", "documents": root / "documents"}
    return {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": source}


def draw_visual_questions(root: Path, questions: int) -> Source:
    """Questions about some of 20,000 passages, which are kept as a corpus; a VRAG dataset."""
    source = draw_encyclopedia(root, 20_000, questions)
    make_corpus(str(root / "corpus.json"), root / "corpus")
    about = {"name": "viquae", "builder": "vrag", "reader": "viquae", "options": {"gold": "span"}}
    return {**about, "source": source, "corpus": root / "corpus"}


# --- photographs, and passages of text --------------------------------------------------------------------------------

OBJECTS = ("dog", "kite", "boat", "chair", "clock", "umbrella", "truck", "bench")
WORDS, SHORTEST, STEP = 100, 60, 37
"""Words of the longest and of the shortest passage; the step mixes their lengths."""
VOCABULARY = 200_000


def draw_photographs(folder: Path, photographs: int, questions: int) -> dict[str, str]:
    """Photographs of COCO's sizes with their objects, and questions of Visual Haystacks with one needle, in
    `single.json`.
    """
    images = folder / "images" / "train2017"
    images.mkdir(parents=True)
    known: list[dict[str, Any]] = []
    annotations: list[dict[str, int]] = []
    for number in range(photographs):
        name = f"{number:012d}.jpg"
        width, height = size = _coco_size(name)
        colour = tuple(DRAWS.integer(f"{name} {channel}", 0, 255) for channel in "rgb")
        Image.new("RGB", size, colour).save(images / name, quality=30)
        known.append({"id": number, "file_name": name, "width": width, "height": height})
        for category in {DRAWS.integer(f"{name} object {n}", 0, len(OBJECTS) - 1) for n in range(2)}:
            annotations.append({"id": len(annotations), "image_id": number, "category_id": category})
    categories = [{"id": number, "name": name} for number, name in enumerate(OBJECTS)]
    instances = {"images": known, "annotations": annotations, "categories": categories}
    (folder / "instances_train2017.json").write_text(json.dumps(instances))
    shown: dict[str, set[str]] = {picture["file_name"]: set() for picture in known}
    for annotation in annotations:
        shown[known[annotation["image_id"]]["file_name"]].add(OBJECTS[annotation["category_id"]])
    asked = []
    for number in range(questions):  # the answers alternate, and the target is not looked at
        anchor, target = DRAWS.order(f"objects 1 {number}", OBJECTS)[:2]
        needles = DRAWS.order(f"needles 1 {number}", (name for name in shown if anchor in shown[name]))[:1]
        others = DRAWS.order(f"negatives 1 {number}", (name for name in shown if anchor not in shown[name]))[:9]
        question = f"For the image with a {anchor}, is there a {target}?"
        said = [{"from": "human", "value": question}, {"from": "gpt", "value": ("Yes", "No")[number % 2]}]
        named = {"pos_image": needles, "neg_image": others}
        asked.append({key: [f"train2017/{n}" for n in names] for key, names in named.items()} | {"conversations": said})
    (folder / "single.json").write_text(json.dumps(asked))
    return {"images": str(folder / "images"), "annotations": str(folder / "instances_train2017.json")}


def _coco_size(name: str) -> tuple[int, int]:
    """A size such as COCO's: 23 % 640 x 480, 28 % 640 x 427, 17 % portrait, the rest 400 to 640; mean 577 x 486."""
    at = DRAWS.integer(f"kind {name}", 0, 99)
    if at < 23:
        return 640, 480
    if at < 51:
        return 640, 427
    if at < 68:
        return (480, 640) if at % 2 else (427, 640)
    return DRAWS.integer(f"width {name}", 446, 640), DRAWS.integer(f"height {name}", 400, 518)


def draw_encyclopedia(root: Path, count: int, questions: int) -> dict[str, str]:
    """Articles of one passage, as Wikipedia's own dump has them (`corpus.json`), and questions of ViQuAE about them.

    A question is about a picture, and its answer is a rare word of one passage.
    """
    pieces = [words[: SHORTEST + n * STEP % (WORDS - SHORTEST + 1)] for n, words in enumerate(_rows(count))]
    articles = (
        {"_id": f"{n}", "wikipedia_id": f"{n}", "wikipedia_title": f"Sheet {n}", "text": [f"Sheet {n}", text]}
        for n, text in enumerate(map(" ".join, pieces))
    )
    write(root / "corpus.json", articles)
    (root / "images").mkdir()
    known = Counter(word for piece in pieces for word in set(piece))
    asked = list[dict[str, Any]]()
    for n, piece in enumerate(pieces):
        rare = [word for word in piece if len(word) > 3 and known[word] < 30]
        if rare and len(asked) < questions:
            Image.new("RGB", (640, 480), (n % 256, 90, 120)).save(root / "images" / f"oven_{n:08d}.jpg")
            place = {"title": [f"Sheet {n}"], "wikipedia_id": [f"{n}"]}
            span = {**place, "start_paragraph_id": [1], "end_paragraph_id": [1]}
            output = {"original_answer": max(rare), "answer": [max(rare)], "provenance": [span]}
            question = {"input": "Which is rare?", "original_question": f"Which word of Sheet {n} is rare?"}
            asked.append({"image": f"oven_{n:08d}.jpg", **question, "output": output})
    return {"questions": write(root / "viquae.jsonl", asked), "images": str(root / "images")}


def _rows(count: int) -> Iterator[list[str]]:
    """Rows of words; the n-th commonest word has a chance in proportion to 1 / n, and the commoner, the shorter."""
    weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    vocabulary = [spell(rank) for rank in range(VOCABULARY)]
    drawn = np.frombuffer(hashlib.shake_256(b"passages").digest(8 * count * WORDS), np.uint64) / 2**64
    for ranks in np.searchsorted(weights, drawn.reshape(count, WORDS) * weights[-1]).tolist():
        yield [vocabulary[rank] for rank in ranks]


def spell(rank: int) -> str:
    """A word of letters.

    >>> [spell(rank) for rank in (0, 25, 26, 702)]
    ['a', 'z', 'aa', 'aaa']
    """
    letters, rest = "", rank + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def write(path: Path, lines: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)
