"""Cut an article into passages: KILT's way (whole sentences) or DPR's (so many words). Pure; knows no files.

KILT's way is that of its `create_kilt_data_paragraphs.py`, but for three things: sentences are found by rule and their
length is counted in words between whitespace, where KILT asks spaCy for both; a section is told by its number, so two
neighbours of one name stay apart; a marker is one only where it begins a paragraph, so that no other text is lost.
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
"""Words of a passage, in KILT, DPR and the paper."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One passage of an article, whitespace normalised and image markers escaped."""

    text: str
    section: int
    """0 is the lead section."""
    first: int
    last: int
    """The paragraphs of the source that its first and its last word stand in."""


@dataclass(slots=True)
class _Chunk:
    """A passage that may still grow."""

    section: int
    first: int
    last: int
    words: list[str] = field(default_factory=list)
    size: int = 0

    def closed(self) -> Cut:
        return Cut(" ".join(self.words), self.section, self.first, self.last)


_Paragraphs: TypeAlias = Iterable[tuple[int, int, str]]


def cut(article: Article, mode: Mode = "sentences", words: int = WORDS) -> list[Cut]:
    """The passages of an article: no word of its body lost, none twice, no section mixed with another.

    In mode `sentences` a passage has fewer than `words` words, unless one sentence alone has more: that stays whole.
    In mode `words` it has exactly `words`, the last of a section fewer. A ready passage is kept as it stands.
    """
    if words < 1:
        raise ValueError(f"a passage of {words} words; expected at least 1")
    paragraphs = list(_paragraphs(article))
    if article.passage_id:
        return [_kept(paragraphs)]
    return [chunk.closed() for chunk in _WAYS[mode](paragraphs, words)]


def cut_text(text: str, mode: Mode = "sentences", words: int = WORDS) -> list[str]:
    """The passages of a text that is no article: paragraphs are told by blank lines.

    >>> cut_text("One sentence.  Another.")
    ['One sentence. Another.']
    """
    parts = [(0, number, escape_markers(part)) for number, part in enumerate(re.split(r"\n\s*\n", text))]
    return [" ".join(chunk.words) for chunk in _WAYS[mode](parts, words)]


def _paragraphs(article: Article) -> Iterator[tuple[int, int, str]]:
    """(section, number, text) of each paragraph of the body."""
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
    """Passages never run on from one paragraph into the next; only a short rest joins what stands before it."""
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
    """Append the rest of a paragraph, to the last passage where that is of this section and there is room."""
    last = chunks[-1] if chunks else None
    if last is None or last.section != chunk.section or last.size + chunk.size >= limit:
        chunks.append(chunk)
        return
    last.words += chunk.words
    last.size += chunk.size + 1  # KILT counts the joint
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
