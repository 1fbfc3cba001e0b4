"""Images whose ending or last bytes do not fit their format are released unchanged, with a remark."""

import io
import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from tiny import command, records

from mmlongbench.documents.pixels import oddities, released_bytes

ENDING = "whose ending names another format"
END = "with bytes after its end, or without its end"
FORMATS = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "WEBP": ".webp", "BMP": ".bmp", "TIFF": ".tif"}


def drawn(form: str, size: tuple[int, int] = (9, 7)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, form)
    return buffer.getvalue()


@pytest.mark.parametrize("form", FORMATS)
def test_a_picture_as_it_should_be_is_not_odd(form: str, tmp_path: Path) -> None:
    for ending in (FORMATS[form], FORMATS[form].upper(), ""):
        (tmp_path / f"a{ending}").write_bytes(drawn(form))
        assert oddities(tmp_path / f"a{ending}") == ()


@pytest.mark.parametrize("name", ["a.jpeg", "a.JPE", "a.jfif"])
def test_all_endings_of_jpeg_are_its_own(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(drawn("JPEG"))
    assert oddities(tmp_path / name) == ()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP"])
def test_bytes_after_the_end_and_a_wrong_ending_are_odd(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    path.write_bytes(drawn(form))
    assert oddities(path) == (ENDING,)
    path.write_bytes(drawn(form) + b"more of it")
    assert oddities(path) == (ENDING, END)
    path = path.rename(path.with_suffix(FORMATS[form]))
    assert oddities(path) == (END,)
    path.write_bytes(drawn(form)[:-9])
    assert oddities(path) == (END,)


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_a_photograph_is_released_with_what_stands_after_its_end(form: str) -> None:
    data = drawn(form) + b"more of it"
    assert released_bytes(data, (9, 7)) == data


def test_the_audit_remarks_upon_odd_images_and_calls_them_no_problem(finished: Path, tmp_path: Path) -> None:
    data = tmp_path / "mmlb_data"
    shutil.copytree(finished / "mmlb_data", data)
    shutil.copytree(finished / "mmlb_image", tmp_path / "mmlb_image")
    file, lines = data / "documentQA" / "mmlongdoc_K1.jsonl", records(finished, "1K")
    assert "odd images" not in command("audit", file).out
    one, other = (tmp_path / "mmlb_image" / lines[0]["page_list"][at] for at in (0, 1))
    with Image.open(one) as picture:
        one.write_bytes(drawn("PNG", picture.size))
    other.write_bytes(other.read_bytes() + b"more of it")
    audited = command("audit", file)
    shown = {
        each: sum(str(each.relative_to(tmp_path / "mmlb_image")) in line["page_list"] for line in lines)
        for each in (one, other)
    }
    assert (audited.code, audited.err) == (0, "")
    assert (
        f"examples of odd images: {sum(shown.values())}, {shown[one]} with an image {ENDING} (first line "
        in audited.out
    )
    assert f"; {shown[other]} with an image {END} (first line " in audited.out
    (found,) = map(json.loads, command("audit", file, "--json").out.splitlines())
    assert [fault["count"] for fault in found["remarks"][0]["faults"]] == [*shown.values()]
