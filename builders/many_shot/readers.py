"""The readers of classified pictures: your own folders, the forms of public sets, and iNaturalist."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import ClassVar

import mmlongbench.task as mt
from builders.common import is_unicode, picture_below
from builders.many_shot.forms import FORMS, read_set


class ClassifiedImage(mt.Row):
    """A picture to classify."""

    image: str
    """The name of the picture in the source."""
    kind: str
    """The id of its class among the reader's `image_classes`."""


def _classes(
    exemplars: Iterable[tuple[str, str]], tests: Iterable[str], about: Callable[[str], tuple[str, str]]
) -> Mapping[str, mt.readers.ImageClass]:
    """Return the classes of a source, from (class, picture) of each exemplar and the class of each test picture.

    `about` takes a class, and returns its name and its domain.
    """
    shown: dict[str, dict[str, None]] = {}
    for kind, picture in exemplars:
        shown.setdefault(kind, {})[picture] = None
    asked = Counter(tests)
    kinds = sorted({*shown, *asked})
    return {kind: mt.readers.ImageClass(*about(kind), tuple(shown.get(kind, ())), asked[kind]) for kind in kinds}


class ImageFolders(mt.readers.Reader[ClassifiedImage]):
    """Reads your own classified pictures: folders named after their classes."""

    row_type: ClassVar[type[mt.Row]] = ClassifiedImage
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

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each test picture, numbered in the order of the paths; then, as faults, the files of the folder that
        cannot be used.
        """
        for number, (kind, name) in enumerate(_pictures(sources["test"])):
            yield mt.readers.raw_row(f"test-{number}", {"image": f"test/{name}", "class": kind}, name, "picture")
        for name, what, fault in _files("test", sources["test"]):
            if fault:
                yield mt.readers.raw_row(f"test/{name}", fault, name, what)

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        """Return which files cannot be exemplars: they are no questions, so they are not among the rejected rows."""
        found = [f"{name}: {fault}" for name, _, fault in _files("train", sources["train"]) if fault]
        return (f"source.train: {len(found)} files cannot be exemplars, the first: {found[0]}",) if found else ()

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> ClassifiedImage:
        return ClassifiedImage(id=raw.id, image=raw.fields["image"], kind=str(raw.fields["class"]))

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        """Return a picture by `<split>/<class>/<file>`; None for a name that leads out of its folder."""
        split, *inner = PurePosixPath(name).parts or ("",)
        return mt.readers.file_inside(sources[split], "/".join(inner)) if split in self.sources else None

    def image_classes(self, sources: mt.readers.SourcePaths) -> mt.readers.ImageClasses:
        exemplars = ((kind, f"train/{name}") for kind, name in _pictures(sources["train"]))
        tests = (kind for kind, _ in _pictures(sources["test"]))
        return mt.readers.ImageClasses("train", "test", _classes(exemplars, tests, lambda kind: (kind, "")))


def _pictures(root: Path) -> list[tuple[str, str]]:
    """Return (class, path below the root) of each picture. The class is the picture's folder, with the folders around
    it (`a/abbey`).
    """
    return [(PurePosixPath(name).parent.as_posix(), name) for name, _, fault in _files("", root) if not fault]


def _files(split: str, root: Path) -> Iterator[tuple[str, str, mt.Fault | None]]:
    """Yield (path below the root, what it is, fault) of each visible file below a folder, sorted."""
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    for name in sorted(path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)):
        path = PurePosixPath(name)
        if path.suffix.lower() not in mt.readers.PICTURE_ENDINGS:
            expected = f"a picture that ends in {', '.join(mt.readers.PICTURE_ENDINGS)}"
            todo = "convert it to one of these formats, or take it out"
            yield name, "file", mt.Fault("unknown-ending", expected, path.suffix or "none", todo=todo)
        elif not is_unicode(name):
            shown = name.encode("ascii", "backslashreplace").decode()
            yield shown, "name", mt.Fault("invalid-unicode", "a name in UTF-8", shown, todo="rename the file")
        elif len(path.parts) < 2:
            expected, todo = f"{split}/<class>/{name}", "put the picture into the folder of its class"
            yield name, "picture", mt.Fault("no-class", expected, f"{split}/{name}", todo=todo)
        else:
            yield name, "picture", None


class ImageTables(mt.readers.Reader[ClassifiedImage]):
    """Reads sets of classified pictures: Parquet files of the hub, or the folders of Food-101, SUN397 and Stanford
    Cars.
    """

    row_type: ClassVar[type[mt.Row]] = ClassifiedImage
    sources: ClassVar[tuple[str, ...]] = ("data",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "data": (
            "A folder of Parquet files, or a dataset of the hub (`hub:owner/name@revision`), where files have the "
            "columns image and label, and their names contain `train`, or `test` or `validation`; or a folder with "
            f"{'; or with '.join(form.what for form in FORMS)}."
        ),
    }
    image_folder: ClassVar[str] = "image-tables"
    # the other splits of a dataset are not fetched: the seven corrupted ones of Stanford Cars have 4 GB
    hub_files: ClassVar[tuple[str, ...]] = ("*train*.parquet", "*test*.parquet", "*val*.parquet")
    names_images_by_content: ClassVar[bool] = True
    fixed_fields: ClassVar[tuple[str, ...]] = ("image", "label")

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each picture of the test split with the id `<split>-<row>`; then, as faults, the exemplars that cannot
        be used.
        """
        found = read_set(sources["data"])
        for number, entry in enumerate(found.tests):
            fields = {"image": f"tests/{number}", "label": entry.label}
            yield mt.readers.raw_row(f"{found.test_split}-{number}", entry.fault or fields, entry.file, entry.place)
        for number, entry in enumerate(found.exemplars):
            if entry.fault:
                yield mt.readers.raw_row(f"train-{number}", entry.fault, entry.file, entry.place)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> ClassifiedImage:
        return ClassifiedImage(id=raw.id, image=raw.fields["image"], kind=f"{raw.fields['label']:05}")

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        """Return which partition of SUN397 is used, and how many Parquet files of a split are missing."""
        return read_set(sources["data"]).notes

    def image(self, sources: mt.readers.SourcePaths, name: str) -> mt.readers.PictureFile | None:
        """Return a picture by `exemplars/<row>` or `tests/<row>`."""
        place = re.fullmatch(r"(exemplars|tests)/(\d{1,12})", name)
        if not place:
            return None
        found, index = read_set(sources["data"]), int(place[2])
        entries = found.tests if place[1] == "tests" else found.exemplars
        picture = entries[index].picture if index < len(entries) else None
        if isinstance(picture, str):
            return mt.readers.file_inside(found.folder, picture) if found.folder else None
        return picture

    def image_classes(self, sources: mt.readers.SourcePaths) -> mt.readers.ImageClasses:
        found = read_set(sources["data"])

        def about(kind: str) -> tuple[str, str]:
            return found.names[int(kind)] if found.names else str(int(kind)), ""

        exemplars = ((each.kind, f"exemplars/{n}") for n, each in enumerate(found.exemplars) if not each.fault)
        tests = (entry.kind for entry in found.tests if not entry.fault)
        return mt.readers.ImageClasses("train", found.test_split, _classes(exemplars, tests, about))


class INaturalist(mt.readers.Reader[ClassifiedImage]):
    """Reads iNaturalist 2021 in COCO's form: a file for the exemplars (`train_mini.json`), and one for the test images
    (`val.json`).

    A class is a category; its domain is the supercategory (Birds, Plants, …), and an example shows only one domain.
    Pictures are found by `file_name` below one folder. The names of their folders tell the class, in eight parts such
    as `00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris`; no release has these names.
    """

    row_type: ClassVar[type[mt.Row]] = ClassifiedImage
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

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each annotated test picture, with the id `inat-<image id>`; then, as faults, the exemplars that cannot
        be used.
        """
        for split, prefix in (("test", "inat"), ("train", "train")):
            file, found = sources[split].name, _annotations(sources[split])
            for number, (image, category) in enumerate(found.pairs):
                fault, fields = found.fault(image, category), {"image_id": image, "category_id": category}
                if split == "test" or fault:
                    yield mt.readers.raw_row(f"{prefix}-{image}", fault or fields, file, f"annotation {number}")

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> ClassifiedImage:
        found, fields = _annotations(sources["test"]), raw.fields
        kind = "/".join(found.kinds[fields["category_id"]])
        return ClassifiedImage(id=raw.id, image=found.files[fields["image_id"]], kind=kind)

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        return picture_below(sources["images"], name)

    def image_classes(self, sources: mt.readers.SourcePaths) -> mt.readers.ImageClasses:
        """Return every category with a usable picture in one of the two files, by `<supercategory>/<name>`."""
        train, test = (_annotations(sources[split]) for split in ("train", "test"))
        names = {"/".join(pair): pair[::-1] for found in (train, test) for pair in found.kinds.values()}
        exemplars = ((kind, train.files[image]) for kind, image in train.usable())
        classes = _classes(exemplars, (kind for kind, _ in test.usable()), names.__getitem__)
        return mt.readers.ImageClasses(sources["train"].name.split(".")[0], sources["test"].name.split(".")[0], classes)


@dataclass(frozen=True, slots=True)
class _Annotations:
    """The content of one file, reduced to what is needed."""

    kinds: Mapping[int, tuple[str, str]]
    """(domain, name) of each category that has both, by category id."""
    files: Mapping[int, str]
    """File names by image id."""
    pairs: tuple[tuple[int, int], ...]
    """(image id, category id) of each annotation, in the order of the file."""
    ambiguous: frozenset[int]
    """The ids of images with several categories."""

    def usable(self) -> Iterator[tuple[str, int]]:
        """Yield (class, image id) of each annotation without a fault."""
        for image, category in self.pairs:
            if not self.fault(image, category):
                yield "/".join(self.kinds[category]), image

    def fault(self, image: int, category: int) -> mt.Fault | None:
        """Return what is wrong with an annotation."""
        todo = "correct the annotations, or download them again"
        if category not in self.kinds:
            expected, found = "a category with a name and a supercategory", f"category {category}"
            return mt.Fault("no-supercategory", expected, found, field="category_id", todo=todo)
        if image in self.ambiguous:
            found, todo = f"several of image {image}", "keep one annotation of the image"
            return mt.Fault("image-of-two-classes", "one category an image", found, field="category_id", todo=todo)
        if image not in self.files:
            return mt.Fault("no-such-image", "an image with a file_name", f"image {image}", field="image_id", todo=todo)
        return None


@lru_cache(maxsize=4)
def _annotations(path: Path) -> _Annotations:
    data = mt.readers.load_json(path, "a JSON object in COCO's form")
    lists = ("images", "annotations", "categories")
    if not isinstance(data, dict) or not all(isinstance(data.get(part), list) for part in lists):
        expected, todo = f"lists {', '.join(lists)}", "give an annotation file of iNaturalist"
        raise mt.readers.SourceError(mt.Fault("unreadable-source", expected, "something else", path.name, todo=todo))
    items = {part: [each for each in data[part] if isinstance(each, dict)] for part in lists}
    kinds = {
        each["id"]: (each["supercategory"], each["name"])
        for each in items["categories"]
        if isinstance(each.get("id"), int) and _is_text(each.get("supercategory")) and _is_text(each.get("name"))
    }
    files = {
        each["id"]: each["file_name"]
        for each in items["images"]
        if isinstance(each.get("id"), int) and _is_text(each.get("file_name"))
    }
    pairs = tuple(
        (each["image_id"], each["category_id"])
        for each in items["annotations"]
        if isinstance(each.get("image_id"), int) and isinstance(each.get("category_id"), int)
    )
    if missing := len(data["annotations"]) - len(pairs):
        expected, todo = "image_id and category_id, integers", "correct the annotations, or download them again"
        raise mt.readers.SourceError(
            mt.Fault("broken-annotations", expected, f"{missing} without", path.name, todo=todo)
        )
    classes: dict[int, set[int]] = {}
    for image, category in pairs:
        classes.setdefault(image, set()).add(category)
    return _Annotations(kinds, files, pairs, frozenset(image for image, found in classes.items() if len(found) > 1))


def _is_text(value: object) -> bool:
    """Return whether a value is a text, not only blanks, that can be encoded."""
    return isinstance(value, str) and bool(value.strip()) and is_unicode(value)
