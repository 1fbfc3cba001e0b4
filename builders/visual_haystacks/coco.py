"""COCO's instance annotations: which objects each picture shows. This module does not know questions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import mmlongbench.task as mt
from builders.common import is_unicode

_KEPT = ("images", "annotations", "categories", "id", "file_name", "name")


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that annotations list; a picture without annotations may show anything."""

    spelling: Mapping[str, str]
    """The annotated spelling of each category, by its name in lower case."""
    shown: Mapping[str, frozenset[str]]
    """The categories that each picture shows, by the path of the picture below the root."""


def read_objects(annotations: Path, images: Path) -> Objects:
    """Return the objects of a file of annotations; `images` is the root of its pictures.

    Raises:
        SourceError: the file is not in COCO's form, or an instance has a category that is not listed.

    """
    file, place = annotations.name, _placing(annotations, images)
    data = mt.readers.load_json(annotations, "instance annotations of COCO", _slim)
    names = dict(_texts(data, "categories", "name", file))
    pictures = {id: place(name) for id, name in _texts(data, "images", "file_name", file)}
    shown: dict[str, set[str]] = {name: set() for name in pictures.values()}
    for number, instance in enumerate(_items(data, "annotations", file)):
        image, category = instance if isinstance(instance, tuple) else (None, None)
        if not isinstance(image, int | str) or not isinstance(category, int | str) or category not in names:
            expected = "an object with `image_id` and `category_id`, one of the categories"
            raise _refused(file, f"annotations, item {number}", expected, instance)
        if image in pictures:
            shown[pictures[image]].add(names[category])
    spelling = {name.casefold(): name for name in names.values()}
    return Objects(spelling, {name: frozenset(found) for name, found in shown.items()})


def _slim(found: dict[str, object]) -> object:
    """Return the needed parts of a JSON object; polygons, the largest part of a file, are dropped at once."""
    if "image_id" in found:
        return found["image_id"], found.get("category_id")
    return {key: found[key] for key in _KEPT if key in found}


def _placing(annotations: Path, images: Path) -> Callable[[str], str]:
    """Return a function that turns a `file_name` into a picture's name below the root.

    The pictures of `instances_train2017.json` are in `train2017/`, which may be the root itself. If there is no such
    folder, the folder with the picture is searched for below the root.
    """
    split = annotations.stem.removeprefix("instances_")
    is_known = split != annotations.stem and ((images / split).is_dir() or images.name == split)
    inner = images.iterdir() if images.is_dir() and not is_known else ()
    folders = [split] if is_known else sorted(path.name for path in inner if path.is_dir())

    def place(file: str) -> str:
        if "/" in file:
            return file
        found = (name for name in folders if is_known or mt.readers.file_inside(images, f"{name}/{file}"))
        folder = next(found, "")
        return f"{folder}/{file}" if folder else file

    return place


def _texts(data: object, key: str, field: str, file: str) -> Iterator[tuple[int | str, str]]:
    """Yield (id, text) of each item of a list."""
    for number, item in enumerate(_items(data, key, file)):
        id, text = (item.get("id"), item.get(field)) if isinstance(item, dict) else (None, None)
        if not isinstance(id, int | str) or not isinstance(text, str) or not is_unicode(text):
            raise _refused(file, f"{key}, item {number}", f"an object with `id` and `{field}`", item)
        yield id, text


def _items(data: object, key: str, file: str) -> list[object]:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, list):
        raise _refused(file, "", f"COCO's form: an object with a list `{key}`", type(value).__name__)
    return value


def _refused(file: str, place: str, expected: str, found: object) -> mt.readers.SourceError:
    todo = "correct the annotations, or download them again"
    return mt.readers.SourceError(mt.Fault("invalid-annotations", expected, ascii(found)[:200], file, place, todo=todo))
