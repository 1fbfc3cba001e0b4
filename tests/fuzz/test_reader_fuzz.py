"""For any source, every installed reader returns rows, faults or a named error, also a reader of another package."""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
from mutated import TEXTS, changed_file, fuzzing, refusal_or_none
from PIL import Image

from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_images import PageImages
from mmlongbench.documents.page_store import Pages, keys_of, sizes_of, texts_of
from mmlongbench.documents.pictures import Pictures
from mmlongbench.errors import Fault, Rejected
from mmlongbench.manifest.registry import installed, reader_type, sample_function
from mmlongbench.task.reader import Reader, SampleFunction
from mmlongbench.task.rows import Row, RowFault
from mmlongbench.task.spec import Options

pytestmark = pytest.mark.slow

LIMITS = Limits(bytes=10_000_000, pages=50, side=4_000, pixels=4_000_000)


def drawn_in_another_form(folder: Path) -> dict[str, Path]:
    """Own documents with a spreadsheet of questions, and with documents of page images."""
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
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

    @fuzzing(examples=10)
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
    """The changed document is measured and read."""
    with TemporaryDirectory() as folder:
        reader.extract(sources, Path(folder))
        extracted = {path.name: path for path in Path(folder).iterdir()}
        for document in reader.documents({**sources, **extracted}).values():
            if not isinstance(document, Fault) and (extracted or changed in files_of(document)):
                with refusal_or_none() if extracted else nullcontext():
                    assert all(min(size) > 0 for size in sizes_of(document, 72, LIMITS))
                    assert all(isinstance(text, str) for text in texts_of(document, LIMITS))
                    assert all(isinstance(key, str) for key in keys_of(document, LIMITS))


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
