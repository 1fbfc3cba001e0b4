"""The documents stage: reads the page sizes of each document, and the keys and texts of the pages if a task asks for
them (`TaskSpec.page_keys`, `TaskSpec.page_texts`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.ocr_texts import check_engine, kept_texts
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import DOCUMENTS, DocumentLine, PartedPage, ReadDocument, RefusedDocument
from mmlongbench.building.source_files import DocumentFile, SourceFiles
from mmlongbench.building.source_files import parts_of as files_of_document
from mmlongbench.documents.pages import parts_of, read_pages_of, sizes_of
from mmlongbench.errors import BuildError, ReaderDiedError, SourceError


def document_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for each document."""
    return [Shard("documents", name, document) for document in session.plans[name].documents]


def read_document(session: Session, shard: Shard) -> Iterator[DocumentLine]:
    """Yield one line: the page sizes of a document, with the keys and texts that the task asks for, or what is wrong
    with the document.
    """
    plan = session.plans[shard.dataset]
    file, task, limits, dpi = plan.documents[shard.name], plan.bound.task, plan.spec.limits, plan.spec.pages.dpi
    for (
        other
    ) in session.plans.values():  # two datasets often ask about the same documents, such as with text and without
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
