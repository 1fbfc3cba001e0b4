"""CPU time of the records stage of two sample datasets, with and without the checks of every example.

Each round opens the dataset anew, so that texts are priced as in a build, and packs its questions at all lengths.

python benchmarks/checks.py [--lengths 8K,16K,32K,64K] [--rounds 5]
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from staged import chosen

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.example_checks import ExampleChecks
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import to_fields
from mmlongbench.building.stages import records
from mmlongbench.building.stages.records import finished_record, pack_rows
from mmlongbench.lengths import parse_length
from mmlongbench.manifest.loading import find_manifest, load_manifest
from mmlongbench.manifest.model import Manifest
from mmlongbench.packing.pack import PackedExample
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.rows import Row

NAMES = ("vh_single", "retrieval-text")
QUESTIONS = 12


def main() -> None:
    """Print the fewest seconds of all rounds for each dataset, without and with the checks, and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lengths", default="8K,16K,32K,64K")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    lengths = sorted(map(parse_length, given.lengths.split(",")), reverse=True)
    for spec in load_manifest(find_manifest("quickstart")).datasets:
        if spec.name in NAMES:
            with tempfile.TemporaryDirectory() as folder:
                _measure(Manifest(datasets=(spec,)), BuildDir(Path(folder) / "out"), lengths, given.rounds)


def _measure(manifest: Manifest, build_dir: BuildDir, lengths: list[int], rounds: int) -> None:
    chosen(manifest, build_dir.out).close()
    name = manifest.datasets[0].name

    def pack() -> float:
        with Session(build_dir.out) as session:
            dataset, rows = session.dataset(name), session.questions(name)[:QUESTIONS]
            begun = time.process_time()
            for length in lengths:
                for line, _ in pack_rows(dataset, rows, length):
                    to_json(to_fields(line))
            return time.process_time() - begun

    def unchecked(dataset: Dataset, example: PackedExample, row: Row) -> dict[str, Any]:
        return finished_record(dataset, example)

    without, checked = [], []
    for _ in range(rounds):
        with (
            mock.patch.object(records, "released_record", unchecked),
            mock.patch.object(ExampleChecks, "check_placements"),
        ):
            without.append(pack())
        checked.append(pack())
    one, other = min(without), min(checked)
    print(f"{name}: {one:.3f} s without, {other:.3f} s with: {other / one:.3f}")


if __name__ == "__main__":
    main()
