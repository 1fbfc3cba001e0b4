"""The documents stage: reads the page sizes of each document, and the keys and texts of the pages if a task asks for
them (`TaskSpec.page_keys`, `TaskSpec.page_texts`); with `pages.ocr: all`, OCR reads all texts.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import DOCUMENTS, DocumentLine, PartedPage, ReadDocument, RefusedDocument
from mmlongbench.building.source_files import DocumentFile, SourceFiles
from mmlongbench.building.source_files import parts_of as files_of_document
from mmlongbench.documents.ocr import OcrEngine, ocr_engine
from mmlongbench.documents.pages import KeptTexts, PageImages, parts_of, read_pages_of, sizes_of
from mmlongbench.errors import BuildError, ReaderDiedError, SourceError
from mmlongbench.io.files import file_lock
from mmlongbench.manifest.binding import Bound

OCR_TEXTS = "ocr"
"""The name of the folder in the working folder with the texts; they stay valid if the build starts again."""
_PATIENCE = 7 * 24 * 3600.0
"""The seconds to wait until another process has read the same document for another dataset."""


def needs_ocr(bound: Bound) -> bool:
    """Return whether OCR reads all pages of a dataset: the manifest asks for it, and the task needs texts of pages."""
    return bound.spec.pages.ocr == "all" and bound.task.page_texts


def check_engine(planned: OcrEngine) -> None:
    """Refuse to read pages with another engine than the planned one, as on another machine of the same build."""
    if (here := ocr_engine()) != planned:
        one, other = (f"{engine.engine}, {engine.library}" for engine in (planned, here))
        what = f"{one}; here it is {other}" if one != other else f"{one}; here its data for English differ"
        raise BuildError(f"pages.ocr: the build was planned with {what}; install the same on all machines")


@contextmanager
def kept_texts(build_dir: BuildDir, file: DocumentFile, engine: OcrEngine | None) -> Iterator[KeptTexts]:
    """Give the texts of a document that OCR has read in this build, also for another dataset or before the build was
    killed. Only one process has them at a time. Without an engine, nothing is kept.
    """
    if engine is None:
        yield KeptTexts()
        return
    dpi = file.pages.dpi if isinstance(file.pages, PageImages) else None
    key = hashlib.sha256(json.dumps([file.sha256, dpi, asdict(engine)], sort_keys=True).encode()).hexdigest()
    path = build_dir.root / OCR_TEXTS / f"{key}.jsonl"
    with file_lock(path.with_suffix(".lock"), f"the text of document {file.id!r}", patience=_PATIENCE):
        yield KeptTexts(path)


def document_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each document."""
    return [Shard("documents", name, document) for document in session.plans[name].documents]


def read_document(session: Session, shard: Shard) -> Iterator[DocumentLine]:
    """Yield one line: the page sizes of a document, with the keys and texts that the task asks for, or what is wrong
    with the document.
    """
    plan = session.plans[shard.dataset]
    file, task, limits, dpi = plan.documents[shard.name], plan.bound.task, plan.spec.limits, plan.spec.pages.dpi
    for other in session.plans.values():  # datasets often ask about the same documents, such as with text and without
        if other is not plan and _deciding(other, shard.name) == _deciding(plan, shard.name):
            known = Shard("documents", other.spec.name, shard.name)
            if session.build_dir.is_done(known):
                yield from session.build_dir.read(known, DOCUMENTS)
                return
    with reading(session.source_files, shard.dataset, file):
        if plan.ocr:
            check_engine(plan.ocr)
        try:
            with kept_texts(session.build_dir, file, plan.ocr) as kept:
                sizes = list(sizes_of(file.pages, dpi, limits))
                ocr = plan.spec.pages.ocr if task.page_texts else False
                pages = list(read_pages_of(file.pages, limits, keys=task.page_keys, ocr=ocr, kept=kept))
                parted = list(parts_of(file.pages, sizes, dpi, limits)) if task.page_crops else []
        except SourceError as error:
            line: DocumentLine = RefusedDocument(error.fault)
        else:
            has_texts = task.page_texts or task.page_crops
            line = ReadDocument(
                sizes,
                [page.key for page in pages] if task.page_keys else [],
                [page.text for page in pages] if task.page_texts else [],
                [PartedPage(texts=page["texts"], crops=page["crops"]) for page in parted],
                {number: page.lost for number, page in enumerate(pages) if page.lost},
                [number for number, page in enumerate(pages) if page.is_text_hidden and has_texts],
            )
    yield line


def _deciding(plan: DatasetPlan, name: str) -> tuple[object, ...]:
    """Return all that decides the line of a document."""
    task, spec = plan.bound.task, plan.spec
    asked = task.page_keys, task.page_texts, task.page_crops
    return plan.documents.get(name), spec.pages, spec.limits, asked, plan.ocr


@contextmanager
def reading(files: SourceFiles, dataset: str, file: DocumentFile) -> Iterator[None]:
    """Make sure that the document does not change while the block reads it. If a page causes an error, the error names
    the document.
    """
    try:
        with files.unchanged(*files_of_document(file.pages)):
            yield
    except ReaderDiedError as error:
        # YAML reads the id as a string, because it is quoted
        todo = f"`exclude: [{json.dumps(file.id, ensure_ascii=False)}]` in the manifest"
        raise BuildError(
            f"dataset {dataset!r}, document {file.id!r}: {error}: exclude it ({todo}) and build in a new folder"
        ) from error
