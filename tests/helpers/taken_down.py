"""Looks for what a takedown has taken out of a release: by bytes, by a perceptual hash, by text."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import imagehash
from PIL import Image

from mmlongbench.draws import Draws
from mmlongbench.publishing.takedown import TakenDown
from mmlongbench.publishing.withdrawn import Kind, Withdrawal, Withdrawn, find_withdrawn
from mmlongbench.release.assets import read_assets
from mmlongbench.release.loading import load_release
from mmlongbench.release.lock import read_lock

PUBLIC = "mmlb_data"


@dataclass(slots=True)
class Remains:
    """What is left of an asset in a release; all lists are empty if nothing is."""

    by_bytes: list[str] = field(default_factory=list)
    by_hash: list[str] = field(default_factory=list)
    """Images with the same perceptual hash that the takedown has not named."""
    by_text: list[str] = field(default_factory=list)
    by_name: list[str] = field(default_factory=list)
    """Images and units that still have a row in the table of assets."""
    changed: list[str] = field(default_factory=list)
    """Lines and files that should be the same, and are not."""


def drawn_withdrawals(release: Path, counts: dict[Kind, int]) -> Iterator[Withdrawal]:
    """Assets of a release, drawn by hash."""
    assets = [asset for asset in read_assets(release) if asset.kind != "source"]
    ids: dict[Kind, set[str]] = {
        "document": {asset.document for asset in assets if asset.document},
        "image": {asset.name for asset in assets if asset.kind == "image"},
        "source": {f"{asset.dataset}/{asset.source}" for asset in assets if asset.source},
    }
    for kind, count in counts.items():
        order = Draws(("takedown",)).order(kind, sorted(ids[kind]))
        yield from (Withdrawal(kind, id) for id in list(order)[:count])


def remains(release: Path, asked: Withdrawal, made: TakenDown) -> Remains:
    """Look for what was asked to be taken out of the release."""
    gone, found = find_withdrawn(release, asked), Remains()
    _look_for_images(release, gone, made, found)
    _look_for_texts(release, gone, made, found)
    for asset in read_assets(made.out):
        if asset.name in gone.images or (asset.dataset, asset.name) in gone.texts:
            found.by_name.append(asset.name)
    found.changed += _changed(release, made)
    return found


def _look_for_images(release: Path, gone: Withdrawn, made: TakenDown, found: Remains) -> None:
    removed = [release / "mmlb_image" / path for path in gone.images]
    hashes = {_sha256(path) for path in removed}
    looks = {_look(path) for path in removed}
    for path in sorted(p for p in (made.out / "mmlb_image").rglob("*") if p.is_file()):
        name = path.relative_to(made.out / "mmlb_image").as_posix()
        if _sha256(path) in hashes:
            found.by_bytes.append(name)
        elif name not in (made.near or ()) and made.near is not None and _look(path) in looks:
            found.by_hash.append(name)


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _look(path: Path) -> str:
    """A perceptual hash of 256 bits with the mean colour, because plain pictures have one hash."""
    with Image.open(path) as picture:
        small = picture.convert("RGB")
        colour = small.resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))
        return f"{imagehash.phash(small, hash_size=16)} {colour}"


def texts_of(release: Path, wanted: set[tuple[str, str]]) -> set[str]:
    """The texts of units, as the prompts of a release show them."""
    from mmlongbench.publishing.dropping import examples_of

    opened, found = load_release(release), set[str]()
    for file in opened.files:
        if file.dataset and not file.is_bundle and any(name == file.dataset.builder.dataset for name, _ in wanted):
            for record, items in examples_of(opened, file, file.dataset):
                outline = file.dataset.prompt(record).outline
                for item, parts in zip(items, outline.units if outline else (), strict=True):
                    if (file.dataset.builder.dataset, item["unit"]) in wanted and item["image"] is None:
                        found |= {part.strip() for part in parts[1:2] if isinstance(part, str)}
    return found


def _look_for_texts(release: Path, gone: Withdrawn, made: TakenDown, found: Remains) -> None:
    texts = [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts_of(release, gone.texts) if len(text) > 40]
    for path in sorted((made.out / PUBLIC).rglob("*.json*")) if texts else ():
        content = path.read_text("utf-8")
        found.by_text += [f"{path.name}: {text[:60]}" for text in texts if text in content]


def _changed(release: Path, made: TakenDown) -> Iterator[str]:
    """Lines that are not as before, lines that are lost without being counted, and files that should be the same."""
    before, after = read_lock(release).files, read_lock(made.out).files
    for path, file in after.items():
        if _sha256_anew(made.out / path) != file.sha256:
            yield f"{path}: not as in the lock"
        is_rewritten = path == "items/assets.parquet" or path == "rejects.jsonl"
        if path.startswith(f"{PUBLIC}/") and path.endswith(".jsonl"):
            old, new = ((folder / path).read_bytes().splitlines() for folder in (release, made.out))
            if [line for line in old if line in set(new)] != new:
                yield f"{path}: lines differ"
            if len(old) - len(new) != made.tombstone.examples.get(path, 0):
                yield f"{path}: {len(old)} lines, then {len(new)}"
        elif before.get(path) != file and not is_rewritten and not _loses(path, made):
            yield f"{path}: another file"


def _loses(path: str, made: TakenDown) -> bool:
    """Whether the items, or the second file, of a public file that lost examples."""
    stem = Path(path).with_suffix("").as_posix().split("/", 1)[-1]
    return any(stem in name for name in made.tombstone.examples)


def _sha256_anew(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
