"""OCR of all pages in a build (`pages.ocr: all`): which datasets need it, its engine, and the texts that are kept."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.source_files import DocumentFile
from mmlongbench.documents.ocr import OcrEngine, ocr_engine, ocr_version
from mmlongbench.documents.pages import KeptTexts, PageImages
from mmlongbench.errors import BuildError
from mmlongbench.io.files import file_lock
from mmlongbench.manifest.binding import Bound

OCR_TEXTS = "ocr"
"""The name of the folder in the working folder with the texts; they stay valid if the build starts again."""
_PATIENCE = 7 * 24 * 3600.0
"""The seconds to wait until another process has read the same document for another dataset."""


def needs_ocr(bound: Bound) -> bool:
    """Return whether OCR reads all pages of a dataset: the manifest asks for it, and the task needs texts of pages."""
    return bound.spec.pages.ocr == "all" and bound.task.page_texts


def check_ocr(bound: Bound) -> None:
    """Refuse a dataset whose pages cannot be read by OCR on this machine.

    Raises:
        BuildError: `tesseract` is not installed, does not answer, or lacks its data for English.

    """
    if needs_ocr(bound):
        ocr_engine()
    elif bound.spec.pages.ocr is True:
        ocr_version()


def check_engine(planned: OcrEngine) -> None:
    """Refuse to read pages with another engine than the planned one, as on another machine of the same build.

    Raises:
        BuildError: the error names both engines.

    """
    if (here := ocr_engine()) != planned:
        one, other = (f"{each.engine}, {each.library}" for each in (planned, here))
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
