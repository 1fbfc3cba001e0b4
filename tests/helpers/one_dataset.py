"""Releases of one dataset, built in this process from a manifest that a test says in Python."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hub_forms import json_lines_of
from tiny import Ran, command


def write_lines(path: Path, rows: list[Any]) -> Path:
    """Write JSON Lines; bytes and texts are lines as they are."""
    lines = [
        row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row)).encode() for row in rows
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


@dataclass(frozen=True)
class OneDataset:
    """A release of one dataset."""

    folder: Path
    name: str
    out: str
    """What the command printed."""

    @property
    def lock(self) -> dict[str, Any]:
        """What the lock says of the dataset."""
        found: dict[str, Any] = json.loads((self.folder / "build.lock.json").read_bytes())["datasets"][self.name]
        return found

    @property
    def questions(self) -> dict[str, Any]:
        """How many questions were read, kept, rejected and so on."""
        found: dict[str, Any] = self.lock["questions"]
        return found

    def records(self, length: int = 8) -> list[dict[str, Any]]:
        """The lines of the public file of a length, in thousands of tokens."""
        found = [*self.folder.glob(f"mmlb_data/*/{self.name}*_K{length}.*jsonl")]
        found += self.folder.glob(f"mmlb_data/*/{self.name}*_K{length}_*.jsonl")
        (path,) = found
        return json_lines_of(path)

    def rejects(self) -> list[dict[str, Any]]:
        return json_lines_of(self.folder / "rejects.jsonl")

    def images(self) -> dict[str, bytes]:
        """The bytes of each released image, by its path below `mmlb_image/`."""
        root = self.folder / "mmlb_image"
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def manifest(path: Path, *datasets: Mapping[str, Any]) -> Path:
    """Write a manifest; a source named `corpus` is the corpus of the dataset."""
    written = []
    for dataset in datasets:
        source = {name: str(place) for name, place in dict(dataset["source"]).items()}
        corpus = {"corpus": source.pop("corpus")} if "corpus" in source else {}
        written.append({"lengths": ["8K"], **dataset, **corpus, "source": source})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"datasets": written}, sort_keys=False), "utf-8")
    return path


def ran(out: Path, dataset: Mapping[str, Any], *args: object) -> Ran:
    """Build a dataset into a folder, beside which its manifest is written."""
    return command("build", manifest(out.with_name(f"{out.name}.yaml"), dataset), "--out", out, *args)


def built(out: Path, dataset: Mapping[str, Any], *args: object) -> OneDataset:
    done = ran(out, dataset, *args)
    assert done.code == 0, done.err
    return OneDataset(out, dataset["name"], done.out)
