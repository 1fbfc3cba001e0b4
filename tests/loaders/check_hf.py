"""Reads an export to `hf` back with `datasets`: `python check_hf.py RELEASE OUT [TASK …]`.

Each configuration is loaded; speakers, texts, images (pixels), their order and the answers are compared with the
release.
"""

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": tempfile.mkdtemp()}
    from datasets import get_dataset_config_names, load_dataset
    from loader_check import Truth, pixels_of, turns_of

    started, truth, pixels = time.monotonic(), Truth(release), pixels_of(release)
    for name in get_dataset_config_names(str(out)):
        for split, rows in load_dataset(str(out), name).items():
            for row in rows:
                example = truth.of({key: value for key, value in row.items() if value is not None})
                where = f"{name}, {split}, {row['id']}"
                turns = [(turn["role"], shown(turn, row)) for turn in json.loads(row["parts"])]
                truth.same("turns equal", where, turns, turns_of(example, pixels))
                truth.same("answers equal", where, json.loads(row["answer"]), example.answer)
                truth.same("digests equal", where, row["digest"], example.digest)
                truth.counts["turns"] += len(turns)
                truth.counts["images"] += len(row["images"])
                used = sum(not isinstance(part, str) for turn in json.loads(row["parts"]) for part in turn["content"])
                truth.same("lists of images without a spare one", where, used, len(row["images"]))
    truth.end(f"datasets {version('datasets')}", out, time.monotonic() - started)


def shown(turn: dict[str, Any], row: dict[str, Any]) -> list[str]:
    from loader_check import digest_of

    return [
        part if isinstance(part, str) else digest_of(row["images"][part["image"]].convert("RGB"))
        for part in turn["content"]
    ]


if __name__ == "__main__":
    main()
