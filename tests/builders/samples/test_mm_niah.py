from pathlib import Path
from typing import Any

import pytest

from builders.samples.mm_niah.sources import draw_hidden_pictures, draw_hidden_sentences
from builders.samples.mm_niah.upstream import draw_upstream


@pytest.mark.parametrize("draw", [draw_hidden_sentences, draw_hidden_pictures])
def test_the_sample_is_the_same_bytes_twice(tmp_path: Path, draw: Any) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        draw(tmp_path / name)
    files = [sorted(p.relative_to(tmp_path / n) for p in (tmp_path / n).rglob("*") if p.is_file()) for n in ("a", "b")]
    assert files[0] == files[1]
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files[0])


def test_the_same_files_are_drawn_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        draw_upstream(tmp_path / name, rows=3, pictures=3, pages=1)
    files = [sorted(p.relative_to(tmp_path / n) for p in (tmp_path / n).rglob("*") if p.is_file()) for n in ("a", "b")]
    assert files[0] == files[1]
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files[0])
