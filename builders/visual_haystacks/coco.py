"""COCO's instance annotations: which objects each picture shows. This module does not know questions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builders.common import is_unicode
from mmlongbench.task import Fault, SourceError, SourcePaths, file_inside, load_json

_KEPT = ("images", "annotations", "categories", "id", "file_name", "name")


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that annotations list; a picture without annotations may show anything."""

    spelling: Mapping[str, str]
    """The annotated spelling of each category, by its name in lower case."""
    shown: Mapping[str, frozenset[str]]
    """The categories that each picture shows, by the path of the picture below the root."""

    def does_show(self, name: str, category: str) -> bool:
        """Return whether the annotations say that a picture shows a category."""
        return category in self.shown.get(name, ())

    def may_show(self, name: str, category: str) -> bool:
        """Return whether the annotations say that a picture shows a category, or do not have the picture at all."""
        return category in self.shown.get(name, (category,))


def slim(found: dict[str, object]) -> object:
    """Return the needed parts of a JSON object; polygons, the largest part of a file, are dropped at once."""
    if "image_id" in found:
        return found["image_id"], found.get("category_id")
    return {key: found[key] for key in _KEPT if key in found}


def objects_of(data: object, file: str, place: Callable[[str], str]) -> Objects:
    """Return the objects of a file that was read with `slim`; `place` returns a picture's name from its `file_name`.

    Raises:
        SourceError: the file is not in COCO's form, or an instance has a category that is not listed.

    """
    names = dict(_texts(data, "categories", "name", file))
    pictures = {id: place(found) for id, found in _texts(data, "images", "file_name", file)}
    shown: dict[str, set[str]] = {name: set() for name in pictures.values()}
    for number, instance in enumerate(_items(data, "annotations", file)):
        image, category = instance if isinstance(instance, tuple) else (None, None)
        if not isinstance(image, int | str) or not isinstance(category, int | str) or category not in names:
            expected = "an object with `image_id` and `category_id`, one of the categories"
            raise _fault(file, f"annotations, item {number}", expected, instance)
        if image in pictures:
            shown[pictures[image]].add(names[category])
    return Objects(
        {name.casefold(): name for name in names.values()}, {name: frozenset(found) for name, found in shown.items()}
    )


def placing(annotations: Path, images: Path) -> Callable[[str], str]:
    """Return a function that turns a `file_name` into a picture's name below the root.

    The pictures of `instances_train2017.json` are in `train2017/`, which may be the root itself. If there is no such
    folder, the folder with the picture is searched for below the root.
    """
    split = annotations.stem.removeprefix("instances_")
    if split != annotations.stem and ((images / split).is_dir() or images.name == split):
        folders, is_known = [split], True
    else:
        inner = images.iterdir() if images.is_dir() else iter(())
        folders, is_known = sorted(path.name for path in inner if path.is_dir()), False

    def place(file: str) -> str:
        if "/" in file:
            return file
        found = (name for name in folders if is_known or file_inside(images, f"{name}/{file}"))
        return "/".join((*(name for name in [next(found, "")] if name), file))

    return place


def _texts(data: object, key: str, field: str, file: str) -> Iterator[tuple[int | str, str]]:
    """Yield (id, text) of each item of a list."""
    for number, item in enumerate(_items(data, key, file)):
        id, text = (item.get("id"), item.get(field)) if isinstance(item, dict) else (None, None)
        if not isinstance(id, int | str) or not isinstance(text, str) or not is_unicode(text):
            raise _fault(file, f"{key}, item {number}", f"an object with `id` and `{field}`", item)
        yield id, text


def _items(data: object, key: str, file: str) -> list[object]:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, list):
        raise _fault(file, "", f"COCO's form: an object with a list `{key}`", type(value).__name__)
    return value


def _fault(file: str, place: str, expected: str, found: object) -> SourceError:
    return SourceError(
        Fault(
            "invalid-annotations",
            expected,
            ascii(found)[:200],
            file,
            place,
            todo="correct the annotations, or download them again",
        )
    )


class Annotations:
    """Reads the annotations of a source and keeps them. Each reader has its own object of this class."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path | None, Path], Objects | None] = {}

    def read(self, sources: SourcePaths) -> Objects | None:
        """Read the annotations, if there are any."""
        path, images = sources.get("annotations"), sources["images"]
        data = load_json(path, "instance annotations of COCO", slim) if path else None
        found = objects_of(data, path.name, placing(path, images)) if path else None
        self._read[path, images] = found
        return found

    def of(self, sources: SourcePaths) -> Objects | None:
        """Return the annotations that `read` returned last; if it was not called for this source, call it."""
        key = sources.get("annotations"), sources["images"]
        return self._read[key] if key in self._read else self.read(sources)
