"""Classified pictures as their authors or the hub publish them: Parquet files, or the original folders of Food-101,
SUN397 or Stanford Cars.

The form is recognized by the files that are there. A class has the same number in all forms of a dataset.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from builders.many_shot import food101, parquet, stanford_cars, sun397
from builders.many_shot.splits import ClassifiedImage, Split, Splits, no_label
from mmlongbench.task import (
    Fault,
    ImageClass,
    ImageClasses,
    Options,
    PictureFile,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    raw_row,
)


class _Original(NamedTuple):
    """The form in which the authors of a dataset publish it."""

    what: str
    find: Callable[[Path], Path | None]
    """Returns the folder of the form, or None if a source has another form."""
    read: Callable[[Path], Splits]


_ORIGINALS = (
    _Original(food101.FORM, food101.find, food101.read),
    _Original(sun397.FORM, sun397.find, sun397.read),
    _Original(stanford_cars.FORM, stanford_cars.find, stanford_cars.read),
)


class ImageTables(Reader[ClassifiedImage]):
    """Reads sets of classified pictures: Parquet files of the hub, or the folders of Food-101, SUN397 and Stanford
    Cars.
    """

    row_type: ClassVar[type[Row]] = ClassifiedImage
    sources: ClassVar[tuple[str, ...]] = ("data",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "data": (
            "A folder of Parquet files, or a dataset of the hub (`hub:owner/name@revision`), where files have the "
            "columns image and label, and their names contain `train`, or `test` or `validation`; or a folder with "
            f"{'; or with '.join(each.what for each in _ORIGINALS)}."
        ),
    }
    image_folder: ClassVar[str] = "image-tables"
    # the other splits of a dataset are not fetched: the seven corrupted ones of Stanford Cars have 4 GB
    hub_files: ClassVar[tuple[str, ...]] = ("*train*.parquet", "*test*.parquet", "*val*.parquet")
    names_images_by_content: ClassVar[bool] = True
    fixed_fields: ClassVar[tuple[str, ...]] = ("image", "label")

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each picture of the test split with the id `<split>-<row>`; then, as faults, the exemplars that cannot
        be used.
        """
        shown, asked = _shown_and_asked(sources)
        for number, entry in enumerate(asked.entries):
            fields = {"image": f"tests/{number}", "label": entry.label}
            yield raw_row(f"{asked.name}-{number}", asked.fault(entry) or fields, entry.file, entry.place)
        for number, entry in enumerate(shown.entries):
            if fault := shown.fault(entry):
                yield raw_row(f"{shown.name}-{number}", fault, entry.file, entry.place)

    def row(self, raw: RawRow, sources: SourcePaths) -> ClassifiedImage | Fault:
        """Return one test picture with its class."""
        _, asked = _shown_and_asked(sources)
        kind = asked.kind(raw.fields["label"])
        if kind is None:
            return no_label(str(raw.fields["label"]), 0, len(asked.names))
        return ClassifiedImage(id=raw.id, image=raw.fields["image"], kind=kind)

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which partition of SUN397 is used, and how many Parquet files of a split are missing."""
        return _splits(sources["data"]).notes

    def image(self, sources: SourcePaths, name: str) -> PictureFile | None:
        """Return a picture by `exemplars/<row>` or `tests/<row>`."""
        found = re.fullmatch(r"(exemplars|tests)/(\d{1,12})", name)
        split = _shown_and_asked(sources)[found[1] == "tests"] if found else None
        return split.image(int(found[2])) if split and found and int(found[2]) < len(split.entries) else None

    def image_classes(self, sources: SourcePaths) -> ImageClasses:
        """Return every class of the two splits."""
        exemplars, tests = _shown_and_asked(sources)
        shown: dict[str, list[str]] = {}
        asked: dict[str, int] = {}
        for number, entry in enumerate(exemplars.entries):
            if not entry.fault and (kind := exemplars.kind(entry.label)):
                shown.setdefault(kind, []).append(f"exemplars/{number}")
        for entry in tests.entries:
            if not entry.fault and (kind := tests.kind(entry.label)):
                asked[kind] = asked.get(kind, 0) + 1
        kinds = sorted({*shown, *asked})
        names = {kind: exemplars.names[int(kind)] if exemplars.names else str(int(kind)) for kind in kinds}
        found = {kind: ImageClass(names[kind], "", tuple(shown.get(kind, ())), asked.get(kind, 0)) for kind in kinds}
        return ImageClasses(exemplars.name, tests.name, found)


def _shown_and_asked(sources: SourcePaths) -> tuple[Split, Split]:
    found = _splits(sources["data"])
    return found.exemplars, found.tests


@lru_cache(maxsize=4)
def _splits(source: Path) -> Splits:
    """Return the splits of a source, which has one of the forms.

    Raises:
        SourceError: the source has several forms, or has none, or cannot be read.

    """
    if not source.is_dir():
        return parquet.read(source)
    found = [(each, folder) for each in _ORIGINALS if (folder := each.find(source))]
    if len(found) == 1:
        return found[0][0].read(found[0][1])
    if not found and any(source.rglob("*.parquet")):
        return parquet.read(source)
    forms = " and ".join(each.what for each, _ in found)
    expected = f"Parquet files, or {', or '.join(each.what for each in _ORIGINALS)}"
    raise SourceError(
        Fault(
            "several-forms" if found else "unknown-form",
            "the files of one dataset" if found else expected,
            forms or "none of them",
            source.name,
            todo="give the folder of one dataset",
        )
    )
