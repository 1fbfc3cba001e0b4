"""Documents that are named by relative paths, in a process that changes its working folder."""

from pathlib import Path

import pytest
from tiny import draw_pdf

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf_reader import page_sizes


def test_a_relative_path_is_read_from_where_the_process_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, folder in enumerate(("one", "two"), 1):
        (tmp_path / folder).mkdir()
        draw_pdf(tmp_path / folder / "a.pdf", number)
    for folder, pages in (("one", 1), ("two", 2)):
        monkeypatch.chdir(tmp_path / folder)
        assert len(page_sizes(Path("a.pdf"), 72, Limits())) == pages
