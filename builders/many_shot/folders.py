"""Pictures in folders named after their classes (`<class>/<file>`). One folder holds the classes of the exemplars,
another one those of the test images.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar

from builders.common.fields import is_unicode
from builders.many_shot.rows import ClassifiedImage
from mmlongbench.task import (
    PICTURE_ENDINGS,
    Fault,
    ImageClass,
    ImageClasses,
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
        """Yield each test picture, numbered in the order of the paths; then, as faults, the files of both folders that
        cannot be used.
        """
        for number, (kind, name) in enumerate(_pictures(sources["test"])):
            yield raw_row(f"test-{number}", {"image": f"test/{name}", "class": kind}, name, "picture")
        for split in self.sources:
            for name in _files(sources[split]):
                path = PurePosixPath(name)
                if path.suffix.lower() not in PICTURE_ENDINGS:
                    fault = Fault(
                        "unknown-ending",
                        f"a picture that ends in {', '.join(PICTURE_ENDINGS)}",
                        path.suffix or "none",
                        todo="convert it to one of these formats, or take it out",
                    )
                    yield raw_row(f"{split}/{name}", fault, name, "file")
                elif not is_unicode(name):
                    found = name.encode("ascii", "backslashreplace").decode()
                    fault = Fault("invalid-unicode", "a name in UTF-8", found, todo="rename the file")
                    yield raw_row(f"{split}/{found}", fault, found, "name")
                elif len(path.parts) < 2:
                    fault = Fault(
                        "no-class",
                        f"{split}/<class>/{name}",
                        f"{split}/{name}",
                        todo="put the picture into the folder of its class",
                    )
                    yield raw_row(f"{split}/{name}", fault, name, "picture")

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


def _pictures(root: Path) -> list[tuple[str, str]]:
    """Return (class, path below the root) of each picture. The class is the picture's folder, with the folders around
    it (`a/abbey`).
    """
    found = (PurePosixPath(name) for name in _files(root))
    pictures = (path for path in found if path.suffix.lower() in PICTURE_ENDINGS and len(path.parts) > 1)
    return [(path.parent.as_posix(), path.as_posix()) for path in pictures if is_unicode(path.as_posix())]
