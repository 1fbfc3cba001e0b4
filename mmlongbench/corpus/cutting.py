"""Cuts an article into passages of whole sentences, like KILT, or of a fixed number of words, like DPR.

The first way follows KILT's `create_kilt_data_paragraphs.py` with three differences. Sentences are found by rules and
their length is counted in words between whitespace; KILT uses spaCy for both. Sections are identified by number, so two
neighbouring sections with the same name stay apart. A section marker counts only at the beginning of a paragraph, so
text with a marker elsewhere is not lost.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mmlongbench.corpus.articles import Article, is_section
from mmlongbench.prompt import escape_markers
from mmlongbench.sentences import word_sentences

Mode: TypeAlias = Literal["sentences", "words"]
WORDS = 100  # the number of words of a passage in KILT, DPR and the paper


@dataclass(slots=True)
class Cut:
    """One passage of an article; image markers in it are escaped."""

    section: int
    """The number of the section; 0 is the lead section."""
    first: int
    last: int
    """`first` and `last` are the numbers of the paragraphs that have the passage's first and last word."""
    words: list[str] = field(default_factory=list)
    size: int = 0
    """The number of words, as KILT counts them."""

    @property
    def text(self) -> str:
        """The words with single spaces."""
        return " ".join(self.words)


def cut(article: Article, mode: Mode = "sentences", words: int = WORDS) -> list[Cut]:
    """Return the passages of an article. Each word of the body is in exactly one passage, and no passage spans two
    sections.

    In mode `sentences` a passage has fewer than `words` words, unless a single sentence has as many or more. In mode
    `words` it has exactly `words` words, or fewer at the end of a section. An article of a source that is already cut
    (see `Article.passage_id`) is one passage in both modes.
    """
    if words < 1:
        raise ValueError(f"a passage of {words} words; expected at least 1")
    if article.passage_id:
        whole = [word for paragraph in article.paragraphs for word in escape_markers(paragraph).split()]
        return [Cut(0, article.first, article.first + len(article.paragraphs) - 1, whole)]
    section, paragraphs = 0, []
    for number, paragraph in enumerate(article.paragraphs, article.first):
        if is_section(paragraph):
            section += 1
        else:
            paragraphs.append((section, number, escape_markers(paragraph)))
    return _WAYS[mode](paragraphs, words)


def cut_text(text: str, mode: Mode = "sentences", words: int = WORDS) -> list[str]:
    """Return the passages of a text without sections; blank lines separate its paragraphs.

    >>> cut_text("One sentence.  Another.")
    ['One sentence. Another.']
    """
    paragraphs = [(0, number, escape_markers(part)) for number, part in enumerate(re.split(r"\n\s*\n", text))]
    return [passage.text for passage in _WAYS[mode](paragraphs, words)]


_Paragraphs: TypeAlias = list[tuple[int, int, str]]
"""(section, number, text) of each paragraph."""


def _by_sentences(paragraphs: _Paragraphs, limit: int) -> list[Cut]:
    """Cut each paragraph by itself, but add its last part to the passage before, if that has room."""
    cuts: list[Cut] = []
    for section, number, text in paragraphs:
        rest = Cut(section, number, number)
        for sentence in word_sentences(text):
            if rest.words and rest.size + len(sentence) >= limit:
                cuts.append(rest)
                rest = Cut(section, number, number)
            rest.words += sentence
            rest.size += len(sentence)
        if not rest.words:
            continue
        before = cuts[-1] if cuts else None
        if before and before.section == section and before.size + rest.size < limit:
            before.words += rest.words
            before.size += rest.size + 1  # KILT counts the blank between two sentences as a word
            before.last = number
        else:
            cuts.append(rest)
    return cuts


def _by_words(paragraphs: _Paragraphs, limit: int) -> list[Cut]:
    cuts: list[Cut] = []
    for section, number, text in paragraphs:
        words, taken = text.split(), 0
        while taken < len(words):
            if not cuts or cuts[-1].section != section or len(cuts[-1].words) == limit:
                cuts.append(Cut(section, number, number))
            passage = cuts[-1]
            room = limit - len(passage.words)
            passage.words += words[taken : taken + room]
            passage.last = number
            taken += room
    return cuts


_WAYS: dict[Mode, Callable[[_Paragraphs, int], list[Cut]]] = {"sentences": _by_sentences, "words": _by_words}
