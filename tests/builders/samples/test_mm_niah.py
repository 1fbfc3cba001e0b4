import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

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


def test_nothing_but_its_sign_tells_the_picture_that_a_question_is_about(tmp_path: Path) -> None:
    sources = draw_hidden_pictures(tmp_path)
    rows = [json.loads(line) for line in sources["questions"].read_text("utf-8").splitlines()]
    asked = {name for row in rows for name in row["needles"]}
    offered = {name for row in rows for name in row["choices"]}
    files = {path.relative_to(sources["documents"]).as_posix(): path for path in sources["documents"].rglob("*.jpg")}
    others = files.keys() - asked - offered
    assert asked <= files.keys()
    assert len(others) > len(asked)
    assert facts(files, asked) == facts(files, others)
    assert {len(name) for name in asked} == {len(name) for name in others}
    assert min(others) < min(asked) < max(asked) < max(others)


def facts(files: dict[str, Path], names: set[str]) -> set[tuple[object, ...]]:
    found = set[tuple[object, ...]]()
    for name in names:
        with Image.open(files[name]) as picture:
            tables = getattr(picture, "quantization", {})
            found.add((picture.format, picture.mode, picture.size, str(tables), tuple(sorted(picture.info))))
    return found
