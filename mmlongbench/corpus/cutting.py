"""Cuts an article into passages of whole sentences, like KILT, or of a fixed number of words, like DPR. Pure functions.

The first way follows KILT's `create_kilt_data_paragraphs.py` with three differences. Sentences are found by rules and
their length is counted in words between whitespace; KILT uses spaCy for both. Sections are identified by number, so two
neighbouring sections with the same name stay apart. A section marker counts only at the beginning of a paragraph, so
text with a marker elsewhere is not lost.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mmlongbench.corpus.articles import Article, is_section
from mmlongbench.prompt import escape_markers
from mmlongbench.sentences import word_sentences

Mode: TypeAlias = Literal["sentences", "words"]
WORDS = 100
"""The number of words of a passage in KILT, DPR and the paper."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One passage of an article. Its whitespace is normalised, and image markers in it are escaped."""

    text: str
    section: int
    """The number of the section; 0 is the lead section."""
    first: int
    last: int
    """`first` and `last` are the numbers of the paragraphs that have the passage's first and last word."""


@dataclass(slots=True)
class _Chunk:
    """A passage to which sentences may still be added."""

    section: int
    first: int
    last: int
    words: list[str] = field(default_factory=list)
    size: int = 0

    def closed(self) -> Cut:
        return Cut(" ".join(self.words), self.section, self.first, self.last)


_Paragraphs: TypeAlias = Iterable[tuple[int, int, str]]


def cut(article: Article, mode: Mode = "sentences", words: int = WORDS) -> list[Cut]:
    """Return the passages of an article. Each word of the body is in exactly one passage, and no passage spans two
    sections.

    In mode `sentences` a passage has fewer than `words` words, unless a single sentence has as many or more. In mode
    `words` it has exactly `words` words, or fewer at the end of a section. An article of a source that is already cut
    (see `Article.passage_id`) is one passage in both modes.
    """
    if words < 1:
        raise ValueError(f"a passage of {words} words; expected at least 1")
    paragraphs = list(_paragraphs(article))
    if article.passage_id:
        return [_kept(paragraphs)]
    return [chunk.closed() for chunk in _WAYS[mode](paragraphs, words)]


def cut_text(text: str, mode: Mode = "sentences", words: int = WORDS) -> list[str]:
    """Return the passages of a text without sections; blank lines separate its paragraphs.

    >>> cut_text("One sentence.  Another.")
    ['One sentence. Another.']
    """
    parts = [(0, number, escape_markers(part)) for number, part in enumerate(re.split(r"\n\s*\n", text))]
    return [" ".join(chunk.words) for chunk in _WAYS[mode](parts, words)]


def _paragraphs(article: Article) -> Iterator[tuple[int, int, str]]:
    """Yield (section, number, text) of each paragraph of the body."""
    section = 0
    for number, paragraph in enumerate(article.paragraphs, article.first):
        if is_section(paragraph) and not article.passage_id:
            section += 1
        else:
            yield section, number, escape_markers(paragraph)


def _kept(paragraphs: list[tuple[int, int, str]]) -> Cut:
    text = " ".join(" ".join(text.split()) for _, _, text in paragraphs)
    return Cut(text, 0, paragraphs[0][1], paragraphs[-1][1])


def _by_sentences(paragraphs: _Paragraphs, limit: int) -> list[_Chunk]:
    """Cut each paragraph by itself, but add its last part to the passage before if that has room (see `_join`)."""
    chunks: list[_Chunk] = []
    for section, number, text in paragraphs:
        chunk = _Chunk(section, number, number)
        for sentence in word_sentences(text):
            if chunk.words and chunk.size + len(sentence) >= limit:
                chunks.append(chunk)
                chunk = _Chunk(section, number, number)
            chunk.words += sentence
            chunk.size += len(sentence)
        if chunk.words:
            _join(chunks, chunk, limit)
    return chunks


def _join(chunks: list[_Chunk], chunk: _Chunk, limit: int) -> None:
    """Add the rest of a paragraph to the last passage if this passage is in the same section and has room. Otherwise,
    the rest becomes a new passage.
    """
    last = chunks[-1] if chunks else None
    if last is None or last.section != chunk.section or last.size + chunk.size >= limit:
        chunks.append(chunk)
        return
    last.words += chunk.words
    last.size += chunk.size + 1  # KILT counts the blank between two sentences as a word
    last.last = chunk.last


def _by_words(paragraphs: _Paragraphs, limit: int) -> list[_Chunk]:
    chunks: list[_Chunk] = []
    for section, number, text in paragraphs:
        words, taken = text.split(), 0
        while taken < len(words):
            if not chunks or chunks[-1].section != section or len(chunks[-1].words) == limit:
                chunks.append(_Chunk(section, number, number))
            chunk = chunks[-1]
            room = limit - len(chunk.words)
            chunk.words += words[taken : taken + room]
            chunk.last = number
            taken += room
    return chunks


_WAYS: dict[Mode, Callable[[_Paragraphs, int], list[_Chunk]]] = {"sentences": _by_sentences, "words": _by_words}
