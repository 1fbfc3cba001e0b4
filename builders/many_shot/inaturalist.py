"""iNaturalist 2021, in COCO's format: a file for the exemplars (`train_mini.json`), and one for the test images
(`val.json`).

A class is a category; its domain is the supercategory (Birds, Plants, …), and an example shows only one domain.
Pictures are found by `file_name` below one folder. The names of their folders tell the class, in eight parts such as
`00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris`; no release has these names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from builders.common import is_unicode, picture_below
from builders.many_shot.splits import ClassifiedImage
from mmlongbench.task import (
    Fault,
    ImageClass,
    ImageClasses,
    RawRow,
    Reader,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    load_json,
    raw_row,
)

_PARTS = ("images", "annotations", "categories")


@dataclass(frozen=True, slots=True)
class Annotated:
    """The content of one file, reduced to what is needed."""

    kinds: Mapping[int, tuple[str, str]]
    """(domain, name) of each category that has both, by category id."""
    files: Mapping[int, str]
    """File names by image id."""
    pairs: tuple[tuple[int, int], ...]
    """(image id, category id) of each annotation, in the order of the file."""
    ambiguous: frozenset[int]
    """The ids of images with several categories."""


class INaturalist(Reader[ClassifiedImage]):
    """Reads iNaturalist's own files."""

    row_type: ClassVar[type[Row]] = ClassifiedImage
    sources: ClassVar[tuple[str, ...]] = ("images", "train", "test")
    source_forms: ClassVar[Mapping[str, str]] = {
        "images": (
            "The folder of the pictures, with or without the first folder of their names: `file_name` of the "
            "annotations is a path such as `train_mini/<class>/<picture>.jpg`."
        ),
        "train": (
            "Annotations in COCO's form such as `train_mini.json`, with images, annotations and categories; "
            "these pictures are shown as exemplars."
        ),
        "test": "Annotations of the same form such as `val.json`; these pictures are asked about.",
    }
    image_folder: ClassVar[str] = "inat2021"
    names_images_by_content: ClassVar[bool] = True
    fixed_fields: ClassVar[tuple[str, ...]] = ("image_id", "category_id")

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each annotated test picture, with the id `inat-<image id>`; then, as faults, the exemplars that cannot
        be used.
        """
        for split in ("test", "train"):
            file, found = sources[split].name, _annotated(sources[split])
            for number, (image, category) in enumerate(found.pairs):
                place, fields = f"annotation {number}", {"image_id": image, "category_id": category}
                if split == "test":
                    yield raw_row(f"inat-{image}", fields, file, place)
                elif isinstance(fault := _row("", found, image, category), Fault):
                    yield raw_row(f"train-{image}", fault, file, place)

    def row(self, raw: RawRow, sources: SourcePaths) -> ClassifiedImage | Fault:
        """Return one test picture with its class."""
        return _row(raw.id, _annotated(sources["test"]), raw.fields["image_id"], raw.fields["category_id"])

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a picture below the folder, which may be the first folder of the name; None for a name that leads out
        of it.
        """
        return picture_below(sources["images"], name)

    def image_classes(self, sources: SourcePaths) -> ImageClasses:
        """Return every category with a usable picture in one of the two files, by `<supercategory>/<name>`."""
        shown: dict[str, list[str]] = {}
        asked: dict[str, int] = {}
        about: dict[str, tuple[str, str]] = {}
        for split in ("train", "test"):
            found = _annotated(sources[split])
            for image, category in found.pairs:
                if category in found.kinds and image in found.files and image not in found.ambiguous:
                    kind = "/".join(found.kinds[category])
                    about[kind] = found.kinds[category]
                    if split == "train":
                        shown.setdefault(kind, []).append(found.files[image])
                    else:
                        asked[kind] = asked.get(kind, 0) + 1
        classes = {
            kind: ImageClass(name, domain, tuple(dict.fromkeys(shown.get(kind, ()))), asked.get(kind, 0))
            for kind, (domain, name) in sorted(about.items())
        }
        return ImageClasses(sources["train"].name.split(".")[0], sources["test"].name.split(".")[0], classes)


def _row(id: str, found: Annotated, image: int, category: int) -> ClassifiedImage | Fault:
    if category not in found.kinds:
        expected = "a category with a name and a supercategory"
        return Fault(
            "no-supercategory",
            expected,
            f"category {category}",
            field="category_id",
            todo="correct the annotations, or download them again",
        )
    if image in found.ambiguous:
        return Fault(
            "image-of-two-classes",
            "one category an image",
            f"several of image {image}",
            field="category_id",
            todo="keep one annotation of the image",
        )
    if image not in found.files:
        return Fault(
            "no-such-image",
            "an image with a file_name",
            f"image {image}",
            field="image_id",
            todo="correct the annotations, or download them again",
        )
    return ClassifiedImage(id=id, image=found.files[image], kind="/".join(found.kinds[category]))


@lru_cache(maxsize=4)
def _annotated(path: Path) -> Annotated:
    data = _read(path)
    kinds = {
        each["id"]: (each["supercategory"], each["name"])
        for each in data["categories"]
        if isinstance(each, dict) and isinstance(each.get("id"), int) and _named(each, "supercategory", "name")
    }
    files = {
        each["id"]: each["file_name"]
        for each in data["images"]
        if isinstance(each, dict) and isinstance(each.get("id"), int) and _named(each, "file_name")
    }
    pairs = tuple(
        (each["image_id"], each["category_id"])
        for each in data["annotations"]
        if isinstance(each, dict) and all(isinstance(each.get(key), int) for key in ("image_id", "category_id"))
    )
    if len(pairs) < len(data["annotations"]):
        broken = f"{len(data['annotations']) - len(pairs)} without"
        raise SourceError(
            Fault(
                "broken-annotations",
                "image_id and category_id, integers",
                broken,
                path.name,
                todo="correct the annotations, or download them again",
            )
        )
    classes: dict[int, set[int]] = {}
    for image, category in pairs:
        classes.setdefault(image, set()).add(category)
    return Annotated(kinds, files, pairs, frozenset(image for image, found in classes.items() if len(found) > 1))


def _named(each: Mapping[str, object], *keys: str) -> bool:
    """Return whether fields hold text that can be encoded."""
    return all(isinstance(text := each.get(key), str) and text.strip() and is_unicode(text) for key in keys)


def _read(path: Path) -> Mapping[str, list[object]]:
    data = load_json(path, "a JSON object in COCO's form")
    if not isinstance(data, dict) or not all(isinstance(data.get(part), list) for part in _PARTS):
        raise SourceError(
            Fault(
                "unreadable-source",
                f"lists {', '.join(_PARTS)}",
                "something else",
                path.name,
                todo="give an annotation file of iNaturalist",
            )
        )
    return data
