"""The table of assets of a release, and a look for what a takedown has taken out: by bytes, a perceptual hash, text."""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import imagehash
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import mmlongbench as mm

ASSETS = "items/assets.parquet"
Row = dict[str, Any]


def assets(release: Path, dataset: str = "", kind: str = "") -> list[Row]:
    """The rows of the table of assets, of one dataset or kind."""
    rows: list[Row] = pq.read_table(release / ASSETS).to_pylist()
    return [row for row in rows if dataset in ("", row["dataset"]) and kind in ("", row["kind"])]


def change_assets(release: Path, change: Callable[[list[Row]], list[Row]]) -> None:
    """Write other rows into the table, and its new hash into the lock, so that only its content is wrong."""
    schema = pq.read_schema(release / ASSETS)
    rows = change(assets(release))
    (release / ASSETS).unlink()
    pq.write_table(pa.Table.from_pylist(rows, schema), release / ASSETS)
    lock = json.loads((release / "build.lock.json").read_text("utf-8"))
    lock["files"][ASSETS] = {"bytes": (release / ASSETS).stat().st_size, "sha256": sha256(release / ASSETS)}
    (release / "build.lock.json").write_text(json.dumps(lock), "utf-8")


def asked_for(release: Path, kind: str, id: str) -> list[Row]:
    """The images and texts that a takedown of a document, an image or a source names."""
    shown = [row for row in assets(release) if row["kind"] != "source"]
    if kind == "source":
        return [row for row in shown if id in (row["source"], f"{row['dataset']}/{row['source']}")]
    return [row for row in shown if row["document" if kind == "document" else "name"] == id]


def remains(release: Path, out: Path, said: Row, gone: list[Row]) -> list[str]:
    """What is left of assets in a release that a takedown wrote, and what has changed that should be the same."""
    digests = {bytes(row["sha256"]) for row in gone}
    found = [f"a row: {row['name']}" for row in assets(out) if row["kind"] != "source" and row["sha256"] in digests]
    looks = {_look(release / "mmlb_image" / row["name"]) for row in gone if row["kind"] == "image"}
    for path in sorted(p for p in (out / "mmlb_image").rglob("*") if p.is_file()):
        name = path.relative_to(out / "mmlb_image").as_posix()
        if bytes.fromhex(sha256(path)) in digests:
            found.append(f"the bytes: {name}")
        elif said["near"] is not None and name not in said["near"] and _look(path) in looks:
            found.append(f"the look: {name}")
    texts = [json.dumps(text, ensure_ascii=False)[1:-1] for text in _texts(release, digests) if len(text) > 40]
    for path in sorted((out / "mmlb_data").rglob("*.json*")):
        content = path.read_text("utf-8")
        found += [f"{path.name}: {text[:60]}" for text in texts if text in content]
    return [*found, *_changed(release, out, said["tombstone"]["examples"])]


def _texts(release: Path, digests: set[bytes]) -> set[str]:
    """The texts with one of the hashes, as the prompts of a release show them."""
    opened, found = mm.open_release(release), set[str]()
    for dataset in opened.datasets:
        for length in opened.lengths(dataset):
            for example in opened.examples(dataset, length):
                units = example.prompt.outline.units if example.prompt.outline else ()
                parts = {part.strip() for unit in units for part in unit if isinstance(part, str)}
                found |= {part for part in parts if hashlib.sha256(part.encode()).digest() in digests}
    return found


def _changed(release: Path, out: Path, dropped: dict[str, int]) -> Iterator[str]:
    """Lines that are not as before, lines that are lost without being counted, and files that should be the same."""
    before, after = (json.loads((folder / "build.lock.json").read_text("utf-8"))["files"] for folder in (release, out))
    for path, file in after.items():
        if sha256(out / path) != file["sha256"]:
            yield f"{path}: not as in the lock"
        stem = Path(path).with_suffix("").as_posix().split("/", 1)[-1]
        may_differ = path in (ASSETS, "rejects.jsonl") or any(stem in name for name in dropped)
        if path.startswith("mmlb_data/") and path.endswith(".jsonl"):
            old, new = ((folder / path).read_bytes().splitlines() for folder in (release, out))
            if [line for line in old if line in set(new)] != new:
                yield f"{path}: lines differ"
            if len(old) - len(new) != dropped.get(path, 0):
                yield f"{path}: {len(old)} lines, then {len(new)}"
        elif before.get(path) != file and not may_differ:
            yield f"{path}: another file"


@cache
def _look(path: Path) -> str:
    """A perceptual hash of 256 bits with the mean colour, because plain pictures have one hash."""
    with Image.open(path) as picture:
        small = picture.convert("RGB")
        colour = small.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))
        return f"{imagehash.phash(small, hash_size=16)} {colour}"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
