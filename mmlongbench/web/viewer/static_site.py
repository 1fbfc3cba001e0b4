"""The pages as files, which open from disk and from any host of files. Data are script files, because browsers do not
let a page from disk read other files; images are copies.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.web.kit import asset
from mmlongbench.web.viewer import pages
from mmlongbench.web.viewer.pictures import LARGE_SIDE, small_copy
from mmlongbench.web.viewer.review import pages_beside
from mmlongbench.web.viewer.serve import ASSETS
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.viewed import ViewedFile, plain

MAX_BYTES = 2 * 1024**3
"""The most bytes of a site."""
LIMIT = 20
"""How many examples of each file are written by default."""


@dataclass(slots=True)
class _Writer:
    """Writes files within a bound."""

    root: Path
    most: int
    files: int = 0
    size: int = 0
    images: set[tuple[int, str]] = field(default_factory=set)
    """The images that are written, by the number of the file that shows them."""

    def put(self, name: str, data: bytes) -> None:
        if self.size + len(data) > self.most:
            raise ReleaseError(
                f"{self.root}: the site would have more than {self.most:,} bytes; write fewer examples with --limit"
            )
        write_whole(self.root / name, [data])
        self.files, self.size = self.files + 1, self.size + len(data)

    def page(self, name: str, pieces: Iterable[str]) -> None:
        self.put(name, "".join(pieces).encode("utf-8", "backslashreplace"))

    def data(self, name: str, value: object) -> None:
        self.put(f"data/{name}.js", f"(window.viewData ??= {{}})[{plain(name)}] = {plain(value)};\n".encode())

    def image(self, site: Site, file: ViewedFile, path: str) -> None:
        """Write the copies of an image, once for each file that shows it; a broken image has none."""
        if (file.number, path) in self.images:
            return
        self.images.add((file.number, path))
        name = f"{file.number}-{site.index.images(file.number).index(path)}"
        try:
            small, large = small_copy(file.images, path), small_copy(file.images, path, LARGE_SIDE)
        except ReleaseError:
            return
        self.put(f"images/small-{name}.jpg", small)
        self.put(f"images/large-{name}.jpg", large)


def write_site(site: Site, out: Path, progress: Progress, most: int = MAX_BYTES) -> tuple[int, int, int, int]:
    """Write the pages of a release as files; an older site in the folder is replaced.

    Args:
        site: what pages are made of, with a limit.
        out: a new or empty folder, or the folder of an older site.
        progress: shows the bar.
        most: the most bytes of the site.

    Returns:
        The examples with a page, those without one, the files and their bytes.

    Raises:
        ReleaseError: the folder has other files or lies inside the release, or the site would be too large.

    """
    if site.viewed.lock_id and out.resolve().is_relative_to(site.viewed.path.resolve()):
        raise ReleaseError(f"--static {out}: lies inside the release {site.viewed.name}; give a folder outside of it")
    _make_room(out)
    writer = _Writer(out, most)
    for name in ASSETS:
        writer.page(f"assets/{name}", [asset(name)])
    shown = [
        (file, row) for file in site.viewed.files for row in range(site.index.head(file.number).rows)[: site.limit]
    ]
    with progress.bar("static: examples", len(shown)) as advance:
        for file, row in shown:
            _write_example(site, file, row, writer)
            advance()
    for number in range(len(site.viewed.datasets)):
        writer.page(f"dataset-{number}.html", pages.dataset_page(site, number))
    for file in site.viewed.files:
        writer.data(f"rows-{file.number}", pages.rows_data(site, file.number))
    if site.review:
        writer.page("review.html", pages.review_page(site))
        for number, subject in enumerate(site.review.subjects):
            writer.page(f"review-{number + 1}.html", pages.subject_page(site, number))
            for page in pages_beside(site.viewed, site.index, subject)[0]:
                if page.file and page.path:
                    writer.image(site, page.file, page.path)
    if site.answers.score_paths:
        writer.page("report.html", pages.report_page(site))
    writer.page("rejects.html", pages.rejects_page(site))
    writer.page("index.html", pages.release_page(site))
    total = sum(site.index.head(file.number).rows for file in site.viewed.files)
    return len(shown), total - len(shown), writer.files, writer.size


def _write_example(site: Site, file: ViewedFile, row: int, writer: _Writer) -> None:
    writer.page(site.address(file, row), pages.example_page(site, file.number, row))
    try:
        opened = site.open(file, row)
    except MMLongBenchError:
        return  # the page says why it cannot be shown
    name = f"example-{file.number}-{row}"
    writer.data(f"{name}-outline", pages.outline_data(site, file.number, row))
    for number in range(opened.chunks):
        writer.data(f"{name}-rows-{number}", pages.chunk_data(site, file.number, row, number))
    for number in range(len(site.models)):
        writer.data(f"{name}-model-{number}", pages.model_data(site, file.number, row, number))
    for path in opened.example.prompt.images:
        writer.image(site, file, path)


def _make_room(out: Path) -> None:
    """Remove an older site; refuse a folder with anything else."""
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"{out}: is a file, expected a folder for the site")
    there = list(out.iterdir()) if out.is_dir() else []
    folders = ("data", "images", "assets")
    others = [
        path.name for path in there if path.name not in folders and not (path.suffix == ".html" and path.is_file())
    ]
    if there and (others or not (out / "assets" / "view.js").is_file()):
        raise ReleaseError(f"{out}: has other files ({(others or [there[0].name])[0]}); give a new folder")
    for path in there:
        if path.suffix == ".html":
            path.unlink()
        elif not path.is_symlink():
            shutil.rmtree(path)
