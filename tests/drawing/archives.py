"""The archives of `builders/samples`, one for each family, and what is drawn into each of their folders."""

import tarfile
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import builders.samples
from tests.drawing.docvqa import draw_longdocurl, draw_m_longdoc, draw_own_documents, draw_reports, draw_slidevqa
from tests.drawing.many_shot import draw_folders, draw_inaturalist, draw_tables
from tests.drawing.mm_niah import draw_hidden_pictures, draw_hidden_sentences
from tests.drawing.mm_niah.sources import PAGES, ROWS
from tests.drawing.mm_niah.upstream import draw_upstream
from tests.drawing.summarization import draw_cases
from tests.drawing.summarization import draw_reports as draw_government
from tests.drawing.visual_haystacks import draw_several, draw_single
from tests.drawing.vrag import draw_infoseek, draw_viquae

FAMILIES: Mapping[str, Mapping[str, Callable[[Path], object]]] = {
    "docvqa": {
        "longdocurl": draw_longdocurl,
        "m_longdoc": draw_m_longdoc,
        "mmlongbench_doc": draw_reports,
        "own_documents": draw_own_documents,
        "slidevqa": draw_slidevqa,
    },
    "many_shot": {"image_folders": draw_folders, "image_tables": draw_tables, "inaturalist": draw_inaturalist},
    "mm_niah": {
        "mm_niah": draw_hidden_sentences,
        "mm_niah_download": partial(draw_upstream, rows=ROWS, pages=PAGES),
        "own_pages": draw_hidden_pictures,
    },
    "summarization": {"govreport": draw_government, "multi_lexsum": draw_cases},
    "visual_haystacks": {"photographs": draw_several, "visual_haystacks": draw_single},
    "vrag": {"infoseek": draw_infoseek, "viquae": draw_viquae},
}
"""The functions that draw the folders of each archive. Folders of one archive share many files: the compression stores
them once, because its window is larger than the archive."""


def archive_of(family: str) -> Path:
    return Path(builders.samples.__file__).with_name(f"{family}.tar.xz")


def drawn(family: str) -> dict[str, bytes]:
    """Return the content of each file of an archive, by its name there, as it is drawn now."""
    with TemporaryDirectory() as root:
        for name, draw in FAMILIES[family].items():
            folder = Path(root, name)
            folder.mkdir()
            draw(folder)
        files = sorted(path for path in Path(root).rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def shipped(family: str) -> dict[str, bytes]:
    """Return the content of each file of an archive as it lies in `builders/samples`."""
    if not archive_of(family).is_file():
        return {}
    with tarfile.open(archive_of(family)) as archive:
        contents = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {name: file.read() for name, file in contents.items() if file}


def write_archive(family: str, files: Mapping[str, bytes]) -> None:
    """Write an archive; the same files give the same bytes."""
    with tarfile.open(archive_of(family), "w:xz", preset=8) as archive:  # a window of 32 MiB
        for name, data in files.items():
            member = tarfile.TarInfo(name)  # without time and owner
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
