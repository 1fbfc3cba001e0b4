"""Pictures in folders of their classes: `<class>/<file>`, one folder of classes for exemplars, one for tests."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar

from builders.icl.rows import ClassifiedImage
from mmlongbench import Fault, ImageClass, ImageClasses, Row, RowFault, Sources, at_place

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


class ImageFolders:
    """One's own classified pictures."""

    row_type: ClassVar[type[Row]] = ClassifiedImage
    sources: ClassVar[tuple[str, ...]] = ("train", "test")
    image_folder: ClassVar[str] = "image-folders"
    names_images_by_content: ClassVar[bool] = True

    def rows(self, sources: Sources) -> Iterator[Row | RowFault]:
        """Each picture of the folder of tests, numbered in the order of their paths; then what is in no class."""
        for number, (kind, name) in enumerate(_pictures(sources["test"])):
            row = ClassifiedImage(id=f"test-{number}", image=f"test/{name}", kind=kind)
            yield at_place(row.id, row, name, "picture")
        for split in self.sources:
            for path in sorted(sources[split].iterdir()):
                if path.is_file() and path.suffix.lower() in ENDINGS:
                    fault = Fault("no-class", f"{split}/<class>/{path.name}", f"{split}/{path.name}")
                    yield at_place(f"{split}/{path.name}", fault, path.name, "picture")

    def documents(self, sources: Sources) -> Mapping[str, Path]:
        """No PDFs."""
        return {}

    def image(self, sources: Sources, name: str) -> Path | None:
        """A picture by `<split>/<class>/<file>`; a name that leads out of its folder has none."""
        split, *inner = PurePosixPath(name).parts
        root = sources[split].resolve() if split in self.sources else Path()
        path = root.joinpath(*inner).resolve()
        return path if split in self.sources and path.is_relative_to(root) and path.is_file() else None

    def image_classes(self, sources: Sources) -> ImageClasses:
        """Every folder of pictures."""
        shown: dict[str, list[str]] = {}
        asked: dict[str, int] = {}
        for kind, name in _pictures(sources["train"]):
            shown.setdefault(kind, []).append(f"train/{name}")
        for kind, _ in _pictures(sources["test"]):
            asked[kind] = asked.get(kind, 0) + 1
        kinds = sorted({*shown, *asked})
        found = {kind: ImageClass(kind, "", tuple(shown.get(kind, ())), asked.get(kind, 0)) for kind in kinds}
        return ImageClasses("train", "test", found)

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Drawn shapes, a folder a class."""
        from builders.icl.sample import draw_folders

        return draw_folders(folder)


def _pictures(root: Path) -> list[tuple[str, str]]:
    """(class, path below the root) of each picture in a folder of its class, sorted; hidden files are passed over."""
    found = (path for path in root.glob("*/*") if path.suffix.lower() in ENDINGS and path.is_file())
    names = sorted(path.relative_to(root).as_posix() for path in found if not path.name.startswith("."))
    return [(PurePosixPath(name).parts[0], name) for name in names if not name.startswith(".")]
