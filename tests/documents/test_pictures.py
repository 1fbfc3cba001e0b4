"""Pictures: known by their bytes, sized by their headers, shrunk, encoded anew, joined, and addressed by URL."""

import base64
import io
import itertools
import json
import os
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pytest
from claimed_png import chunk, claimed_png
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps, PngImagePlugin
from PIL.JpegImagePlugin import JpegImageFile
from tiny import command

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.documents.image_urls import ImageUrls, fitting_size
from mmlongbench.documents.joined_pages import MAX_JOINED_SIDE, JoinPages, join, layout
from mmlongbench.documents.limits import MAX_PIXELS
from mmlongbench.documents.pictures import Cap, Pictures
from mmlongbench.documents.pixels import _size_of_plain_jpeg, ending_of, header_size, released_bytes
from mmlongbench.errors import Rejected, ReleaseError
from mmlongbench.task import Draws
from tokenization import TokenizationError, vision_rule


class Cell:
    """A picture that is no file of its own."""

    name = "cell 3"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_bytes(self) -> bytes:
        return self._data


def picture(path: Path, tone: int) -> Path:
    Image.new("RGB", (40, 40), (tone, 0, 0)).save(path)
    return path


def test_a_picture_is_known_by_its_bytes_and_not_by_its_size(tmp_path: Path) -> None:
    one, other = tmp_path / "one.png", tmp_path / "other.png"
    one.write_bytes(b"0123456789")
    other.write_bytes(b"9876543210")
    found = mt.readers.PictureBytes([one])
    assert one in found
    assert Cell(b"0123456789") in found
    assert other not in found
    assert Cell(b"9876543210") not in found
    assert tmp_path / "gone.png" not in found


@pytest.mark.parametrize("size", [{}, {"big_tiff": True}])
@pytest.mark.parametrize("order", ["little", "big"])
def test_a_tiff_is_named_as_one(size: dict[str, bool], order: str) -> None:
    buffer = io.BytesIO()
    mode = "I;16B" if order == "big" else "L"  # with such pixels Pillow writes the other order of bytes
    Image.new(mode, (4, 4)).save(buffer, "TIFF", **size)
    assert ending_of(buffer.getvalue()) == ".tif"


def test_only_pictures_of_a_known_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = picture(tmp_path / "small.png", 1), tmp_path / "large.bmp"
    Image.new("RGB", (90, 90)).save(large)
    found = mt.readers.PictureBytes([small, tmp_path / "gone.png"])
    read: list[str] = []
    whole = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        read.append(path.name)
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert large not in found
    assert read == []
    assert small in found


def test_images_know_the_pictures_of_all_rows_under_any_name(tmp_path: Path) -> None:
    asked, web = picture(tmp_path / "asked.png", 9), picture(tmp_path / "web.png", 8)
    (tmp_path / "copy.png").write_bytes(asked.read_bytes())
    pictures = Pictures("x", lambda name: file if (file := tmp_path / name).is_file() else None, 10**6)
    images = mt.advanced.Images(pictures, asked=iter(["asked.png", "gone.png", "./asked.png"]))
    assert images.is_asked(images["copy.png"])
    assert images.is_asked(images["asked.png"])
    assert not images.is_asked(images[web.name])
    assert not mt.advanced.Images(pictures).is_asked(images["asked.png"])


# Headers


WIDE = (60, 40)


def saved(path: Path, form: str, orientation: int | None) -> Path:
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    Image.effect_noise(WIDE, 30).save(path, form, **({"exif": exif} if orientation is not None else {}))
    return path


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(("orientation", "size"), [(None, WIDE), (1, WIDE), (3, WIDE), (6, (40, 60)), (8, (40, 60))])
def test_a_turned_picture_has_its_sides_turned(
    tmp_path: Path, form: str, orientation: int | None, size: tuple[int, int]
) -> None:
    path = saved(tmp_path / "picture", form, orientation)
    assert header_size(path) == size
    with Image.open(io.BytesIO(released_bytes(path.read_bytes(), size))) as released:
        assert released.size == size


def lying(kind: str) -> bytes:
    """A picture of a disc whose file says in one of several ways that it is turned, or says so wrongly."""
    exif, buffer = Image.Exif(), io.BytesIO()
    drawn = Image.new("RGB", (280, 560), "white")
    ImageDraw.Draw(drawn).ellipse((40, 60, 239, 259), "black")
    more: dict[str, Any] = {}
    if kind == "tiff":
        exif[0x0112] = 6
        drawn.save(buffer, "TIFF", exif=exif)
        return buffer.getvalue()
    info = PngImagePlugin.PngInfo()
    if kind == "xmp":
        info.add_itxt("XML:com.adobe.xmp", '<x:xmpmeta><rdf tiff:Orientation="6"/></x:xmpmeta>')
    elif kind == "raw profile":
        exif[0x0112] = 6
        info.add_text("Raw profile type exif", f"\nexif\n{len(exif.tobytes())}\n{exif.tobytes().hex()}\n")
    else:
        more["exif"] = b"Exif\0\0NOTATIFF"
    drawn.save(buffer, "PNG", pnginfo=info, **more)
    return buffer.getvalue()


UPRIGHT = (280, 560)


@pytest.mark.parametrize(
    ("kind", "size"), [("tiff", (560, 280)), ("xmp", UPRIGHT), ("raw profile", UPRIGHT), ("exif", UPRIGHT)]
)
def test_header_and_pixels_agree_however_a_file_says_that_it_is_turned(
    kind: str, size: tuple[int, int], tmp_path: Path
) -> None:
    (tmp_path / "picture").write_bytes(lying(kind))
    assert header_size(tmp_path / "picture") == size
    released = released_bytes(lying(kind), size)
    with Image.open(io.BytesIO(released)) as picture:
        picture.load()
        assert (picture.size, picture.getexif().get(0x0112, 1), picture.info.get("xmp")) == (size, 1, None)
        disc = ImageOps.invert(picture.convert("L")).getbbox()
        assert disc
        left, top, right, bottom = disc
        assert abs((right - left) - 200) <= 1
        assert abs((bottom - top) - 200) <= 1
    assert released_bytes(released, size) == released  # it depends on nothing any more


@pytest.mark.parametrize("form", ["PNG", "WEBP", "GIF"])
def test_what_is_transparent_is_released_on_white_and_opaque_pictures_keep_their_bytes(form: str) -> None:
    for alpha, level in ((0, 255), (255, 0)):
        buffer = io.BytesIO()
        more = {"lossless": True} if form == "WEBP" else {}
        Image.new("RGBA", (30, 30), (0, 0, 0, alpha)).save(buffer, form, **more)
        released = released_bytes(buffer.getvalue(), (30, 30))
        with Image.open(io.BytesIO(released)) as picture:
            assert picture.format == form
            assert picture.convert("RGB").getpixel((9, 9)) == (level,) * 3
        assert (released == buffer.getvalue()) == (alpha == 255)


def test_a_level_of_grey_that_stands_for_nothing_is_white() -> None:
    buffer = io.BytesIO()
    Image.new("I;16", (30, 30), 30_000).save(buffer, "PNG", transparency=30_000)
    with Image.open(io.BytesIO(released_bytes(buffer.getvalue(), (30, 30)))) as picture:
        assert picture.convert("L").getpixel((9, 9)) == 255


@pytest.mark.parametrize(("brand", "named"), [(b"avif", "AVIF"), (b"heic", "HEIC"), (b"mif1", "HEIC")])
def test_a_picture_of_a_telephone_is_named_whatever_its_ending(brand: bytes, named: str, tmp_path: Path) -> None:
    (tmp_path / "named.jpg").write_bytes(b"\0\0\0\x18ftyp" + brand + bytes(40))
    counted = command("count", tmp_path)
    assert counted.code == 1
    assert named in counted.err + counted.out
    assert "convert it to JPEG or PNG" in counted.err + counted.out


def test_the_exif_of_a_png_may_stand_behind_its_pixels_and_they_are_not_decoded(tmp_path: Path) -> None:
    data = saved(tmp_path / "picture.png", "PNG", 6).read_bytes()
    chunks, at = [], 8
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    behind = [chunk for chunk in chunks if chunk[0] not in (b"eXIf", b"IEND")]
    behind = [(kind, b"no pixels" if kind == b"IDAT" else body) for kind, body in behind]
    order = [*behind, *(chunk for chunk in chunks if chunk[0] == b"eXIf"), (b"IEND", b"")]
    (tmp_path / "behind.png").write_bytes(data[:8] + b"".join(chunk(*each) for each in order))
    assert header_size(tmp_path / "behind.png") == (40, 60)


@pytest.mark.parametrize("warned", ["error", "always"])
def test_headers_of_large_pictures_are_read_without_a_warning(warned: Any, tmp_path: Path) -> None:
    side = int(MAX_PIXELS**0.5)
    (tmp_path / "large.png").write_bytes(claimed_png(side, side))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(warned)
        assert header_size(tmp_path / "large.png") == (side, side)
    assert not seen
    (tmp_path / "larger.png").write_bytes(claimed_png(side + 1, side))
    with pytest.raises(Image.DecompressionBombError):
        header_size(tmp_path / "larger.png")


def test_the_quick_size_of_a_jpeg_is_that_of_pillow_for_whole_cut_and_changed_headers() -> None:
    draws, quick = Draws(("headers",)), 0
    forms: tuple[dict[str, Any], ...] = ({}, {"progressive": True}, {"comment": b"seen"})
    for mode, more in itertools.product(("L", "RGB", "CMYK"), forms):
        buffer = io.BytesIO()
        Image.effect_noise(WIDE, 30).convert(mode).save(buffer, "JPEG", **more)
        data = buffer.getvalue()
        end = data.index(b"\xff\xda") + 20
        changed = [data[:at] for at in range(end)]
        for number in range(300):
            at, value = (
                draws.integer(f"at {number}", 2, end),
                draws.choice(f"byte {number}", (0, 1, 8, 17, 67, 196, 255)),
            )
            changed.append(data[:at] + bytes((value,)) + data[at + 1 :])
        for file in (data, *changed):
            if size := _size_of_plain_jpeg(file[:2048]):
                quick += 1
                with Image.open(io.BytesIO(file)) as picture:
                    assert (picture.size, dict(picture.getexif())) == (size, {})
    assert quick > 500


# Pictures above a longest side


SHRUNK = [("JPEG", "RGB"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P"), ("PNG", "1"), ("PNG", "I;16"), ("PNG", "LA")]


def bounded(folder: Path, longest: int | None = 100) -> Pictures:
    return Pictures("mm-niah", lambda name: folder / name, 10**7, longest)


@pytest.mark.parametrize(("form", "mode"), SHRUNK)
def test_a_large_picture_is_written_at_its_planned_size_in_its_own_format(tmp_path: Path, form: str, mode: str) -> None:
    Image.new(mode, (333, 170)).save(tmp_path / "a.img", form)
    picture = bounded(tmp_path)["a.img"]
    assert (picture.width, picture.height) == (100, 51)
    assert picture.scale == pytest.approx(100 / 333)
    with Image.open(io.BytesIO(picture.released())) as written:
        assert (written.size, written.format) == ((100, 51), form)
    assert picture.released() == picture.released()


def test_a_picture_within_the_bound_keeps_its_bytes(tmp_path: Path) -> None:
    Image.new("RGB", (100, 40)).save(tmp_path / "a.png")
    picture = bounded(tmp_path)["a.png"]
    assert picture.scale == 1
    assert picture.released() == (tmp_path / "a.png").read_bytes()


def test_a_line_of_pixels_keeps_one_pixel_across(tmp_path: Path) -> None:
    Image.new("L", (5000, 1)).save(tmp_path / "a.png")
    picture = bounded(tmp_path)["a.png"]
    assert (picture.width, picture.height) == (100, 1)


def test_the_folders_of_a_name_are_kept(tmp_path: Path) -> None:
    (tmp_path / "train2017").mkdir()
    Image.new("L", (5, 5)).save(tmp_path / "train2017" / "a.png")
    assert bounded(tmp_path)["train2017/a.png"].path == "mm-niah/train2017/a.png"


# Pictures that one encoder writes anew: nothing of their files tells a needle


SIZE = (112, 84)
ENCODED = [("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P"), ("PNG", "I;16"), ("PNG", "LA"), ("GIF", "P")]


def encoded(folder: Path, *, by_content: bool = False) -> Pictures:
    return Pictures("own", lambda name: folder / name, 10**7, by_content=by_content, as_jpeg=True)


@pytest.mark.parametrize(("form", "mode"), ENCODED)
def test_every_picture_becomes_the_same_kind_of_jpeg(tmp_path: Path, form: str, mode: str) -> None:
    Image.new(mode, SIZE).save(tmp_path / "a.img", form)
    Image.new("RGB", SIZE, "red").save(
        tmp_path / "b.jpg", quality=20, dpi=(300, 300), comment=b"gold", progressive=True
    )
    one, other = (encoded(tmp_path)[name] for name in ("a.img", "b.jpg"))
    assert (one.path, one.is_renamed) == ("own/a.jpg", True)
    assert (other.path, other.is_renamed) == ("own/b.jpg", False)
    assert one.released() == one.released()
    shown = [JpegImageFile(io.BytesIO(each.released())) for each in (one, other)]
    assert {(each.format, each.mode, each.size) for each in shown} == {("JPEG", "RGB", SIZE)}
    assert len({str(getattr(each, "quantization", None)) for each in shown}) == 1
    assert shown[0].info == shown[1].info


def test_a_transparent_picture_becomes_white(tmp_path: Path) -> None:
    Image.new("RGBA", SIZE, (0, 0, 0, 0)).save(tmp_path / "a.png")
    with Image.open(io.BytesIO(encoded(tmp_path)["a.png"].released())) as shown:
        assert shown.getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize(("pictures", "size"), [(bounded, (75, 100)), (encoded, SIZE[::-1])])
def test_a_turned_picture_is_written_upright(
    pictures: Callable[[Path], Pictures], size: tuple[int, int], tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", SIZE).save(tmp_path / "a.jpg", exif=exif)
    picture = pictures(tmp_path)["a.jpg"]
    assert (picture.width, picture.height) == size
    with Image.open(io.BytesIO(picture.released())) as shown:
        assert (shown.size, shown.getexif().get(0x0112, 1)) == (size, 1)


def test_names_by_content_end_as_the_format_does(tmp_path: Path) -> None:
    for name in ("gold/a.png", "b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", SIZE).save(tmp_path / name)
    found = encoded(tmp_path, by_content=True)
    assert found["gold/a.png"].path == found["b.png"].path
    assert found["b.png"].path.endswith(".jpg")


def test_an_own_picture_of_the_same_name_in_another_format_is_named(tmp_path: Path) -> None:
    for name in ("a.png", "a.gif"):
        Image.new("RGB", SIZE).save(tmp_path / name)
    found = encoded(tmp_path)
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


def built(folder: Path, **pictures: str) -> Path:
    """A release with these settings of `pictures`."""
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
    return folder / "out"


def test_a_release_has_pictures_of_one_kind_where_the_manifest_says_so(tmp_path: Path) -> None:
    images = list((built(tmp_path, names="content", encode="jpeg") / "mmlb_image").rglob("*.*"))
    assert len(images) > 12
    for path in images:
        assert len(path.stem) >= 16
        int(path.stem, 16)
        with Image.open(path) as picture:
            assert (path.suffix, picture.format, picture.mode, picture.size) == (".jpg", "JPEG", "RGB", SIZE)


@pytest.mark.rare
def test_names_and_formats_tell_the_needles_unless_the_manifest_makes_them_alike(tmp_path: Path) -> None:
    def leaks(**pictures: str) -> set[str]:
        found = mm.find_shortcuts(built(tmp_path / f"{len(pictures)}", **pictures)).leaks
        return {each.kind for each in found if each.kind.startswith("gold from")}

    assert leaks() == {"gold from file names", "gold from image files", "gold from quantisation"}
    assert leaks(names="content", encode="jpeg") == set()


# Joined pages


sides = st.integers(1, 3000)


@given(pages=st.integers(1, 400), images=st.sampled_from([1, 5, 20]))
def test_every_page_is_in_one_image_in_order_and_images_are_equal_but_the_last(pages: int, images: int) -> None:
    groups = JoinPages(images).groups(pages)
    assert [place for group in groups for place in group] == list(range(pages))
    assert len(groups) <= images
    assert len({len(group) for group in groups[:-1]}) <= 1
    assert len(groups[-1]) <= len(groups[0])


@given(sizes=st.lists(st.tuples(sides, sides), min_size=1, max_size=60), most=st.integers(100_000, 20_000_000))
def test_pages_stand_inside_the_image_without_overlap_and_the_image_is_within_its_bounds(
    sizes: list[tuple[int, int]], most: int
) -> None:
    whole, boxes = layout(sizes, most)
    assert whole[0] * whole[1] <= most
    assert max(whole) <= MAX_JOINED_SIDE
    assert all(x + width <= whole[0] and y + height <= whole[1] for x, y, width, height in boxes)
    for at, (x, y, width, height) in enumerate(boxes):
        assert all(left >= x + width or top >= y + height or left + w <= x for left, top, w, _ in boxes[at + 1 :])


def test_pages_are_read_from_left_to_right_and_a_smaller_one_leaves_white() -> None:
    pages = []
    for colour, size in (("red", (40, 60)), ("green", (40, 60)), ("blue", (20, 30))):
        buffer = io.BytesIO()
        Image.new("RGB", size, colour).save(buffer, "PNG")
        pages.append(buffer.getvalue())
    size, data = join(iter(pages), [(40, 60), (40, 60), (20, 30)], 10_000_000, 90)
    assert size == (80, 120)
    with Image.open(io.BytesIO(data)) as shown:
        assert shown.size == size
        at = [shown.getpixel(point) for point in ((20, 30), (60, 30), (10, 75), (60, 90))]
    expected = [(254, 0, 0), (0, 128, 0), (0, 0, 254), (255, 255, 255)]
    assert at == [pytest.approx(colour, abs=4) for colour in expected]
    assert join(iter(pages), [(40, 60), (40, 60), (20, 30)], 10_000_000, 90)[1] == data


# Addresses


NAME = "a b/50% é#1?.jpg"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with a JPEG whose name needs escapes, a PNG called .jpg, and files that are no images."""
    root = tmp_path / "mmlb_image"
    (root / "a b").mkdir(parents=True)
    Image.new("RGB", (30, 20), "red").save(root / NAME, "JPEG")
    Image.new("RGB", (8, 4), "blue").save(root / "png.jpg", "PNG")
    (root / "text.jpg").write_text("no image")
    (root / "empty.jpg").touch()
    (tmp_path / "secret.jpg").write_bytes((root / "png.jpg").read_bytes())
    (root / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    os.mkfifo(root / "pipe.jpg")
    return root


def test_a_path_is_absolute_and_a_url_is_escaped(images: Path) -> None:
    assert ImageUrls(images)(NAME) == str(images / NAME)
    url = ImageUrls(images, "file-url")(NAME)
    assert "#" not in url
    assert unquote(urlsplit(url).path) == str(images / NAME)
    assert ImageUrls(images, "http://host:80/x/")(NAME) == "http://host:80/x/a%20b/50%25%20%C3%A9%231%3F.jpg"


def test_a_data_uri_holds_the_bytes_of_the_file_and_the_type_of_its_content(images: Path) -> None:
    for name, kind in ((NAME, "image/jpeg"), ("png.jpg", "image/png")):
        head, data = ImageUrls(images, "data-uri")(name).split(",", 1)
        assert head == f"data:{kind};base64"
        assert base64.b64decode(data) == (images / name).read_bytes()


def test_only_an_image_over_the_bound_is_made_smaller_and_that_is_said(images: Path) -> None:
    urls = ImageUrls(images, "data-uri", max_pixels=150)
    small = base64.b64decode(urls(NAME).split(",", 1)[1])
    assert Image.open(io.BytesIO(small)).size == (15, 10)
    assert base64.b64decode(urls("png.jpg").split(",", 1)[1]) == (images / "png.jpg").read_bytes()
    assert urls.shrunk == {NAME: ((30, 20), (15, 10))}


@pytest.mark.parametrize("most", [1, 2, 7, 1_000, 1_000_000])
@pytest.mark.parametrize("size", [(1, 1), (5_000, 1), (1, 5_000), (1_224, 1_584), (30_000, 30_000)])
def test_a_fitting_size_is_within_the_bound(size: tuple[int, int], most: int) -> None:
    width, height = fitting_size(size, most)
    assert min(width, height) >= 1
    assert width * height <= most or size[0] * size[1] <= most


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone.jpg", "image 'gone.jpg': is missing"),
        ("../secret.jpg", "leaves the folder"),
        ("/etc/hostname", "leaves the folder"),
        ("out.jpg", "leaves the folder"),
        ("a b", "image 'a b': is missing"),
        ("pipe.jpg", "image 'pipe.jpg': is missing"),
    ],
)
@pytest.mark.parametrize("form", ["path", "file-url", "data-uri", "http://host"])
def test_a_path_without_a_file_in_the_folder_is_refused_in_every_form(
    images: Path, form: str, path: str, said: str
) -> None:
    with pytest.raises(ReleaseError, match=said):
        ImageUrls(images, form)(path)


@pytest.mark.parametrize("path", ["text.jpg", "empty.jpg"])
def test_bytes_that_are_no_image_are_not_sent(images: Path, path: str) -> None:
    with pytest.raises(ReleaseError, match=f"image '{path}': cannot be read"):
        ImageUrls(images, "data-uri")(path)


@pytest.mark.parametrize(
    ("form", "most", "said"),
    [
        ("files", None, "images 'files': expected path, file-url, data-uri, or a URL"),
        ("", None, "images ''"),
        ("http://", None, "images 'http://'"),
        ("http://[abc", None, "expected path, file-url"),
        ("http://user:secret@host/x", None, "images '…@host/x': has a user or a password"),
        ("http//u:secret@x", None, "images '…@x': expected path"),
        ("file-url", 100, "use data-uri"),
        ("data-uri", 0, "max_pixels 0"),
        ("data-uri", True, "max_pixels True"),
    ],
)
def test_forms_that_cannot_be_made_are_refused(tmp_path: Path, form: str, most: int | None, said: str) -> None:
    with pytest.raises(ReleaseError, match=said):
        ImageUrls(tmp_path, form, most)


@pytest.mark.parametrize("above", ["reject", "shrink"])
def test_a_picture_whose_tokens_are_capped_is_rejected_if_the_counted_model_refuses_it(
    above: Literal["reject", "shrink"], tmp_path: Path
) -> None:
    pictures = Pictures("x", lambda name: tmp_path / name, 10**8, cap=Cap(50, above, vision_rule("qwen2.5-vl").tokens))
    Image.new("L", (10, 2300)).save(tmp_path / "long.png")
    with pytest.raises(Rejected) as refused:
        pictures["long.png"]
    assert (refused.value.fault.reason, refused.value.fault.file) == ("refused-image", "long.png")
    assert "'qwen2.5-vl' refuses it" in refused.value.fault.found


def test_a_picture_is_shrunk_though_the_counted_model_refuses_what_is_smaller(tmp_path: Path) -> None:
    def tokens(width: int, height: int) -> int:
        if min(width, height) < 90:
            raise TokenizationError("too small")
        return width * height // 100

    Image.new("L", (400, 400)).save(tmp_path / "square.png")
    for most, side in ((100, 100), (50, 0)):
        pictures = Pictures("x", lambda name: tmp_path / name, 10**8, cap=Cap(most, "shrink", tokens))
        if side:
            assert (pictures["square.png"].width, pictures["square.png"].height) == (side, side)
        else:
            with pytest.raises(Rejected, match="refused-image"):
                pictures["square.png"]
