"""Sets of classified pictures, drawn small in the exact forms in which their authors and the hub publish them."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

from PIL import Image

import mmlongbench.task as mt

FOODS = ("apple_pie", "baby_back_ribs", "beignets")
SCENES = ("/a/abbey", "/a/airplane_cabin", "/a/apartment_building/outdoor")
CARS = ("AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Audi TTS Coupe 2012")
SPECIES = (
    ("Plantae_Tracheophyta_Magnoliopsida_Fagales_Betulaceae_Betula_pendula", "Plants"),
    ("Animalia_Chordata_Aves_Passeriformes_Paridae_Parus_major", "Birds"),
    ("Plantae_Tracheophyta_Pinopsida_Pinales_Pinaceae_Picea_abies", "Plants"),
)
COUNTS = {"train": 9, "test": 2}
"""The number of pictures of a class in each split."""
CORRUPTED = ("contrast", "gaussian_noise", "impulse_noise", "jpeg_compression", "motion_blur", "pixelate", "spatter")
"""The further splits of Stanford Cars on the hub."""


@cache
def drawn_picture(kind: int, name: str) -> bytes:
    """The bytes of a cloudy JPEG of 225 tokens; each class and name gives another one."""
    draws = mt.Draws(("class sets", kind, name))
    clouds = bytes(draws.integer(f"{at}", 90, 230) for at in range(192))
    buffer = BytesIO()
    Image.frombytes("RGB", (8, 8), clouds).resize((420, 420)).save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def pictures(split: str, classes: int = 3) -> Iterator[tuple[int, int, bytes]]:
    """Yield (class, number within the class, JPEG) of each picture of a split."""
    for kind in range(classes):
        for number in range(COUNTS[split]):
            yield kind, number, drawn_picture(kind, f"{split} {number}")


def saved(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


SHAPES = ("red triangle", "red square", "blue star")


def draw_folders(folder: Path) -> dict[str, Path]:
    """A folder for each class of each split."""
    for split in COUNTS:
        for kind, number, data in pictures(split):
            saved(folder / split / SHAPES[kind] / f"{number}.jpg", data)
    return {split: folder / split for split in COUNTS}


def draw_food101(folder: Path) -> Path:
    """`food-101.tar.gz`: `images/<class>/<number>.jpg`, and both kinds of lists in `meta/`."""
    for number, split in enumerate(COUNTS):
        listed: dict[str, list[str]] = {name: [] for name in FOODS}
        for kind, place, data in pictures(split):
            listed[FOODS[kind]].append(name := f"{FOODS[kind]}/{1000 * number + place}")
            saved(folder / "images" / f"{name}.jpg", data)
        saved(folder / "meta" / f"{split}.json", json.dumps(listed).encode())
        saved(folder / "meta" / f"{split}.txt", "\n".join(chain.from_iterable(listed.values())).encode() + b"\n")
    saved(folder / "meta/classes.txt", "\n".join(FOODS).encode() + b"\n")
    saved(folder / "meta/labels.txt", "\n".join(name.replace("_", " ").title() for name in FOODS).encode() + b"\n")
    return folder


def draw_sun397(folder: Path, lists: str = "", partitions: Sequence[str] = ("01",)) -> Path:
    """`SUN397.tar.gz`, with the lists of `Partitions.zip` in the folder `lists` below it."""
    for split, kind_of_list in (("train", "Training"), ("test", "Testing")):
        names = []
        for kind, number, data in pictures(split):
            names.append(name := f"{SCENES[kind]}/sun_{split}{number}.jpg")
            saved(folder / name[1:], data)
        for partition in partitions:
            saved(folder / lists / f"{kind_of_list}_{partition}.txt", "\n".join(names).encode() + b"\n")
    saved(folder / "ClassName.txt", "\n".join(SCENES).encode() + b"\n")
    return folder


def annotations(rows: Sequence[tuple[object, object]]) -> Any:
    """The array of structs of a file of annotations: the corners of a box, the class from 1, the name of the file."""
    import numpy as np

    fields = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")
    box = tuple(np.uint16(side) for side in (39, 116, 569, 375))
    return np.array([[(*box, kind, name) for name, kind in rows]], dtype=[(field, object) for field in fields])


def save_mat(path: Path, *, is_packed: bool = True, **variables: object) -> Path:
    import scipy.io

    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, variables, do_compression=is_packed)
    return path


def class_names(names: Sequence[object]) -> Any:
    import numpy as np

    found = np.empty((1, len(names)), object)
    found[0] = names
    return found


def draw_cars(folder: Path, devkit: str = "devkit") -> Path:
    """The folders `cars_train`, `cars_test` and `devkit`, with `cars_test_annos_withlabels.mat` beside them."""
    import numpy as np

    files = {"train": f"{devkit}/cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
    for split, file in files.items():
        rows = []
        for number, (kind, _, data) in enumerate(pictures(split), 1):
            rows.append((f"{number:05}.jpg", np.uint8(kind + 1)))
            saved(folder / f"cars_{split}" / f"{number:05}.jpg", data)
        save_mat(folder / file, annotations=annotations(rows))
    save_mat(folder / devkit / "cars_meta.mat", class_names=class_names(CARS))
    return folder


def draw_parquet(folder: Path, names: Sequence[str], files: dict[str, str], **columns: list[object]) -> Path:
    """Parquet as `datasets` writes it; `files` has the split of each file, and `columns` are added to each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(names)}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    for file, split in files.items():
        found = list(pictures(split))
        images = [{"bytes": data, "path": f"{number:05}.jpg"} for number, (_, _, data) in enumerate(found)]
        labels = pa.array([kind for kind, _, _ in found], pa.int64())
        table = pa.table(
            {"image": pa.array(images), "label": labels, **{n: c * len(found) for n, c in columns.items()}}
        )
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.replace_schema_metadata(metadata), folder / file)
    return folder


def draw_inat(folder: Path) -> dict[str, Path]:
    """`train_mini` and `val` with the annotations that `train_mini.json.tar.gz` and `val.json.tar.gz` unpack to."""
    categories = [
        {"id": id, "name": " ".join(name.split("_")[-2:]), "supercategory": group, "image_dir_name": f"{id:05}_{name}"}
        for id, (name, group) in enumerate(SPECIES)
    ]
    for split, name in (("train", "train_mini"), ("test", "val")):
        images, found = [], []
        for id, (kind, number, data) in enumerate(pictures(split)):
            file = f"{name}/{categories[kind]['image_dir_name']}/{split}-{number:04}.jpg"
            saved(folder / file, data)
            images.append({"id": id, "file_name": file, "width": 420, "height": 420, "latitude": None})
            found.append({"id": id, "image_id": id, "category_id": kind})
        about = {"info": {}, "images": images, "categories": categories, "annotations": found, "licenses": []}
        saved(folder / f"{name}.json", json.dumps(about).encode())
    return {"images": folder, "train": folder / "train_mini.json", "test": folder / "val.json"}
