"""The drawn shapes in the raw formats of the three readers: folders, Parquet with the metadata of a hub dataset, and
COCO's form.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.drawing.many_shot.shapes import CLASSES, Shape, draw_shape

TRAIN, TESTS = 9, 2
"""The number of pictures of a class in each split; a context of one domain at 32K shows each class up to seven
times."""


def draw_folders(folder: Path) -> dict[str, Path]:
    """Draw shapes in a folder for each class: `train/<class>/<n>.jpg`, `test/<class>/<n>.jpg`."""
    for split, shape, number, data in _pictures():
        path = folder / split / shape.name / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return {"train": folder / "train", "test": folder / "test"}


def draw_tables(folder: Path, train: int = TRAIN) -> dict[str, Path]:
    """Draw shapes in a Parquet file for each split, with class labels as `datasets` writes them.

    Each class has `train` pictures as exemplars.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [shape.name for shape in CLASSES]
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    metadata: dict[bytes | str, bytes | str] = {"huggingface": json.dumps({"info": {"features": features}})}
    kinds = [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())]
    schema = pa.schema(kinds, metadata=metadata)
    rows: dict[str, list[dict[str, object]]] = {"train": [], "test": []}
    for split, shape, number, data in _pictures(train):
        path = f"{split}-{number}.jpg"
        rows[split].append({"image": {"bytes": data, "path": path}, "label": CLASSES.index(shape)})
    root = folder / "data"
    root.mkdir(exist_ok=True)
    for split, name in (("train", "train"), ("test", "validation")):
        table = pa.Table.from_pylist(rows[split], schema)
        pq.write_table(table, root / f"{name}-00000-of-00001.parquet", row_group_size=100)
    return {"data": root}


def draw_inaturalist(folder: Path) -> dict[str, Path]:
    """Draw shapes of two domains in one folder, with annotations for each split: `train.json`, `test.json`."""
    parts: dict[str, dict[str, list[dict[str, object]]]] = {
        split: {"images": [], "annotations": [], "categories": _categories()} for split in ("train", "test")
    }
    for split, shape, number, data in _pictures():
        about, category = parts[split], CLASSES.index(shape)
        id = len(about["images"])
        name = f"{split}/{category:05}_{shape.name.replace(' ', '_')}/{number}.jpg"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        about["images"].append({"id": id, "file_name": name})
        about["annotations"].append({"id": id, "image_id": id, "category_id": category})
    for split, about in parts.items():
        (folder / f"{split}.json").write_text(json.dumps(about))
    return {"images": folder, "train": folder / "train.json", "test": folder / "test.json"}


def _categories() -> list[dict[str, object]]:
    return [
        {"id": number, "name": shape.name, "supercategory": ("Birds", "Plants")[number % 2]}
        for number, shape in enumerate(CLASSES)
    ]


def _pictures(train: int = TRAIN) -> Iterator[tuple[str, Shape, int, bytes]]:
    """Yield (split, class, number, JPEG) of each picture."""
    for split, count in (("train", train), ("test", TESTS)):
        for shape in CLASSES:
            for number in range(count):
                yield split, shape, number, draw_shape(shape, f"{split} {number}")
