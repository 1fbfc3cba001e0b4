"""The samples of the built-in readers: small sources, each in the exact form of its dataset's own download.

A family has an archive, with a folder for each reader; `samples.toml` lists them. `python -m tests.drawing` draws them
in a checkout.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import mmlongbench.task as mt

_HERE = Path(__file__).parent


class _MMNIAH(mt.readers.SampleFiles):
    """The sample of MM-NIAH. Where a dataset asks for counts or pictures, it is the annotation file of MM-NIAH for this
    task, in a small version of MM-NIAH's download.
    """

    def __call__(self, folder: Path, options: Mapping[str, object] | None = None) -> dict[str, Path]:
        """Unpack the sample for the options of a dataset."""
        chosen = {"task": "retrieval", "needle": "text", **(options or {})}
        if chosen["task"] != "counting" and chosen["needle"] != "image":
            return super().__call__(folder)
        questions = f"mm_niah_val/annotations/{chosen['task']}-{chosen['needle']}.jsonl"
        sources = {"questions": questions, "images": ".", "obelics": "obelics.jsonl"}
        return mt.readers.SampleFiles(self.about, self.archive, "mm_niah_download", sources)(folder)

    def __str__(self) -> str:
        """Return the place of the sample."""
        return f"{super().__str__()} (mm_niah_download/ for counts and pictures)"


def __getattr__(name: str) -> mt.readers.SampleFiles:
    """Return the sample of a reader, which entry points look up as a variable of this module."""
    samples = tomllib.loads((_HERE / "samples.toml").read_text("utf-8"))
    if name not in samples:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    sample, kind = samples[name], _MMNIAH if name == "mm_niah" else mt.readers.SampleFiles
    return kind(sample["about"], _HERE / f"{sample['family']}.tar.xz", name, sample["sources"])
