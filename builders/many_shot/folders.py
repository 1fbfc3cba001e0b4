"""Pictures in folders named after their classes (`<class>/<file>`). One folder holds the classes of the exemplars,
another one those of the test images.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

from builders.common import is_unicode
from builders.many_shot.splits import ClassifiedImage
from mmlongbench.task import (
    PICTURE_ENDINGS,
    Fault,
    ImageClass,
    ImageClasses,
    Options,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourcePaths,
    file_inside,
    raw_row,
)


class ImageFolders(Reader[ClassifiedImage]):
    """Reads your own classified pictures."""

    row_type: ClassVar[type[Row]] = ClassifiedImage
    sources: ClassVar[tuple[str, ...]] = ("train", "test")
    source_forms: ClassVar[Mapping[str, str]] = {
        "train": (
            "A folder with a folder of pictures for each class, `<class>/<file>`; these pictures are shown as "
            "exemplars."
        ),
        "test": "A folder of the same form; its pictures are asked about.",
    }
    image_folder: ClassVar[str] = "image-folders"
    names_images_by_content: ClassVar[bool] = True
    fixed_fields: ClassVar[tuple[str, ...]] = ("image", "class")

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each test picture, numbered in the order of the paths; then, as faults, the files of the folder that
        cannot be used.
        """
        for number, (kind, name) in enumerate(_pictures(sources["test"])):
            yield raw_row(f"test-{number}", {"image": f"test/{name}", "class": kind}, name, "picture")
        for name, what, fault in _unusable("test", sources["test"]):
            yield raw_row(f"test/{name}", fault, name, what)

    def notes(self, sources: SourcePaths, options: Options) -> Sequence[str]:
        """Return which files cannot be exemplars: they are no questions, so they are not among the rejected rows."""
        found = [f"{name}: {fault}" for name, _, fault in _unusable("train", sources["train"])]
        return (f"source.train: {len(found)} files cannot be exemplars, the first: {found[0]}",) if found else ()

    def row(self, raw: RawRow, sources: SourcePaths) -> ClassifiedImage:
        """Return one test picture; its class is its folder."""
        return ClassifiedImage(id=raw.id, image=raw.fields["image"], kind=str(raw.fields["class"]))

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a picture by `<split>/<class>/<file>`; None for a name that leads out of its folder."""
        split, *inner = PurePosixPath(name).parts or ("",)
        return file_inside(sources[split], "/".join(inner)) if split in self.sources else None

    def image_classes(self, sources: SourcePaths) -> ImageClasses:
        """Return the classes: every folder with pictures."""
        shown: dict[str, list[str]] = {}
        asked: dict[str, int] = {}
        for kind, name in _pictures(sources["train"]):
            shown.setdefault(kind, []).append(f"train/{name}")
        for kind, _ in _pictures(sources["test"]):
            asked[kind] = asked.get(kind, 0) + 1
        kinds = sorted({*shown, *asked})
        found = {kind: ImageClass(kind, "", tuple(shown.get(kind, ())), asked.get(kind, 0)) for kind in kinds}
        return ImageClasses("train", "test", found)


def _files(root: Path) -> list[str]:
    """Return the paths of all visible files below a folder, sorted."""
    names = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts))


def _unusable(split: str, root: Path) -> Iterator[tuple[str, str, Fault]]:
    """Yield (name, what it is, fault) of each file that cannot be used."""
    for name in _files(root):
        path = PurePosixPath(name)
        if path.suffix.lower() not in PICTURE_ENDINGS:
            expected = f"a picture that ends in {', '.join(PICTURE_ENDINGS)}"
            todo = "convert it to one of these formats, or take it out"
            yield name, "file", Fault("unknown-ending", expected, path.suffix or "none", todo=todo)
        elif not is_unicode(name):
            shown = name.encode("ascii", "backslashreplace").decode()
            yield shown, "name", Fault("invalid-unicode", "a name in UTF-8", shown, todo="rename the file")
        elif len(path.parts) < 2:
            todo = "put the picture into the folder of its class"
            yield name, "picture", Fault("no-class", f"{split}/<class>/{name}", f"{split}/{name}", todo=todo)


def _pictures(root: Path) -> list[tuple[str, str]]:
    """Return (class, path below the root) of each picture. The class is the picture's folder, with the folders around
    it (`a/abbey`).
    """
    found = (PurePosixPath(name) for name in _files(root))
    pictures = (path for path in found if path.suffix.lower() in PICTURE_ENDINGS and len(path.parts) > 1)
    return [(path.parent.as_posix(), path.as_posix()) for path in pictures if is_unicode(path.as_posix())]
