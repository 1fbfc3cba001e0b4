"""The articles of the sample's encyclopedia: facts and filler sentences, in the form of KILT's knowledge source."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from mmlongbench.task import Draws
from tests.drawing.vrag.world import Encyclopedia, Section, States, Subject

MOST = 98
"""The maximum words of a paragraph with filler, so that the paragraph is one passage of at most a hundred words."""
_CHOICE = re.compile(r"<([^<>]*)>")
_SLOT = re.compile(r"{(\w+)}")
_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIO])")


@dataclass(frozen=True, slots=True)
class Article:
    """One page: its subject, its paragraphs (the first is the title), and the number of paragraphs in the lead."""

    subject: Subject
    text: tuple[str, ...]
    lead_paragraphs: int

    @property
    def lead(self) -> tuple[str, ...]:
        """The paragraphs of the lead section."""
        return self.text[1 : 1 + self.lead_paragraphs]

    def row(self) -> dict[str, object]:
        """Return a line of KILT's knowledge source, in which every paragraph ends with a newline."""
        page, title = self.subject.page, self.subject.name
        return {
            "_id": page,
            "wikipedia_id": page,
            "wikipedia_title": title,
            "text": [f"{paragraph}\n" for paragraph in self.text],
            "anchors": [],
            "categories": self.subject.kind.category,
            "wikidata_info": {
                "wikidata_id": self.subject.wikidata_id,
                "wikidata_label": title,
                "wikipedia_title": title,
                "aliases": [],
            },
        }


class Pen:
    """Fills templates for one article; a word of a list is repeated only when the whole list has been used."""

    def __init__(self, facts: Mapping[str, str], words: Mapping[str, tuple[str, ...]]) -> None:
        self._facts = facts
        self._words = words
        self._used = set(facts.values())

    def sentence(self, template: str, draws: Draws) -> str:
        """Return a template in which one alternative of each `<a|b>` is chosen, and each {slot} has a fact or a neutral
        word.

        >>> Pen({"maker": "Ada"}, {"wood": ("oak",)}).sentence("<A|A> {wood} by {maker}.", Draws(("doctest",)))
        'An oak by Ada.'
        """

        def choose(match: re.Match[str]) -> str:
            return draws.choice(f"choice {match.start()}", str(match[1]).split("|")).strip()

        def fill(match: re.Match[str]) -> str:
            name = str(match[1])
            return self._facts.get(name) or self._word(name, draws.at("slot", match.start()))

        text = _SLOT.sub(fill, _CHOICE.sub(choose, template))
        text = _BEFORE_VOWEL.sub(r"\1n ", text)
        return text[:1].upper() + text[1:]

    def _word(self, pool: str, draws: Draws) -> str:
        free = [word for word in self._words[pool] if word not in self._used]
        if not free:
            facts = self._facts.values()
            free = [word for word in self._words[pool] if word not in facts]
            self._used.difference_update(free)
        word = draws.choice(pool, free)
        self._used.add(word)
        return word


def write_articles(book: Encyclopedia) -> tuple[Article, ...]:
    """Return the article of every subject, in the encyclopedia's order."""
    return tuple(_Writer(subject, book).article() for subject in book.subjects)


class _Writer:
    """Writes one article; no template of a filler sentence is used twice in it."""

    def __init__(self, subject: Subject, book: Encyclopedia) -> None:
        self._subject = subject
        self._prose = book.prose
        year, (low, high) = int(subject.facts["year"]), subject.kind.later
        later = tuple(str(year + years) for years in range(low, high + 1))
        self._pen = Pen(subject.facts, {**book.words, "later": later})
        self._written: set[str] = set()

    def article(self) -> Article:
        lead = self._lead()
        sections = [paragraph for section in self._sections() for paragraph in self._section(section)]
        return Article(self._subject, (self._subject.name, *lead, *sections, *self._sources()), len(lead))

    def _lead(self) -> list[str]:
        """Return the paragraphs that state the declared facts, in order: one to three for an entity, otherwise one."""
        kind, draws = self._subject.kind, self._subject.draws
        stated = self._stated(kind.lead, draws.at("lead"))
        count = 1 + self._subject.index % 3 if self._subject.is_entity else 1
        groups = [stated[len(stated) * at // count : len(stated) * (at + 1) // count] for at in range(count)]
        return [self._paragraph(group, kind.fill, draws.at("lead", at)) for at, group in enumerate(groups)]

    def _sections(self) -> tuple[Section, ...]:
        kind, draws = self._subject.kind, self._subject.draws
        return kind.sections if self._subject.is_entity else kind.sections[: draws.integer("sections", 1, 2)]

    def _section(self, section: Section) -> Iterator[str]:
        draws = self._subject.draws.at("section", section.title)
        yield f"Section::::{section.title}."
        yield self._paragraph(self._stated(section.states, draws), section.fill, draws)

    def _sources(self) -> Iterator[str]:
        """Yield the paragraphs of a list of invented books; about two of five articles have such a list."""
        draws = self._subject.draws.at("sources")
        if draws.fraction("has sources") < 0.4:
            yield "Section::::Further reading."
            books = self._filler(("sources",), draws)
            yield from (f"BULLET::::- {book}" for book in islice(books, draws.integer("books", 2, 4)))

    def _stated(self, states: States, draws: Draws) -> list[str]:
        chosen = [draws.choice(f"state {at}", alternatives) for at, alternatives in enumerate(states)]
        return [self._pen.sentence(template, draws.at("state", at)) for at, template in enumerate(chosen)]

    def _paragraph(self, stated: list[str], fill: tuple[str, ...], draws: Draws) -> str:
        """Return a paragraph with the required sentences (`stated`), and sentences of the lists `fill` up to a drawn
        length.
        """
        sentences = list(stated)
        words = sum(len(sentence.split()) for sentence in sentences)
        least = draws.integer("words", 60, 88)
        for sentence in self._filler(fill, draws):
            if words >= least or words + len(sentence.split()) > MOST:
                break
            words += len(sentence.split())
            sentences.append(sentence)
        return " ".join(sentences)

    def _filler(self, pools: tuple[str, ...], draws: Draws) -> Iterator[str]:
        """Yield sentences from the lists with the names `pools`. Templates that this article has used already are left
        out.
        """
        templates = [template for pool in pools for template in self._prose[pool]]
        for at, template in enumerate(draws.order("filler", templates)):
            if template not in self._written:
                self._written.add(template)
                yield self._pen.sentence(template, draws.at("filler", at))
