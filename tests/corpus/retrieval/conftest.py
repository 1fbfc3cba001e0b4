"""Corpora in memory."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from mmlongbench.corpus.retrieval.passages import Passage, Passages
from mmlongbench.draws import Draws

WORDS = 3000
"""Different words of a drawn corpus."""


@dataclass(frozen=True, slots=True)
class Text:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Texts:
    rows: tuple[Text, ...]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self.rows).encode()).hexdigest()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.rows)

    def passage(self, number: int, /) -> Passage:
        return self.rows[number]


def zipf(draws: Draws, count: int) -> str:
    """Words of which the n-th commonest has a chance of about 1 / n."""
    ranks = (int(WORDS ** draws.fraction(f"word {at}")) for at in range(count))
    return " ".join(f"word{rank}" for rank in ranks)


@pytest.fixture(scope="session")
def passage() -> Callable[..., Passage]:
    """A passage of an id, a text and perhaps a title."""
    return lambda id, text, title="": Text(id, title, text)


@pytest.fixture(scope="session")
def corpus_of() -> Callable[..., Passages]:
    """A corpus of texts, perhaps under one title, whose ids are not in the order of the texts."""
    draws = Draws(("ids",))

    def made(texts: Sequence[str], title: str = "") -> Texts:
        return Texts(tuple(Text(f"{draws.rank('id', str(at)):019}", title, text) for at, text in enumerate(texts)))

    return made


@pytest.fixture(scope="session")
def drawn(corpus_of: Callable[..., Passages]) -> Passages:
    """A thousand passages of 60 to 100 words, and then the first hundred of them again."""
    draws = [Draws(("passage", at)) for at in range(1000)]
    texts = [zipf(named, named.integer("words", 60, 100)) for named in draws]
    return corpus_of([*texts, *texts[:100]])


@pytest.fixture(scope="session")
def queries() -> list[str]:
    """Fifty questions of eight words."""
    return [zipf(Draws(("query", at)), 8) for at in range(50)]
