"""Many-shot ICL at every length: images an example, fill, exemplars a class, what the costliest test image costs, time.

Sources in the shapes of the raw ones: Parquet with a hub's metadata (Food101, Cars, SUN397), iNaturalist's annotations
with supercategories; photographs are clouds of Food101's sizes (60 % 512 × 512, the rest 512 × 384 and 384 × 512). So
the images an example are a check of the arithmetic, not a reproduction.
"""

import io
import json
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import mmlongbench.task as mt
from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.release.layout import DATA, IMAGES

DRAWS = mt.Draws(("many-shot",))
TABLES = {"food101": 101, "cars196": 196, "sun397": 397}
"""Classes."""
SIZES = ((512, 512), (512, 512), (512, 512), (512, 384), (384, 512))
LENGTHS = "8K,16K,32K,64K,128K"


def photograph(name: str) -> bytes:
    """A picture of clouds, JPEG; the 60 % that are square are drawn by name."""
    at = DRAWS.integer(f"size {name}", 0, 9)
    size = (512, 512) if at < 6 else (512, 384) if at < 8 else (384, 512)
    clouds = b"".join(mt.Draws(("clouds", name)).integer(f"{n}", 0, (1 << 64) - 1).to_bytes(8) for n in range(24))
    picture = Image.frombytes("RGB", (8, 8), clouds).resize(size, Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=60)
    return buffer.getvalue()


def draw_table(folder: Path, classes: int, train: int, tests: int) -> dict[str, str]:
    """`data/train-….parquet` and `data/validation-….parquet` of so many pictures a class."""
    names = [f"class {number:03}" for number in range(classes)]
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    kinds = [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())]
    schema = pa.schema(kinds, metadata={"huggingface": json.dumps({"info": {"features": features}})})
    folder.mkdir(parents=True)
    for split, count in (("train", train), ("validation", tests)):
        with pq.ParquetWriter(folder / f"{split}-00000-of-00001.parquet", schema) as writer:
            for number in range(classes):
                rows = [
                    {"image": {"bytes": photograph(f"{folder.name} {split} {number} {n}"), "path": None}}
                    for n in range(count)
                ]
                batch = pa.Table.from_pylist([{**row, "label": number} for row in rows], schema)
                writer.write_table(batch)
    return {"data": str(folder)}


def draw_species(folder: Path, species: int, train: int, tests: int) -> dict[str, str]:
    """Annotations with supercategories, a third of them neither birds nor plants; and their pictures."""
    kinds = ("Birds", "Plants", "Fungi")
    categories = [{"id": n, "name": f"species {n}", "supercategory": kinds[n % 3]} for n in range(species)]
    for split, count in (("train_mini", train), ("val", tests)):
        images: list[dict[str, object]] = []
        for category in range(species):
            (folder / split / f"{category:05}").mkdir(parents=True)
            for number in range(count):
                name = f"{split}/{category:05}/{number}.jpg"
                if category % 3 < 2:  # the others are never opened
                    (folder / name).write_bytes(photograph(name))
                images.append({"id": len(images), "file_name": name})
        annotations = [{"id": n, "image_id": n, "category_id": n // count} for n in range(len(images))]
        data = {"images": images, "annotations": annotations, "categories": categories}
        (folder / f"{split}.json").write_text(json.dumps(data))
    return {"images": str(folder), "train": str(folder / "train_mini.json"), "test": str(folder / "val.json")}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(path_type=Path), help="Keep the release there.")
@click.option("--tests", default=100, show_default=True, help="Test images of each dataset.")
@click.option("--lengths", default=LENGTHS, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--only", default="", help="Datasets whose names begin so.")
def main(out: Path | None, tests: int, lengths: str, workers: int, only: str) -> None:
    """Build the four datasets and print what they hold."""
    with tempfile.TemporaryDirectory() as folder:
        drawn, asked = Path(folder), 2 + tests // 50
        datasets = []
        for name, classes in TABLES.items():
            if name.startswith(only):
                train = 58 if name == "food101" else 20
                source = draw_table(drawn / name, classes, train, asked)
                datasets.append({"name": name, "reader": "image_tables", "source": source})
        if "inat2021".startswith(only):
            source = draw_species(drawn / "inat", 180, 20, asked)
            options = {"domains": ["Birds", "Plants"]}
            datasets.append({"name": "inat2021", "reader": "inaturalist", "source": source, "options": options})
        shared = {"builder": "many_shot", "lengths": lengths.split(","), "sample": {"n": tests, "stratify": "kind"}}
        release = out or drawn / "release"
        for dataset in datasets:
            started = time.perf_counter()
            manifest = Manifest.model_validate({"datasets": [{**shared, **dataset}]})
            into = release if len(datasets) == 1 else release / str(dataset["name"])
            lock = build(manifest, into, LocalExecutor(workers, Progress(is_shown=False))).lock.public()
            click.echo(f"{dataset['name']}: built in {time.perf_counter() - started:.1f} s")
            click.echo(f"  {lock['datasets'][dataset['name']]['questions']}")
            for path in sorted((into / DATA).rglob("*.frozen.jsonl"), key=lambda path: path.stat().st_size):
                _show(path)
            written = [path for path in (into / IMAGES).rglob("*") if path.is_file()]
            click.echo(f"  image files written: {len(written)}, different names: {len({p.name for p in written})}")


def _show(path: Path) -> None:
    """One line a file."""
    length = int(path.name.split("_K")[1].split(".")[0]) * 1024
    fills, images, spread, spare = [], [], [], []
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    costliest = {r["domain"]: max(s["image_tokens"] for s in records if s["domain"] == r["domain"]) for r in records}
    for record in records:
        fills.append((record["length"] + record["tokens"]["reserve"]) / length)
        images.append(len(record["exemplars"]) + 1)
        times = Counter(shown["id"] for shown in record["exemplars"])
        spread.append(max(times.values()) - min(times.values()))
        spare.append(costliest[record["domain"]] - record["image_tokens"])
    click.echo(
        f"  {path.name:<28} n={len(fills):<4} images {statistics.mean(images):.1f} fill {statistics.mean(fills):.4f} "
        f"[{min(fills):.4f}, {max(fills):.4f}], the costliest test image costs {statistics.mean(spare):.0f} tokens, "
        f"exemplars a class differ by at most {max(spread)}"
    )


if __name__ == "__main__":
    main()
