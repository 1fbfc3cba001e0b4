"""The readers of classified pictures: your own folders, the forms of public sets, and iNaturalist.

A reader lists the pictures of a split, each with its class or with what is wrong with it. Rows and classes follow from
these lists.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import mmlongbench.task as mt
from builders.common import is_unicode, picture_below, source_error
from builders.many_shot.forms import FORMS, read_set

Split: TypeAlias = Literal["test", "train"]
"""Pictures that are asked about, or pictures that are shown with their label."""


class ClassifiedImage(mt.Row):
    """A picture to classify."""

    image: str
    """The name of the picture in the source."""
    kind: str
    """The id of its class among the reader's `image_classes`."""


class Listed(NamedTuple):
    """A picture in the list of a source."""

    id: str  # of the row
    image: str
    kind: str  # the id of the class; meaningless, as is `image`, if there is a fault
    file: str
    place: str
    fault: mt.Fault | None = None  # why the picture cannot be used


class _PictureReader(mt.readers.Reader[ClassifiedImage]):
    """Makes the rows and the classes of a source from its lists of pictures."""

    row_type: ClassVar[type[mt.Row]] = ClassifiedImage
    names_images_by_content: ClassVar[bool] = True
    # what a source calls the picture and its class; both are also read for the classes
    fixed_fields: ClassVar[tuple[str, ...]] = ("image", "class", "label", "image_id", "category_id")

    @abstractmethod
    def listed(self, sources: mt.readers.SourcePaths, split: Split) -> Iterator[Listed]:
        """Yield the pictures of a split."""

    def raw_rows(self, sources: mt.readers.SourcePaths) -> Iterator[mt.readers.RawRow | mt.readers.RowFault]:
        """Yield each test picture; then, as faults, the exemplars that cannot be used."""
        for picture in self.listed(sources, "test"):
            fields = {"image": picture.image, "class": picture.kind}
            yield mt.readers.raw_row(picture.id, picture.fault or fields, picture.file, picture.place)
        for picture in self.listed(sources, "train"):
            if picture.fault:
                yield mt.readers.raw_row(picture.id, picture.fault, picture.file, picture.place)

    def row(self, raw: mt.readers.RawRow, sources: mt.readers.SourcePaths) -> ClassifiedImage:
        return ClassifiedImage(id=raw.id, image=raw.fields["image"], kind=raw.fields["class"])

    def classes(
        self, sources: mt.readers.SourcePaths, about: Callable[[str], tuple[str, str]]
    ) -> Mapping[str, mt.readers.ImageClass]:
        """Return the classes with a usable picture, by id; `about` takes an id, and returns a name and a domain."""
        exemplars: dict[str, dict[str, None]] = {}
        for picture in self.listed(sources, "train"):
            if not picture.fault:
                exemplars.setdefault(picture.kind, {})[picture.image] = None
        tests = Counter(picture.kind for picture in self.listed(sources, "test") if not picture.fault)
        kinds = sorted({*exemplars, *tests})
        return {
            kind: mt.readers.ImageClass(*about(kind), tuple(exemplars.get(kind, ())), tests[kind]) for kind in kinds
        }


class ImageFolders(_PictureReader):
    """Reads your own classified pictures: folders named after their classes."""

    sources: ClassVar[tuple[str, ...]] = ("train", "test")
    source_forms: ClassVar[Mapping[str, str]] = {
        "train": "A folder with a folder of pictures for each class, `<class>/<file>`; these pictures are shown as "
        "exemplars.",
        "test": "A folder of the same form; its pictures are asked about.",
    }
    image_folder: ClassVar[str] = "image-folders"

    def listed(self, sources: mt.readers.SourcePaths, split: Split) -> Iterator[Listed]:
        """Yield the pictures, numbered in the order of their paths; then, of the test pictures, the files that cannot
        be used. The class of a picture is its folder, with the folders around it (`a/abbey`).
        """
        files = list(_files(split, sources[split]))
        names = [name for name, _, fault in files if not fault]
        for number, name in enumerate(names):
            yield Listed(f"test-{number}", f"{split}/{name}", str(PurePosixPath(name).parent), name, "picture")
        for name, what, fault in files if split == "test" else ():
            if fault:
                yield Listed(f"test/{name}", "", "", name, what, fault)

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        """Return which files cannot be exemplars: they are no questions, so they are not among the rejected rows."""
        faults = [f"{name}: {fault}" for name, _, fault in _files("train", sources["train"]) if fault]
        return (f"source.train: {len(faults)} files cannot be exemplars, the first: {faults[0]}",) if faults else ()

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        """Return a picture by `<split>/<class>/<file>`; None for a name that leads out of its folder."""
        split, *inner = PurePosixPath(name).parts or ("",)
        return mt.readers.file_inside(sources[split], "/".join(inner)) if split in self.sources else None

    def image_classes(self, sources: mt.readers.SourcePaths) -> mt.readers.ImageClasses:
        return mt.readers.ImageClasses("train", "test", self.classes(sources, lambda kind: (kind, "")))


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


class ImageTables(_PictureReader):
    """Reads sets of classified pictures: Parquet files of the hub, or the folders of Food-101, SUN397 and Stanford
    Cars.
    """

    sources: ClassVar[tuple[str, ...]] = ("data",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "data": "A folder of Parquet files, or a dataset of the hub (`hub:owner/name@revision`), where files have the "
        "columns image and label, and their names contain `train`, or `test` or `validation`; or a folder with "
        f"{'; or with '.join(form.what for form in FORMS)}.",
    }
    image_folder: ClassVar[str] = "image-tables"
    # the other splits of a dataset are not fetched: the seven corrupted ones of Stanford Cars have 4 GB
    hub_files: ClassVar[tuple[str, ...]] = ("*train*.parquet", "*test*.parquet", "*val*.parquet")

    def listed(self, sources: mt.readers.SourcePaths, split: Split) -> Iterator[Listed]:
        """Yield the pictures with the id `<split>-<row>`."""
        found = read_set(sources["data"])
        named, part = (found.test_split, "tests") if split == "test" else ("train", "exemplars")
        for number, entry in enumerate(found.entries[part]):
            kind = "" if entry.fault else f"{entry.label:05}"
            yield Listed(f"{named}-{number}", f"{part}/{number}", kind, entry.file, entry.place, entry.fault)

    def notes(self, sources: mt.readers.SourcePaths, options: mt.Options) -> Sequence[str]:
        return read_set(sources["data"]).notes

    def image(self, sources: mt.readers.SourcePaths, name: str) -> mt.readers.PictureFile | None:
        """Return a picture by `exemplars/<row>` or `tests/<row>`."""
        place = re.fullmatch(r"(exemplars|tests)/(\d{1,12})", name)
        if not place:
            return None
        found, index = read_set(sources["data"]), int(place[2])
        entries = found.entries[place[1]]
        picture = entries[index].picture if index < len(entries) else None
        if isinstance(picture, str):
            return mt.readers.file_inside(found.folder, picture) if found.folder else None
        return picture

    def image_classes(self, sources: mt.readers.SourcePaths) -> mt.readers.ImageClasses:
        found = read_set(sources["data"])
        classes = self.classes(sources, lambda kind: (found.names[int(kind)] if found.names else str(int(kind)), ""))
        return mt.readers.ImageClasses("train", found.test_split, classes)


class INaturalist(_PictureReader):
    """Reads iNaturalist 2021 in COCO's form: a file for the exemplars (`train_mini.json`), and one for the test images
    (`val.json`).

    A class is a category; its domain is the supercategory (Birds, Plants, …), and an example shows only one domain.
    Pictures are found by `file_name` below one folder. The names of their folders tell the class, in eight parts such
    as `00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris`; no release has these names.
    """

    sources: ClassVar[tuple[str, ...]] = ("images", "train", "test")
    source_forms: ClassVar[Mapping[str, str]] = {
        "images": "The folder of the pictures, with or without the first folder of their names: `file_name` of the "
        "annotations is a path such as `train_mini/<class>/<picture>.jpg`.",
        "train": "Annotations in COCO's form such as `train_mini.json`, with images, annotations and categories; "
        "these pictures are shown as exemplars.",
        "test": "Annotations of the same form such as `val.json`; these pictures are asked about.",
    }
    image_folder: ClassVar[str] = "inat2021"

    def listed(self, sources: mt.readers.SourcePaths, split: Split) -> Iterator[Listed]:
        """Yield the annotated pictures; the id of a test picture is `inat-<image id>`."""
        file, prefix = sources[split].name, "inat" if split == "test" else "train"
        categories, files, pairs, ambiguous = _annotations(sources[split])
        kinds = {id: f"{domain}/{name}" for id, (domain, name) in categories.items()}
        todo = "correct the annotations, or download them again"
        for number, (image, category) in enumerate(pairs):
            fault, kind, name = None, kinds.get(category, ""), files.get(image, "")
            if not kind:
                expected, found = "a category with a name and a supercategory", f"category {category}"
                fault = mt.Fault("no-supercategory", expected, found, field="category_id", todo=todo)
            elif image in ambiguous:
                expected, found, keep = (
                    "one category an image",
                    f"several of image {image}",
                    "keep one annotation of the image",
                )
                fault = mt.Fault("image-of-two-classes", expected, found, field="category_id", todo=keep)
            elif not name:
                expected, found = "an image with a file_name", f"image {image}"
                fault = mt.Fault("no-such-image", expected, found, field="image_id", todo=todo)
            yield Listed(f"{prefix}-{image}", name, kind, file, f"annotation {number}", fault)

    def image(self, sources: mt.readers.SourcePaths, name: str) -> Path | None:
        return picture_below(sources["images"], name)

    def image_classes(self, sources: mt.readers.SourcePaths) -> mt.readers.ImageClasses:
        pairs = (pair for split in ("train", "test") for pair in _annotations(sources[split]).categories.values())
        names = {f"{domain}/{name}": (name, domain) for domain, name in pairs}
        train, test = (sources[split].name.split(".")[0] for split in ("train", "test"))
        return mt.readers.ImageClasses(train, test, self.classes(sources, names.__getitem__))


class _Annotations(NamedTuple):
    """What is needed of a file."""

    categories: Mapping[int, tuple[str, str]]  # (domain, name) of each category that has both, by its id
    files: Mapping[int, str]  # the names of files, by the ids of images
    pairs: Sequence[tuple[int, int]]  # (image id, category id) of each annotation, in the order of the file
    ambiguous: frozenset[int]  # the ids of images with several categories


@lru_cache(maxsize=4)
def _annotations(path: Path) -> _Annotations:
    data = mt.readers.load_json(path, "a JSON object in COCO's form")
    lists = ("images", "annotations", "categories")
    if not isinstance(data, dict) or not all(isinstance(data.get(part), list) for part in lists):
        expected, todo = f"lists {', '.join(lists)}", "give an annotation file of iNaturalist"
        raise source_error("unreadable-source", expected, "something else", path.name, todo)

    def texts(part: str, *fields: str) -> Iterator[tuple[int, list[str]]]:
        """Yield (id, these texts) of each item that has all of them: valid Unicode, and not only blanks."""
        for item in data[part]:
            if isinstance(item, dict) and isinstance(item.get("id"), int):
                found: list[Any] = [item.get(field) for field in fields]
                if all(isinstance(text, str) and text.strip() and is_unicode(text) for text in found):
                    yield item["id"], found

    categories = {id: (domain, name) for id, (domain, name) in texts("categories", "supercategory", "name")}
    files = {id: name for id, (name,) in texts("images", "file_name")}
    ids = ((item.get("image_id"), item.get("category_id")) for item in data["annotations"] if isinstance(item, dict))
    pairs = [(image, category) for image, category in ids if isinstance(image, int) and isinstance(category, int)]
    if missing := len(data["annotations"]) - len(pairs):
        expected, todo = "image_id and category_id, integers", "correct the annotations, or download them again"
        raise source_error("broken-annotations", expected, f"{missing} without", path.name, todo)
    categories_of: dict[int, set[int]] = {}
    for image, category in pairs:
        categories_of.setdefault(image, set()).add(category)
    ambiguous = frozenset(image for image, several in categories_of.items() if len(several) > 1)
    return _Annotations(categories, files, pairs, ambiguous)
