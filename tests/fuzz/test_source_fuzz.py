"""Changed sources, pictures, PDFs and passages are read, or refused by name, by every installed reader too."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from inspect import unwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import needs
import pymupdf
import pytest
from class_sets import draw_cars, draw_food101, draw_sun397
from hub_forms import (
    json_lines_of,
    loaded_case,
    slide_rows,
    write_haystacks,
    write_slides,
    write_structure,
    write_table,
)
from hypothesis import given
from hypothesis import strategies as st
from mutated import TEXTS, changed_bytes, changed_file, fuzzing, refusal_or_none
from PIL import Image

from mmlongbench.building.stages.rows import read_rows
from mmlongbench.corpus.articles import Article, fit
from mmlongbench.corpus.cutting import cut
from mmlongbench.corpus.sources import find_source
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pages import PageImages, Pages, read_pages_of, sizes_of, texts_of
from mmlongbench.documents.pdf import page_sizes, read_pages, render_pages
from mmlongbench.documents.pictures import Pictures
from mmlongbench.documents.pixels import opened
from mmlongbench.errors import Fault, Rejected
from mmlongbench.io.json_lines import json_line_at, json_lines, load_json
from mmlongbench.manifest.plugins import installed, reader_type, sample_function
from mmlongbench.task.reader import Reader, SampleFunction
from mmlongbench.task.rows import Row, RowFault
from mmlongbench.task.spec import Options

pytestmark = pytest.mark.rare

FILE_LIMITS = Limits(bytes=1_000_000, pages=9, side=2_000, pixels=1_000_000)
LIMITS = Limits(bytes=10_000_000, pages=50, side=4_000, pixels=4_000_000)


def drawn_in_another_form(folder: Path) -> dict[str, Path]:
    """Own documents with a spreadsheet of questions, and with documents of page images."""
    needs.library("openpyxl", "xlsx")
    openpyxl = pytest.importorskip("openpyxl")
    sources, book = sample_function("own_documents")(folder), openpyxl.Workbook()
    book.active.append(["Doc", "Question", "Answer", "Pages", "accepted", "sources", "region"])
    for at, name in enumerate(("tide", "scan", "tide")):
        book.active.append([name, "How many?", 12.0 + at, 1, "twelve; 12", "Text; Table", "north"])
        path = sources["documents"] / ("tide/1.jpg", "scan_1.png", "tide/2.jpg")[at]
        path.parent.mkdir(exist_ok=True)
        Image.effect_noise((64, 80), 30).save(path)
    for path in sorted(sources["documents"].glob("*.pdf"))[1:]:
        path.unlink()
    sources["questions"].unlink()
    book.save(folder / "questions.xlsx")
    return {**sources, "questions": folder / "questions.xlsx"}


def drawn_slides(folder: Path) -> dict[str, Path]:
    """SlideVQA's questions with their slides in a table."""
    rows = slide_rows(sample_function("slidevqa")(folder / "drawn"))[:4]
    return {"questions": write_slides(rows, folder / "data/test-00000-of-00001.parquet").parent}


def drawn_haystacks(folder: Path) -> dict[str, Path]:
    """Visual Haystacks' files of two and three needles."""
    drawn = sample_function("photographs")(folder)
    return {**drawn, "questions": write_haystacks(drawn["questions"], folder / "multi_needle")}


def drawn_structure(folder: Path) -> dict[str, Path]:
    """GovReport's sections in tables."""
    drawn = sample_function("govreport")(folder)
    return {**drawn, "reports": write_structure(drawn["reports"], folder / "hub")}


def drawn_cases(folder: Path) -> dict[str, Path]:
    """Multi-LexSum's cases in a table."""
    drawn = sample_function("multi_lexsum")(folder)
    cases = [loaded_case(row) for row in json_lines_of(drawn["cases"])]
    return {**drawn, "cases": write_table(cases, folder / "test.parquet")}


OTHER_FORMS: dict[str, Callable[[Path], dict[str, Path]]] = {
    "own_documents in another form": drawn_in_another_form,
    "slidevqa in the form of the hub": drawn_slides,
    "visual_haystacks in the form of a folder": drawn_haystacks,
    "govreport in the form of the hub": drawn_structure,
    "multi_lexsum in the form of the hub": drawn_cases,
    "image_tables in the form of Food-101": lambda folder: {"data": draw_food101(folder / "data")},
    "image_tables in the form of SUN397": lambda folder: {"data": draw_sun397(folder / "data", "Partitions")},
    "image_tables in the form of Stanford Cars": lambda folder: {"data": draw_cars(folder / "data")},
}
READERS = [*(plugin.name for plugin in installed("reader") if not plugin.problem), *OTHER_FORMS]


@pytest.fixture(scope="module")
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Sample":
    """The sample of a reader; each example moves it, so that nothing is cached by its path."""
    name = request.param
    folder = tmp_path_factory.mktemp("fuzz") / "0"
    folder.mkdir()
    draw: SampleFunction = OTHER_FORMS[name] if name in OTHER_FORMS else sample_function(name)
    drawn = draw(folder)
    return Sample(folder, {key: path.relative_to(folder) for key, path in drawn.items() if key != "corpus"})


def reader_of(request: pytest.FixtureRequest) -> Reader[Row]:
    return reader_type(request.node.callspec.id.partition(" in ")[0])()


class Sample:
    """A drawn source whose files are changed and put right again."""

    def __init__(self, folder: Path, sources: dict[str, Path]) -> None:
        self.folder = folder
        self._sources = sources
        paths = [folder / path for path in sources.values()]
        below = sorted(path for path in folder.rglob("*") if any(path.is_relative_to(root) for root in paths))
        files = [path.relative_to(folder) for path in below if path.is_file()]
        kinds = dict.fromkeys(path.suffix for path in files)
        self.files = [[path for path in files if path.suffix == kind] for kind in kinds]
        """By ending."""

    @property
    def sources(self) -> dict[str, Path]:
        return {name: self.folder / path for name, path in self._sources.items()}

    def move(self) -> None:
        self.folder = self.folder.rename(self.folder.with_name(str(int(self.folder.name) + 1)))


@pytest.mark.parametrize("sample", READERS, indirect=True, ids=READERS)
def test_any_bytes_become_rows_faults_or_a_named_error(sample: Sample, request: pytest.FixtureRequest) -> None:
    reader = reader_of(request)

    @fuzzing(examples=6)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        sample.move()
        kind = data.draw(st.sampled_from(sample.files))
        changed = sample.folder / data.draw(st.sampled_from(kind[:5]))
        whole = changed.read_bytes()
        changed.write_bytes(changed_file(data.draw, changed))
        try:
            for step in (rows, documents, pages, classes, pools, notes):
                with refusal_or_none():
                    step(reader, sample.sources, changed)
        finally:
            changed.write_bytes(whole)

    run()


@pytest.mark.parametrize("sample", READERS, indirect=True, ids=READERS)
def test_a_sample_that_is_not_changed_has_rows_and_is_refused_nowhere(
    sample: Sample, request: pytest.FixtureRequest
) -> None:
    reader = reader_of(request)
    sample.move()
    assert any(isinstance(found, Row) for found in read_rows(reader, sample.sources))
    for step in (rows, documents, pages, classes, pools):
        step(reader, sample.sources, sample.folder / sample.files[0][0])


@pytest.mark.parametrize("sample", READERS, indirect=True, ids=READERS)
def test_a_lone_surrogate_in_any_text_never_gets_into_a_row(sample: Sample, request: pytest.FixtureRequest) -> None:
    reader = reader_of(request)
    for kind in sample.files:
        if kind[0].suffix in (".json", ".jsonl"):
            for changed in with_surrogates((sample.folder / kind[0]).read_bytes()):
                sample.move()
                path = sample.folder / kind[0]
                before = path.read_bytes()
                path.write_bytes(changed)
                for step in (rows, pages, classes, pools):
                    with refusal_or_none():
                        step(reader, sample.sources, path)
                path.write_bytes(before)


def with_surrogates(data: bytes) -> Iterator[bytes]:
    """JSON, or the first of its lines, with a lone surrogate in place of each different text in turn."""
    try:
        json.loads(data)
    except ValueError:
        data = data.splitlines()[0]
    whole = json.dumps(json.loads(data))
    texts = dict.fromkeys(json.dumps(text) for text in texts_of_value(json.loads(data)) if text)
    for text in list(texts)[:8]:
        yield whole.replace(text, r'"a\ud800"').encode()


def rows(reader: Reader[Row], sources: dict[str, Path], changed: Path) -> None:
    """Every row can be written as it is, and the pictures it names lie among the sources."""
    names = list(TEXTS[:10])
    for found in read_rows(reader, sources):
        assert isinstance(found, Row | RowFault)
        fields = found.model_dump(mode="json") if isinstance(found, Row) else found.fault.fields()
        json.dumps(fields, ensure_ascii=isinstance(found, RowFault)).encode()
        assert len(str(found.fault)) < 2_000 if isinstance(found, RowFault) else True
        names += texts_of_value(fields) if len(names) < 40 else ()
    if type(reader).image is not Reader.image:
        pictures = Pictures("x", lambda name: reader.image(sources, name), LIMITS.pixels, longest=64)
        for name in names:
            look_at(pictures, name, sources)


def texts_of_value(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_of_value(inner)


def look_at(pictures: Pictures, name: str, sources: dict[str, Path]) -> None:
    try:
        picture = pictures[name]
        picture.released()
    except Rejected:
        return
    if isinstance(picture.source, Path):
        assert any(picture.source.resolve().is_relative_to(root.resolve().parent) for root in sources.values())


def documents(reader: Reader[Row], sources: dict[str, Path], changed: Path) -> None:
    """The changed document is measured and read; of those that a reader extracts, the first ones."""
    with TemporaryDirectory() as folder:
        reader.extract(sources, Path(folder))
        extracted = {path.name: path for path in Path(folder).iterdir()}
        for at, document in enumerate(reader.documents({**sources, **extracted}).values()):
            if not isinstance(document, Fault) and ((extracted and at < 2) or changed in files_of(document)):
                with refusal_or_none() if extracted else nullcontext():
                    assert all(min(size) > 0 for size in sizes_of(document, 72, LIMITS))
                    assert all(isinstance(text, str) for text in texts_of(document, LIMITS))
                    assert all(isinstance(page.key, str) for page in read_pages_of(document, LIMITS))


def files_of(document: Pages) -> tuple[Path, ...]:
    return document.files if isinstance(document, PageImages) else (document,)


def pages(reader: Reader[Row], sources: dict[str, Path], changed: Path) -> None:
    """Web pages are texts and pictures."""
    found = reader.web_pages(sources)
    for id in list(found)[:5]:
        "".join(part if isinstance(part, str) else part.path for part in found[id]).encode()


def classes(reader: Reader[Row], sources: dict[str, Path], changed: Path) -> None:
    """The names of classes can be written."""
    if found := reader.image_classes(sources):
        for kind in found.classes.values():
            f"{kind.name}{kind.domain}".encode()


def notes(reader: Reader[Row], sources: dict[str, Path], changed: Path) -> None:
    """Notes are short and can be written."""
    assert all(len(note.encode()) < 2_000 for note in reader.notes(sources, Options()))


def pools(reader: Reader[Row], sources: dict[str, Path], changed: Path) -> None:
    """Pools of pictures have names that can be written."""
    "".join(reader.shows(sources)).encode()


# Pictures, PDFs and passages by themselves


def drawn_pictures() -> dict[str, bytes]:
    """Small pictures of every format that is opened."""
    exif = Image.Exif()
    exif[0x0112] = 6
    drawn = Image.linear_gradient("L").resize((12, 10)).convert("RGB")
    found = {}
    for form in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"):
        file = io.BytesIO()
        drawn.save(file, form, **({} if form in ("GIF", "BMP") else {"exif": exif}))
        found[form] = file.getvalue()
    return found


PICTURES = drawn_pictures()


@pytest.mark.parametrize("form", PICTURES)
def test_a_changed_picture_is_read_or_refused(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x"

    @fuzzing(examples=25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        path.write_bytes(changed_bytes(data.draw, PICTURES[form]))
        with refusal_or_none("x"):
            picture = Pictures("x", lambda _: path, FILE_LIMITS.pixels, longest=50)["x"]
            assert len(picture.likeness()) == 768
            with opened(io.BytesIO(picture.released())) as released:
                assert released.size == (picture.width, picture.height)

    run()


@pytest.mark.parametrize("form", PICTURES)
def test_a_picture_that_is_not_changed_is_read(form: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(PICTURES[form])
    assert len(Pictures("x", lambda _: tmp_path / "x", FILE_LIMITS.pixels, longest=50)["x"].likeness()) == 768


def drawn_pdf() -> bytes:
    document = pymupdf.open()
    for number in range(3):
        document.new_page(width=100, height=80).insert_text((9, 30), f"This is page {number}.")
    data: bytes = document.tobytes(no_new_id=True)
    return data


def test_a_changed_pdf_is_read_or_refused(tmp_path: Path) -> None:
    whole, path = drawn_pdf(), tmp_path / "x.pdf"

    @fuzzing(examples=25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        path.write_bytes(changed_bytes(data.draw, whole))
        with refusal_or_none("x"):
            sizes = list(page_sizes(path, 72, FILE_LIMITS))
            assert len([*read_pages(path, FILE_LIMITS)]) == len(sizes)
            assert [size for _, size, _ in unwrap(render_pages)(path, range(len(sizes)), 72, 50, FILE_LIMITS)] == sizes

    run()


def test_a_pdf_that_is_not_changed_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(drawn_pdf())
    assert list(page_sizes(tmp_path / "x.pdf", 72, FILE_LIMITS)) == [(100, 80)] * 3
    assert [page.text.strip() for page in read_pages(tmp_path / "x.pdf", FILE_LIMITS)] == [
        f"This is page {n}." for n in range(3)
    ]


ARTICLES: list[dict[str, Any]] = [
    {"id": "1", "title": "Ash", "text": "An ash is a tree.\n\nIt is hard."},
    {"_id": "2", "wikipedia_title": "Oak", "text": ["Oak", "An oak is a tree.", "Section::::Wood.", "It is hard."]},
    {"wikipedia_id": "3", "title": "Elm", "contents": "Elm\nAn elm is a tree."},
]


def passages(format: str) -> tuple[str, bytes]:
    """(name, content) of a source of passages."""
    if format == "tsv":
        return "x.tsv", b'id\ttext\ttitle\n1\t"An ash ""is"" a tree."\tAsh\n2\tOak.\tOak\n'
    return "x.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in ARTICLES)


@pytest.mark.parametrize(("format", "number"), [("jsonl", 3), ("kilt", 3), ("tsv", 2)])
def test_passages_that_are_not_changed_are_articles(format: str, number: int, tmp_path: Path) -> None:
    name, whole = passages(format)
    (tmp_path / name).write_bytes(whole)
    found = list(fit(find_source(str(tmp_path / name), format).articles()))
    assert sum(isinstance(each, Article) for each in found) > 0
    assert len(found) == number


@pytest.mark.parametrize("format", ["jsonl", "kilt", "tsv"])
def test_changed_passages_are_articles_or_faults(format: str, tmp_path: Path) -> None:
    name, whole = passages(format)
    path = tmp_path / name

    @fuzzing(examples=25)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        path.write_bytes(whole)
        path.write_bytes(changed_file(data.draw, path))
        with refusal_or_none("x"):
            for found in fit(find_source(str(path), format).articles()):
                assert isinstance(found, Article | Fault)
                text = [str(found)] if isinstance(found, Fault) else [piece.text for piece in cut(found)]
                assert text

    run()


@fuzzing(examples=60)
@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"{", b"}", b'"a"', b":", b"1", b"\n", b"[", b"]"])).map(b"".join)
)
def test_any_bytes_are_lines_of_objects_or_faults(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "x.jsonl"
    path.write_bytes(data)
    for line in json_lines(path):
        assert json_line_at(path, line.offset) == line.value or line.value != line.value
        assert isinstance(line.value, dict | Fault)
    with refusal_or_none("x.jsonl"):
        load_json(path, "JSON")
