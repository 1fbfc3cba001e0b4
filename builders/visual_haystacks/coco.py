"""COCO's instance annotations: which objects each picture shows. Knows nothing of questions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench import Fault, SourceError, SourcePaths, file_inside, load_json

_KEPT = ("images", "annotations", "categories", "id", "file_name", "name")


@dataclass(frozen=True, slots=True)
class Objects:
    """What annotations say of pictures; those they do not list may show anything."""

    spelling: Mapping[str, str]
    """Category as annotated by its name in lower case."""
    shown: Mapping[str, frozenset[str]]
    """Categories by picture: its folder and file below the root."""

    def does_show(self, name: str, category: str) -> bool:
        """Whether a picture is annotated with a category."""
        return category in self.shown.get(name, ())

    def may_show(self, name: str, category: str) -> bool:
        """Whether a picture is annotated with a category, or not annotated at all."""
        return category in self.shown.get(name, (category,))


def slim(found: dict[str, Any]) -> object:
    """What is needed of an object of the file: polygons are most of it, and are let go as they are read."""
    if "image_id" in found:
        return found["image_id"], found.get("category_id")
    return {key: found[key] for key in _KEPT if key in found}


def objects_of(data: Any, file: str, place: Callable[[str], str]) -> Objects:  # noqa: ANN401  (any JSON)
    """The objects of a file that was read with `slim`; `place` gives a picture's name by its `file_name`.

    Raises:
        SourceError: it is not in COCO's form, or an instance is of no category that it lists.

    """
    names = dict(_texts(data, "categories", "name", file))
    pictures = {id: place(found) for id, found in _texts(data, "images", "file_name", file)}
    shown: dict[str, set[str]] = {name: set() for name in pictures.values()}
    for number, instance in enumerate(_items(data, "annotations", file)):
        image, category = instance if isinstance(instance, tuple) else (None, None)
        if not _is_id(image) or not _is_id(category) or category not in names:
            expected = "an object with `image_id` and `category_id`, one of the categories"
            raise _fault(file, f"annotations, item {number}", expected, instance)
        if image in pictures:
            shown[pictures[image]].add(names[category])
    return Objects(
        {name.casefold(): name for name in names.values()}, {name: frozenset(found) for name, found in shown.items()}
    )


def placing(annotations: Path, images: Path) -> Callable[[str], str]:
    """How a `file_name` becomes a name below the root: by the split in the annotations' own name, or by looking.

    `instances_train2017.json` tells of `train2017/`; else the folder below the root that holds the picture is found.
    """
    split = annotations.stem.removeprefix("instances_")
    if split != annotations.stem and (images / split).is_dir():
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


def _texts(data: Any, key: str, field: str, file: str) -> Iterator[tuple[Any, str]]:  # noqa: ANN401  (any JSON)
    """(id, text) of each item of a list."""
    for number, item in enumerate(_items(data, key, file)):
        if not isinstance(item, dict) or not _is_id(item.get("id")) or not _is_text(item.get(field)):
            raise _fault(file, f"{key}, item {number}", f"an object with `id` and `{field}`", item)
        yield item["id"], item[field]


def _items(data: Any, key: str, file: str) -> list[Any]:  # noqa: ANN401  (any JSON)
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, list):
        raise _fault(file, "", f"COCO's form: an object with a list `{key}`", type(value).__name__)
    return value


def _is_id(value: object) -> bool:
    return isinstance(value, int | str)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _fault(file: str, place: str, expected: str, found: object) -> SourceError:
    return SourceError(Fault("invalid-annotations", expected, ascii(found)[:200], file, place))


class Annotations:
    """What the annotations of a source say. Each reader object has one of these and reads a file once."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path | None, Path], Objects | None] = {}

    def read(self, sources: SourcePaths) -> Objects | None:
        """Read what the annotations say, where there are any."""
        path, images = sources.get("annotations"), sources["images"]
        data = load_json(path, "instance annotations of COCO", slim) if path else None
        found = objects_of(data, path.name, placing(path, images)) if path else None
        self._read[path, images] = found
        return found

    def of(self, sources: SourcePaths) -> Objects | None:
        """Return what the annotations say, as it was read the last time."""
        key = sources.get("annotations"), sources["images"]
        return self._read[key] if key in self._read else self.read(sources)
