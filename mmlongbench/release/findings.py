"""What an audit found: numbers of each file as they are counted, and problems by kind."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Spread:
    """Mean, standard deviation, least and most of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, value: float) -> None:
        """Take one number in."""
        self.n += 1
        self.total += value
        self.squares += value * value
        self.least, self.most = min(self.least, value), max(self.most, value)

    @property
    def mean(self) -> float:
        """The mean; 0 of nothing."""
        return self.total / self.n if self.n else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the population."""
        return math.sqrt(max(0.0, self.squares / self.n - self.mean**2)) if self.n else 0.0

    def summary(self) -> dict[str, float]:
        """For a report."""
        if not self.n:
            return {"mean": 0.0, "sd": 0.0, "min": 0.0, "max": 0.0}
        return {"mean": self.mean, "sd": self.deviation, "min": self.least, "max": self.most}


@dataclass(slots=True)
class FileAudit:
    """What was counted in one file."""

    file: str
    length: int
    examples: int = 0
    fill: Spread = field(default_factory=Spread)
    text: Spread = field(default_factory=Spread)
    image: Spread = field(default_factory=Spread)
    images: Spread = field(default_factory=Spread)
    problems: Counter[str] = field(default_factory=Counter)
    """How often each kind of problem was found."""
    first: dict[str, str] = field(default_factory=dict)
    """Where each kind was found first, in words."""

    def problem(self, kind: str, where: str) -> None:
        """Note a problem."""
        self.problems[kind] += 1
        self.first.setdefault(kind, where)

    def summary(self) -> dict[str, Any]:
        """One JSON object."""
        spreads = {name: getattr(self, name).summary() for name in ("fill", "text", "image", "images")}
        problems = [{"problem": kind, "count": n, "first": self.first[kind]} for kind, n in self.problems.items()]
        return {
            "file": self.file,
            "length": self.length,
            "examples": self.examples,
            **spreads,
            "problems": problems,
        }
