"""The documents stage: reads the page sizes of each document, and the keys and texts of the pages if a task asks for
them (`TaskSpec.page_keys`, `TaskSpec.page_texts`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.lines import DocumentLine, PartedPage, ReadDocument, RefusedDocument
from mmlongbench.building.ocr_texts import check_engine, kept_texts
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import DocumentFile, SourceFiles
from mmlongbench.building.source_files import parts_of as files_of_document
from mmlongbench.documents.pages import KeptTexts, Pages, parts_of, read_pages_of, sizes_of
from mmlongbench.errors import BuildError, ReaderDiedError, SourceError
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.task.spec import TaskSpec


def document_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each document."""
    return [Shard("documents", name, document) for document in session.plans[name].documents]


def read_document(session: Session, shard: Shard) -> Iterator[DocumentLine]:
    """Yield one line: the page sizes of a document, with the keys and texts that the task asks for, or what is wrong
    with the document.
    """
    plan = session.plans[shard.dataset]
    file, asked = plan.documents[shard.name], plan.bound.task
    with reading(session.source_files, shard.dataset, file):
        if plan.ocr:
            check_engine(plan.ocr)
        with kept_texts(session.build_dir, file, plan.ocr) as kept:
            read = _pages(file.pages, plan.spec, asked, kept)
    yield read


@contextmanager
def reading(files: SourceFiles, dataset: str, file: DocumentFile) -> Iterator[None]:
    """Make sure that the document does not change while the block reads it. If a page causes an error, the error names
    the document.

    Raises:
        SourceChangedError: a file of the document has changed.
        BuildError: the process that reads the document dies, or `tesseract` fails or takes too long.

    """
    try:
        with files.unchanged(*files_of_document(file.pages)):
            yield
    except ReaderDiedError as error:
        raise BuildError(f"dataset {dataset!r}, document {file.id!r}: {error}: {excluding(file.id)}") from error


def excluding(id: str) -> str:
    """Return how to leave out a document, with its id quoted so that YAML reads it as a string."""
    return f"exclude it (`exclude: [{json.dumps(id, ensure_ascii=False)}]` in the manifest) and build in a new folder"


def _pages(document: Pages, spec: DatasetSpec, asked: TaskSpec, kept: KeptTexts) -> ReadDocument | RefusedDocument:
    """Return the page sizes of a document, with the keys and texts that the task asks for, or what is wrong with the
    document.
    """
    limits = spec.limits
    try:
        pages, ocr = list(sizes_of(document, spec.pages.dpi, limits)), spec.pages.ocr if asked.page_texts else False
        read = list(read_pages_of(document, limits, keys=asked.page_keys, ocr=ocr, kept=kept))
        parted = list(parts_of(document, pages, spec.pages.dpi, limits)) if asked.page_crops else []
    except SourceError as error:
        return RefusedDocument(error.fault)
    return ReadDocument(
        pages,
        [page.key for page in read] if asked.page_keys else [],
        [page.text for page in read] if asked.page_texts else [],
        [PartedPage(texts=each["texts"], crops=each["crops"]) for each in parted],
        {number: page.lost for number, page in enumerate(read) if page.lost},
        [number for number, page in enumerate(read) if page.is_text_hidden and (asked.page_texts or asked.page_crops)],
    )
