"""Pictures that are written anew by one encoder and named by their content: nothing of their files tells a needle."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from PIL.JpegImagePlugin import JpegImageFile

import mmlongbench as mm
from mmlongbench.documents.pictures import Pictures
from mmlongbench.io.progress import Progress
from mmlongbench.release.opened import open_release
from mmlongbench.shortcuts.audit import audit_shortcuts
from mmlongbench.task import Draws

pytestmark = pytest.mark.slow

SIZE = (112, 84)
FORMS = [("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P"), ("PNG", "I;16"), ("PNG", "LA"), ("GIF", "P")]


def pictures(folder: Path, *, by_content: bool = False) -> Pictures:
    return Pictures("own", lambda name: folder / name, 10**7, by_content=by_content, as_jpeg=True)


@pytest.mark.parametrize(("form", "mode"), FORMS)
def test_every_picture_becomes_the_same_kind_of_jpeg(tmp_path: Path, form: str, mode: str) -> None:
    Image.new(mode, SIZE).save(tmp_path / "a.img", form)
    Image.new("RGB", SIZE, "red").save(
        tmp_path / "b.jpg", quality=20, dpi=(300, 300), comment=b"gold", progressive=True
    )
    one, other = (pictures(tmp_path)[name] for name in ("a.img", "b.jpg"))
    assert (one.path, one.is_renamed) == ("own/a.jpg", True)
    assert (other.path, other.is_renamed) == ("own/b.jpg", False)
    assert one.released() == one.released()
    shown = [JpegImageFile(io.BytesIO(each.released())) for each in (one, other)]
    assert {(each.format, each.mode, each.size) for each in shown} == {("JPEG", "RGB", SIZE)}
    assert len({str(getattr(each, "quantization", None)) for each in shown}) == 1
    assert shown[0].info == shown[1].info


def test_a_transparent_picture_becomes_white(tmp_path: Path) -> None:
    Image.new("RGBA", SIZE, (0, 0, 0, 0)).save(tmp_path / "a.png")
    with Image.open(io.BytesIO(pictures(tmp_path)["a.png"].released())) as shown:
        assert shown.getpixel((5, 5)) == (255, 255, 255)


def test_a_turned_picture_is_written_upright_without_its_orientation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", SIZE).save(tmp_path / "a.jpg", exif=exif)
    with Image.open(io.BytesIO(pictures(tmp_path)["a.jpg"].released())) as shown:
        assert shown.size == SIZE[::-1]
        assert not shown.getexif()


def test_names_by_content_end_as_the_format_does(tmp_path: Path) -> None:
    for name in ("gold/a.png", "b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", SIZE).save(tmp_path / name)
    found = pictures(tmp_path, by_content=True)
    assert found["gold/a.png"].path == found["b.png"].path
    assert found["b.png"].path.endswith(".jpg")


def test_an_own_picture_of_the_same_name_in_another_format_is_named(tmp_path: Path) -> None:
    for name in ("a.png", "a.gif"):
        Image.new("RGB", SIZE).save(tmp_path / name)
    found = pictures(tmp_path)
    assert found["a.png"].path == "own/a.jpg"
    with pytest.raises(mm.MMLongBenchError, match=r"own/a\.jpg already"):
        found["a.gif"]


def telling_sources(folder: Path) -> dict[str, str]:
    """Twelve questions about photographs that are PNG files in a folder of their own; the others are JPEG files."""
    lines = []
    for number in range(12):
        draw(folder / "needles" / f"gold{number}.png", "PNG", number)
        answer = ("Yes", "No")[number % 2]
        lines.append(
            {"question": f"Is picture {number} red?", "answer": answer, "needles": [f"needles/gold{number}.png"]}
        )
    for number in range(60):
        draw(folder / f"{number:04}.jpg", "JPEG", 100 + number)
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return {"questions": str(folder / "questions.jsonl"), "images": str(folder)}


def draw(path: Path, form: str, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draws = Draws(("one encoder", number))
    picture = Image.new("RGB", SIZE, tuple(draws.integer(f"ground {channel}", 0, 255) for channel in range(3)))
    box = [draws.integer(side, low, low + 40) for side, low in (("left", 0), ("top", 0), ("right", 42), ("bottom", 42))]
    ImageDraw.Draw(picture).ellipse(box, tuple(draws.integer(f"ink {channel}", 0, 255) for channel in range(3)))
    picture.save(path, form)


def leaks(folder: Path, **pictures: str) -> set[str]:
    """What tells the needles of a release with these settings of `pictures`."""
    spec = {
        "name": "vh",
        "builder": "visual_haystack",
        "reader": "photographs",
        "source": telling_sources(folder / "source"),
        "lengths": ["1K"],
        "pictures": pictures,
    }
    mm.build(mm.Manifest.model_validate({"datasets": [spec]}), folder / "out")
    assert not any(each.problems for each in mm.audit(folder / "out"))
    audit = audit_shortcuts(open_release(folder / "out"), Progress(False))
    return {each.kind for each in audit.leaks if each.kind.startswith("gold from")}


def test_names_and_formats_tell_the_needles_unless_the_manifest_makes_them_alike(tmp_path: Path) -> None:
    told = {"gold from file names", "gold from image files", "gold from quantisation"}
    assert leaks(tmp_path / "as they are") == told
    assert leaks(tmp_path / "alike", names="content", encode="jpeg") == set()
