"""Finds scores that stand side by side but are not of the same example, by the digests of the examples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

_KEY = ["file", "question", "placement"]
"""The columns that name an example."""
_SHOWN = 12
"""How many digits of a digest are shown."""


@dataclass(frozen=True, slots=True)
class Differing:
    """The examples that have one name, but are not the same in all scores."""

    examples: int = 0
    """How many examples differ."""
    of: int = 0
    """How many examples have a digest."""
    files: Mapping[str, int] = field(default_factory=dict)
    """How many examples differ, by public file."""
    first: str = ""
    """The first of them, with the digest that it has for each model."""
    stale: Mapping[str, int] = field(default_factory=dict)
    """How many scores are of predictions that were made for other examples (`--allow-stale`), by model."""
    without: Mapping[str, int] = field(default_factory=dict)
    """How many scores have no digest although others of the same files have one, by model."""

    def summary(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return asdict(self)

    def warnings(self) -> Iterator[str]:
        """Yield sentences that must stand above the scores."""
        if self.examples:
            files = ", ".join(f"{name} {count:,}" for name, count in self.files.items())
            yield (
                f"{self.examples:,} of {self.of:,} examples are not the same in all scores ({files}), so scores side "
                f"by side are not of the same examples; first {self.first}"
            )
        if self.stale:
            said = ", ".join(f"{model} {count:,}" for model, count in self.stale.items())
            yield f"scores of predictions that were made for other examples (--allow-stale): {said}"

    def notes(self) -> Iterator[str]:
        """Yield a sentence about scores without digests, if others have digests."""
        if self.without:
            said = ", ".join(f"{model} {count:,}" for model, count in self.without.items())
            yield f"scores without digests, which may be of other examples than the scores beside them: {said}"


def differing(lines: pd.DataFrame) -> Differing:
    """Return the examples that are not the same in all lines of their name. Lines without a digest are not compared."""
    codes = lines["digest"].cat.codes.where(lines["digest"] != "")
    if codes.isna().all():
        return Differing()
    keys = [lines[name] for name in _KEY]
    is_different = codes.groupby(keys, observed=True).transform("nunique") > 1
    files = lines["file"]
    has_digest = codes.notna().groupby(files, observed=True).transform("any")
    without = lines[codes.isna() & has_digest]
    some = lines[is_different & codes.notna()]
    return Differing(
        examples=_count(some),
        of=_count(lines[codes.notna()]),
        files={file.name: _count(some.iloc[at]) for file, at in _by(some, "file")},
        first=_first(some),
        stale={model: len(at) for model, at in _by(lines[lines["is_stale"]], "model")},
        without={model: len(at) for model, at in _by(without, "model")},
    )


def _count(lines: pd.DataFrame) -> int:
    return len(lines.drop_duplicates(_KEY))


def _by(lines: pd.DataFrame, name: str) -> Sequence[tuple[Any, Any]]:
    return list(lines.groupby(name, observed=True).indices.items())


def _first(lines: pd.DataFrame) -> str:
    """Return the name of the first example, with the digest that it has for each model."""
    if lines.empty:
        return ""
    first = lines.sort_values(_KEY, kind="stable").iloc[0]
    same = lines[(lines[_KEY] == first[_KEY]).all(axis=1)]
    models = {digest: ", ".join(dict.fromkeys(same["model"].iloc[at])) for digest, at in _by(same, "digest")}
    said = "; ".join(f"{digest[:_SHOWN]}… for {names}" for digest, names in models.items())
    return f"{first['file'].name}: {first['question'].id}{first['placement']} ({said})"
