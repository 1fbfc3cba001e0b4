"""A copy of a built release in which something is planted: its records, units and image files can be changed."""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image as Pillow

from mmlongbench.release.items import items_path
from mmlongbench.release.layout import DATA, IMAGES
from mmlongbench.release.release import open_release
from mmlongbench.shortcuts.measured import uniforms
from mmlongbench.shortcuts.reading import asked_questions

LISTS = ("page_list", "page_text_list", "ctxs")
"""The fields of a record that list its units."""


@dataclass(frozen=True, slots=True)
class Base:
    """A dataset of a built release, in which nothing is planted yet."""

    release: Path
    dataset: str
    file: str
    """Its public file of the longest length, below `mmlb_data/`."""
    golds: Mapping[str, tuple[str, ...]]
    """The first images, or else the texts, of the gold units of each question, at the placement that is audited."""

    @classmethod
    def of(cls, release: Path, dataset: str) -> "Base":
        """Read a dataset of a release."""
        found = {
            asked.id: (asked.file, tuple(unit.image or unit.text for unit in asked.units if unit.is_gold))
            for asked in asked_questions(open_release(release), dataset)
        }
        file = next(file for file, _ in found.values())
        return cls(release, dataset, file, {id: golds for id, (_, golds) in found.items()})

    def copied(self, folder: Path, share: float) -> "Target":
        """Copy the release; files of images are shared until they are changed. Other lengths of the dataset are left
        out, so that they need not be changed.
        """
        shutil.copytree(self.release, folder, copy_function=os.link)
        path = folder / DATA / self.file
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return Target(self, folder, records, share)


@dataclass(slots=True)
class Target:
    """A copy of a release, and the records of the dataset that is changed."""

    base: Base
    root: Path
    records: list[dict[str, Any]]
    share: float
    """The share of the questions, or of their golds, that carry what is planted."""
    _items: dict[tuple[str, object], list[dict[str, Any]]] | None = field(default=None)
    _encoded: set[str] = field(default_factory=set)

    def is_chosen(self, id: str) -> bool:
        """Return whether a question carries what is planted; a larger share has all questions of a smaller one."""
        return bool(uniforms(1, "planted", id)[0] < self.share)

    def chosen(self) -> list[dict[str, Any]]:
        """Return the records that carry what is planted, in all their placements."""
        return [record for record in self.records if self.is_chosen(str(record["id"]))]

    def gold_places(self, record: Mapping[str, Any]) -> list[int]:
        """Return the places of the golds of a record among its units."""
        units = self.units(record)
        if "needles" in record:
            return [at for at, unit in enumerate(units) if unit in record["needles"]]
        if "entity_id" in record:
            ids = {each["doc_id"] for each in record["positive_ctxs"]}
            return [at for at, unit in enumerate(units) if unit["doc_id"] in ids]
        golds = self.base.golds[str(record["id"])]
        shown = record.get("page_text_list", units)
        return [at for at, unit in enumerate(shown) if any(str(unit).strip() in gold for gold in golds if unit)]

    @staticmethod
    def units(record: Mapping[str, Any]) -> list[Any]:
        """Return the units of a record: paths of pages or photographs, or passages."""
        found: list[Any] = record.get("page_list") or record["ctxs"]
        return found

    def encode_golds(self, change: Callable[[Pillow.Image], Pillow.Image] | None = None, **options: object) -> None:
        """Write the gold images of the chosen questions again, each once: changed, and with options of Pillow."""
        for record in self.chosen():
            for place in self.gold_places(record):
                self.encode(self.units(record)[place], change, **options)

    def encode(
        self, name: str, change: Callable[[Pillow.Image], Pillow.Image] | None = None, **options: object
    ) -> None:
        """Write an image of the release again, once."""
        path = self.root / IMAGES / name
        if name in self._encoded:
            return
        self._encoded.add(name)
        data: Pillow.Image = Pillow.open(path)
        data.load()
        kind = str(options.pop("format", None) or data.format)
        kept: dict[str, Any] = {"dpi": data.info["dpi"]} if "dpi" in data.info else {}
        if kind == "JPEG" and data.format == "JPEG":
            kept["quality"] = 90 if change else "keep"
        path.unlink()  # a hard link: the release that was copied keeps its file
        with path.open("wb") as file:
            (change(data) if change else data).save(file, kind, **{**kept, **options})

    def append_to_golds(self, extra: Callable[[int], bytes]) -> None:
        """Append bytes to the gold images of the chosen questions; `extra` takes the size of a file."""
        for record in self.chosen():
            for place in self.gold_places(record):
                name = self.units(record)[place]
                path = self.root / IMAGES / name
                if name not in self._encoded:
                    self._encoded.add(name)
                    data = path.read_bytes()
                    path.unlink()
                    path.write_bytes(data + extra(len(data)))

    def edit_gold_texts(self, edit: Callable[[str], str]) -> None:
        """Change the gold texts of the chosen questions."""
        for record in self.chosen():
            for place in self.gold_places(record):
                if "page_text_list" in record:
                    record["page_text_list"][place] = edit(record["page_text_list"][place])
                else:
                    record["ctxs"][place]["text"] = edit(record["ctxs"][place]["text"])

    def own_places(self, record: Mapping[str, Any]) -> list[int]:
        """Return the places of the units with the role `own`."""
        return [at for at, item in enumerate(self._items_of(record)) if item["role"] == "own"]

    def rearrange(self, record: dict[str, Any], order: Sequence[int]) -> None:
        """Show the units at these places, in this order; the items follow."""
        items = self._items_of(record)
        for name in LISTS:
            if name in record:
                record[name] = [record[name][at] for at in order]
        items[:] = [{**items[at], "position": number} for number, at in enumerate(order)]

    def rename(self, record: dict[str, Any], place: int, name: str) -> None:
        """Show the photograph at a place under another name."""
        old, images = record["ctxs"][place], self.root / IMAGES
        (images / name).parent.mkdir(parents=True, exist_ok=True)
        if not (images / name).exists():
            (images / name).hardlink_to(images / old)
        record["needles"] = [name if each == old else each for each in record["needles"]]
        record["ctxs"][place] = name
        self._items_of(record)[place]["image"] = name

    def again(self, name: str, folder: Path | None = None) -> str:
        """Write an image a second time, with another encoding; return the name of the copy below `mmlb_image/`."""
        copy = f"{name.rpartition('/')[0]}/again-{Path(name).stem}.jpg"
        path = folder / Path(copy).name if folder else self.root / IMAGES / copy
        with Pillow.open(self.root / IMAGES / name) as picture:
            picture.convert("RGB").save(path, quality=80)
        return copy

    @property
    def elsewhere(self) -> Path:
        """A folder with which the release is compared."""
        folder = self.root.parent / f"{self.root.name}-elsewhere"
        folder.mkdir(exist_ok=True)
        return folder

    def _items_of(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self._items is None:
            self._items = {}
            for row in pq.read_table(self._items_path).to_pylist():
                self._items.setdefault((row["id"], row["placement"]), []).append(row)
        placement = record.get("depth", record.get("permutation"))
        return self._items[str(record["id"]), None if placement is None else float(placement)]

    @property
    def _items_path(self) -> Path:
        return items_path(self.root, self.base.file)

    def save(self) -> Path:
        """Write records and items, and return the folder of the release."""
        path = self.root / DATA / self.base.file
        path.unlink()
        path.write_text("".join(f"{json.dumps(record)}\n" for record in self.records), "utf-8")
        if self._items is not None:
            schema = pq.read_schema(self._items_path)
            self._items_path.unlink()
            rows = [row for rows in self._items.values() for row in rows]
            pq.write_table(pa.Table.from_pylist(rows, schema), self._items_path)
        return self.root
