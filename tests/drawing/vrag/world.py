"""The subjects of the sample's encyclopedia: names, and the facts that are drawn for each.

Facts are dealt like cards: a word is repeated only when all words of its list have been dealt. Entities with a picture
come first and get different words. This module does not know sentences or pictures.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from mmlongbench.task import Draws

YEARS = tuple(map(str, range(1781, 1926)))
States = tuple[tuple[str, ...], ...]
"""Sentences that must be written, each with its alternatives."""


class Declared(BaseModel):
    """The base of everything that is declared in YAML."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Question(Declared):
    """A question about one fact, in InfoSeek's words, in ViQuAE's words, and with the entity's name."""

    of: str
    ask: str
    shown: str
    named: str


class Section(Declared):
    """A section of an article, and the lists of sentences that fill it."""

    title: str
    fill: tuple[str, ...]
    states: States = ()


class After(Declared):
    """A year that is some years after the fact `year`."""

    after: tuple[int, int]


class Kind(Declared):
    """A kind of subject that has articles."""

    it: str
    """The noun for a subject of this kind in sentences."""
    visual: str = ""
    """The noun for a subject of this kind in questions with a picture."""
    category: str
    entities: tuple[str, ...] = ()
    others: str | tuple[str, ...]
    most: int | None = None
    """The maximum number of articles about subjects without a picture, if `others` is the name of a word list."""
    facts: dict[str, str | After | tuple[int, ...]]
    """What each fact is drawn from. A text names a list of words. An `After` draws how many years later than the fact
    `year` the fact is. A tuple draws a number: (minimum, maximum) or (minimum, maximum, decimals)."""
    later: tuple[int, int] = (4, 60)
    """The range of years between the fact `year` and any other year."""
    lead: States
    fill: tuple[str, ...]
    sections: tuple[Section, ...]
    questions: tuple[Question, ...] = ()


class Words(Declared):
    """Lists of words and of sentences."""

    words: dict[str, tuple[str, ...]]
    prose: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of one article."""

    name: str
    kind_name: str
    kind: Kind
    number: int
    """The number among all subjects."""
    index: int
    """The subject's position, from 0, among the entities of its kind, or among the other subjects of its kind."""
    is_entity: bool
    facts: Mapping[str, str]

    @property
    def draws(self) -> Draws:
        """The draws of this subject."""
        return Draws(("vrag sample", self.name))

    @property
    def page(self) -> str:
        """The name of its page in the encyclopedia."""
        return str(4_000_000 + 1_009 * self.number + self.draws.integer("page", 0, 1_008))

    @property
    def wikidata_id(self) -> str:
        """The id of its item in the knowledge base."""
        return f"Q{90_000_000 + 1_009 * self.number + self.draws.integer('item', 0, 1_008)}"


@dataclass(frozen=True, slots=True)
class Encyclopedia:
    """The subjects, entities with a picture first, and the words for the articles about them."""

    subjects: tuple[Subject, ...]
    words: Mapping[str, tuple[str, ...]]
    prose: Mapping[str, tuple[str, ...]]

    @property
    def entities(self) -> tuple[Subject, ...]:
        """The subjects with a picture."""
        return tuple(subject for subject in self.subjects if subject.is_entity)


def read_encyclopedia() -> Encyclopedia:
    """Return the declared world with all its facts drawn."""
    declared = Words.model_validate(_yaml("words.yaml"))
    kinds = TypeAdapter(dict[str, Kind]).validate_python(_yaml("kinds.yaml"))
    subjects = tuple(_subjects(kinds, declared.words))
    living = tuple(subject.name for subject in subjects if "epithet" in subject.facts)
    return Encyclopedia(subjects, {**declared.words, "subject": living}, declared.prose)


def _yaml(name: str) -> object:
    return yaml.safe_load(files("tests.drawing.vrag").joinpath(name).read_text(encoding="utf-8"))


def _subjects(kinds: Mapping[str, Kind], words: Mapping[str, tuple[str, ...]]) -> Iterator[Subject]:
    decks = _Decks({**words, "year": YEARS})
    number = 0
    for is_entity in (True, False):
        for kind_name, kind in kinds.items():
            for index, name in enumerate(kind.entities if is_entity else _others(kind, words)):
                facts = decks.deal(name, kind)
                yield Subject(name, kind_name, kind, number, index, is_entity, facts)
                number += 1


def _others(kind: Kind, words: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return kind.others if isinstance(kind.others, tuple) else words[kind.others][: kind.most]


class _Decks:
    """Lists of words in drawn orders; a word that was dealt goes to the end of its list."""

    def __init__(self, words: Mapping[str, tuple[str, ...]]) -> None:
        draws = Draws(("vrag sample",))
        self._decks = {pool: deque(draws.order(pool, listed)) for pool, listed in words.items()}

    def deal(self, name: str, kind: Kind) -> dict[str, str]:
        """Return the facts of a subject; a fact from a list shares no word with the subject's name."""
        facts = {"name": name, "it": kind.it}
        for fact, source in kind.facts.items():
            draws = Draws(("vrag sample", name, fact))
            if isinstance(source, str):
                facts[fact] = self._next(source, name)
            elif isinstance(source, After):
                facts[fact] = str(int(facts["year"]) + draws.integer("years", *source.after))
            else:
                facts[fact] = _number(source, draws)
        return facts

    def _next(self, pool: str, name: str) -> str:
        deck = self._decks[pool]
        taken = set(name.replace("-", " ").split())
        word = next((word for word in deck if not taken & set(word.replace("-", " ").split())), deck[0])
        deck.remove(word)
        deck.append(word)
        return word


def _number(source: tuple[int, ...], draws: Draws) -> str:
    """Return a drawn number as text, without zeros at the end of its decimals.

    >>> _number((30, 30, 1), Draws(("doctest",)))
    '30'
    """
    low, high, *decimals = source
    scale = 10 ** sum(decimals)
    return f"{draws.integer('number', low * scale, high * scale) / scale:g}"
