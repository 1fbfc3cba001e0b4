"""The pages as files, which open from disk and from any host of files. Data are script files, because browsers do not
let a page from disk read other files; images are copies.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.web.kit import asset
from mmlongbench.web.viewer.app import ASSETS
from mmlongbench.web.viewer.beside import beside
from mmlongbench.web.viewer.index import plain
from mmlongbench.web.viewer.pages import dataset, example, release, report, review
from mmlongbench.web.viewer.pictures import LARGE_SIDE, small_copy
from mmlongbench.web.viewer.prompt_list import chunks_of
from mmlongbench.web.viewer.site import Key, Links, Site
from mmlongbench.web.viewer.sources import ViewedFile
from mmlongbench.web.viewer.tables import Query

MAX_BYTES = 2 * 1024**3
"""The most bytes of a site."""
LIMIT = 20
"""How many examples of each file are written by default."""
_MARK = "index.html"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    pages: int
    """The number of examples with a page."""
    files: int
    bytes: int
    left_out: int
    """The number of examples without a page."""


class StaticLinks(Links):
    """The names of files, all in one folder and its folders `data` and `images`."""

    mode = "static"

    def __init__(self, shown: Iterable[Key]) -> None:
        self._shown = frozenset(shown)

    def release(self) -> str:
        """Return the name of the first page."""
        return _MARK

    def dataset(self, number: int) -> str:
        """Return the name of the page of a dataset."""
        return f"dataset-{number}.html"

    def rejects(self) -> str:
        """Return the name of the page of what was left out."""
        return "rejects.html"

    def report(self) -> str:
        """Return the name of the page of the report."""
        return "report.html"

    def review(self) -> str:
        """Return the name of the list of what is reviewed."""
        return "review.html"

    def subject(self, number: int) -> str:
        """Return the name of the page of something that is reviewed."""
        return f"review-{number + 1}.html"

    def example(self, file: ViewedFile, row: int) -> str:
        """Return the name of the page of an example; empty if the limit leaves it out."""
        return f"example-{file.number}-{row + 1}.html" if (file.number, row) in self._shown else ""

    def asset(self, name: str) -> str:
        """Return the name of an asset."""
        return f"assets/{name}"

    def data(self) -> str:
        """Return the folder of data."""
        return "data/"

    def small(self) -> str:
        """Return the folder of small copies."""
        return "images/small-"

    def large(self) -> str:
        """Return the folder of larger copies."""
        return "images/large-"


@dataclass(slots=True)
class _Writer:
    """Writes files within a bound."""

    root: Path
    most: int
    files: int = 0
    size: int = 0
    images: dict[str, None] = field(default_factory=dict)

    def write(self, name: str, pieces: Iterable[str]) -> None:
        self.put(name, "".join(pieces).encode("utf-8", "backslashreplace"))

    def put(self, name: str, data: bytes) -> None:
        if self.size + len(data) > self.most:
            raise ReleaseError(
                f"{self.root}: the site would have more than {self.most:,} bytes; write fewer examples with --limit"
            )
        write_whole(self.root / name, [data])
        self.files, self.size = self.files + 1, self.size + len(data)

    def data(self, key: str, value: object) -> None:
        name = key.replace("/", "-")
        self.write(f"data/{name}.js", [f"(window.viewData ??= {{}})[{plain(key)}] = {plain(value)};\n"])


def write_site(
    site: Site, out: Path, limit: int = LIMIT, progress: Progress | None = None, most: int = MAX_BYTES
) -> Written:
    """Write the pages of a release as files; an older site in the folder is replaced.

    Args:
        site: what pages are made of.
        out: a new or empty folder, or the folder of an older site.
        limit: how many examples of each file have a page, the first ones.
        progress: shows the bar.
        most: the most bytes of the site.

    Raises:
        ReleaseError: the folder has other files or lies inside the release, or the site would be too large.

    """
    if site.viewed.lock_id and out.resolve().is_relative_to(site.viewed.path.resolve()):
        raise ReleaseError(f"--static {out}: lies inside the release {site.viewed.name}; give a folder outside of it")
    _make_room(out)
    shown = [(file.number, row.row) for file in site.viewed.files for row in site.index.file(file.number).rows[:limit]]
    total = sum(site.index.head(file.number).rows for file in site.viewed.files)
    links, writer = StaticLinks(shown), _Writer(out, most)
    for name in ASSETS:
        writer.write(f"assets/{name}", [asset(name)])
    bar = (progress or Progress(False)).bar("static: examples", len(shown))
    with bar as advance:
        for number, row in shown:
            _write_example(site, links, site.file(number), row, writer)
            advance()
    for number in range(len(site.viewed.datasets)):
        writer.write(links.dataset(number), dataset.dataset_page(site, links, number))
        rows = dataset.dataset_data(site, links, number, Query(), total + 1)
        writer.data(f"dataset/{number}/rows", rows)
    _write_review(site, links, writer)
    if site.answers.score_paths:
        writer.write(links.report(), report.report_page(site, links))
    writer.write(links.rejects(), release.rejects_page(site, links))
    writer.write(links.release(), release.release_page(site, links))
    return Written(len(shown), writer.files, writer.size, total - len(shown))


def _write_example(site: Site, links: Links, file: ViewedFile, row: int, writer: _Writer) -> None:
    name = links.example(file, row)
    writer.write(name, example.example_page(site, links, file, row))
    key = f"example/{file.number}/{row}"
    try:
        opened = site.open(file, row)
    except MMLongBenchError:
        return  # the page says why it cannot be shown
    writer.data(f"{key}/outline", example.outline_data(site, file, row))
    for number in range(chunks_of(opened)):
        writer.data(f"{key}/rows/{number}", example.chunk_data(site, file, row, number, is_whole=True))
    for number in range(len(site.models)):
        writer.data(f"{key}/model/{number}", example.model_data(site, file, row, number))
    for path in opened.example.prompt.images:
        _write_image(site, file, path, writer)


def _write_review(site: Site, links: Links, writer: _Writer) -> None:
    """Write the pages of a review."""
    if site.review is None:
        return
    writer.write(links.review(), review.review_page(site, links))
    for subject in site.review.subjects:
        writer.write(links.subject(subject.number), review.subject_page(site, links, subject.number))
        for page in beside(site, subject).pages:
            if page.file and page.path:
                _write_image(site, page.file, page.path, writer)


def _write_image(site: Site, file: ViewedFile, path: str, writer: _Writer) -> None:
    """Write the copies of an image, once for each file that shows it; a broken image has none."""
    number = site.index.images(file.number).index(path)
    name = f"{file.number}-{number}"
    if name in writer.images:
        return
    writer.images[name] = None
    try:
        small, large = small_copy(file.images, path), small_copy(file.images, path, LARGE_SIDE)
    except ReleaseError:
        return
    writer.put(f"images/small-{name}.jpg", small)
    writer.put(f"images/large-{name}.jpg", large)


def _make_room(out: Path) -> None:
    """Remove an older site; refuse a folder with anything else."""
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"{out}: is a file, expected a folder for the site")
    there = [path.name for path in out.iterdir()] if out.is_dir() else []
    if there and not _is_site(out):
        raise ReleaseError(f"{out}: has other files ({there[0]}); give a new folder")
    for path in _pages_of(out) if there else ():
        path.unlink()
    for name in ("data", "images", "assets"):
        if (out / name).is_dir() and not (out / name).is_symlink():
            shutil.rmtree(out / name)


def _is_site(out: Path) -> bool:
    """Return whether a folder has nothing but a site."""
    known = {"data", "images", "assets", *(path.name for path in _pages_of(out))}
    return (out / "assets" / "view.js").is_file() and all(path.name in known for path in out.iterdir())


def _pages_of(out: Path) -> Iterator[Path]:
    return (path for path in out.glob("*.html") if path.is_file())
