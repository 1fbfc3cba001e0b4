"""Cutting: KILT's own loop as the oracle, a golden article, and what must hold of every article."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.corpus import Article, sentences
from mmlongbench.corpus.cutting import WORDS, Cut, Mode, cut

pytestmark = pytest.mark.slow

MODES: tuple[Mode, ...] = ("sentences", "words")


def article(*paragraphs: str, first: int = 1, passage_id: str = "") -> Article:
    return Article("9", "A title", paragraphs, first, passage_id)


def sentence(words: int, name: str = "word") -> str:
    return " ".join(["This", *[name] * (words - 2), "ends."])


def as_kilt_cuts(paragraphs: tuple[str, ...], limit: int) -> list[str]:
    """The loop of KILT's `create_kilt_data_paragraphs.py`, for articles whose sections have names of their own."""
    output: list[tuple[str, str, int]] = []
    section = "Section::::Abstract"
    for paragraph in paragraphs:
        if "Section::::" in paragraph:
            section = paragraph.strip()
            continue
        buffer: list[str] = []
        for found in sentences(paragraph):
            if buffer and len(buffer) + len(found.split()) >= limit:
                output.append((section, " ".join(buffer), len(buffer)))
                buffer = []
            buffer += found.split()
        if buffer and output and output[-1][0] == section and len(buffer) + output[-1][2] < limit:
            _, text, size = output[-1]
            output[-1] = (section, f"{text} {' '.join(buffer)}", size + len(buffer) + 1)
        elif buffer:
            output.append((section, " ".join(buffer), len(buffer)))
    return [text for _, text, _ in output]


sentences_of_any_length = st.integers(2, 14).map(sentence)
plain = st.lists(sentences_of_any_length | st.sampled_from(["é è", "\u00a0", "\n"]), max_size=9).map(" ".join)
texts = st.lists(plain | st.just("Section::::"), max_size=9)


def numbered(texts: list[str]) -> tuple[str, ...]:
    """Give every section and every word a name of its own."""
    marked = [f"Section::::{n}." if text.startswith("Section") else text for n, text in enumerate(texts)]
    return tuple(text.replace("word", f"word{n}") for n, text in enumerate(marked))


articles = texts.map(numbered)


@given(articles, st.integers(3, 30))
def test_whole_sentences_are_cut_as_kilt_cuts_them(paragraphs: tuple[str, ...], limit: int) -> None:
    assert [piece.text for piece in cut(article(*paragraphs), "sentences", limit)] == as_kilt_cuts(paragraphs, limit)


@given(articles, st.integers(3, 30), st.sampled_from(MODES))
def test_no_word_is_lost_and_no_section_mixed(paragraphs: tuple[str, ...], limit: int, mode: Mode) -> None:
    body: dict[int, list[str]] = {}
    section = 0
    for paragraph in paragraphs:
        if paragraph.startswith("Section::::"):
            section += 1
        else:
            body.setdefault(section, []).extend(paragraph.split())
    found: dict[int, list[str]] = {}
    for piece in cut(article(*paragraphs), mode, limit):
        found.setdefault(piece.section, []).extend(piece.text.split())
        assert piece.text == " ".join(piece.text.split())
    assert found == {section: words for section, words in body.items() if words}


@given(articles, st.integers(3, 30))
def test_only_a_single_sentence_may_be_as_long_as_the_limit(paragraphs: tuple[str, ...], limit: int) -> None:
    for piece in cut(article(*paragraphs), "sentences", limit):
        assert len(piece.text.split()) < limit or len(sentences(piece.text)) == 1


@given(articles, st.integers(3, 30))
def test_words_are_counted_out_and_only_the_last_of_a_section_are_fewer(paragraphs: tuple[str, ...], n: int) -> None:
    pieces = cut(article(*paragraphs), "words", n)
    for piece, following in pairwise(pieces):
        assert len(piece.text.split()) == n or following.section > piece.section
    assert all(0 < len(piece.text.split()) <= n for piece in pieces)


@given(articles, st.integers(3, 30), st.sampled_from(MODES))
def test_a_passage_says_which_paragraphs_it_stands_in(paragraphs: tuple[str, ...], n: int, mode: Mode) -> None:
    pieces = cut(article(*paragraphs), mode, n)
    texts = ["", *paragraphs]
    for piece in pieces:
        words = piece.text.split()
        assert words[0] in texts[piece.first].split()
        assert words[-1] in texts[piece.last].split()
    assert [piece.first for piece in pieces] == sorted(piece.first for piece in pieces)


@given(articles, st.sampled_from(MODES))
def test_spaces_do_not_matter(paragraphs: tuple[str, ...], mode: Mode) -> None:
    spaced = tuple(f" {text}".replace(" ", " \t ") for text in paragraphs)
    assert cut(article(*spaced), mode) == cut(article(*paragraphs), mode) == cut(article(*paragraphs), mode)


GOLDEN = (
    "Orthochirus is a genus of scorpions. It was described by Karsch in 1891.\n",
    sentence(40, "desert") + " " + sentence(50, "sand") + " " + sentence(20, "rock") + "\n",
    "It is small.\n",
    "Section::::Species.\n",
    'BULLET::::- "Orthochirus aristidis" Simon, 1882\n',
    'BULLET::::- "Orthochirus bicolor" Pocock, 1897\n',
    "Section::::Species.:Fossils.\n",
    "Section::::Names.\n",
    sentence(120, "long") + " It has <image> in it.\n",
)


def test_an_article_of_kilt() -> None:
    assert cut(article(*GOLDEN)) == [
        Cut("Orthochirus is a genus of scorpions. It was described by Karsch in 1891.", 0, 1, 1),
        Cut(f"{sentence(40, 'desert')} {sentence(50, 'sand')}", 0, 2, 2),
        Cut(f"{sentence(20, 'rock')} It is small.", 0, 2, 3),
        Cut('BULLET::::- "Orthochirus aristidis" Simon, 1882 BULLET::::- "Orthochirus bicolor" Pocock, 1897', 1, 5, 6),
        Cut(sentence(120, "long"), 3, 9, 9),
        Cut("It has < image > in it.", 3, 9, 9),
    ]


def test_the_same_article_by_words() -> None:
    pieces = cut(article(*GOLDEN), "words")
    assert [(len(piece.text.split()), piece.section) for piece in pieces] == [
        (100, 0), (26, 0), (10, 1), (100, 3), (27, 3)
    ]  # fmt: skip
    assert (pieces[0].first, pieces[0].last, pieces[1].first, pieces[1].last) == (1, 2, 2, 3)


def test_a_joint_counts_as_a_word_as_in_kilt() -> None:
    apart, together = (cut(article(sentence(33), sentence(33), sentence(last))) for last in (33, 32))
    assert [len(piece.text.split()) for piece in apart] == [66, 33]
    assert [len(piece.text.split()) for piece in together] == [98]


def test_the_limit_itself_is_not_reached() -> None:
    assert len(cut(article(f"{sentence(50)} {sentence(50)}"))) == 2
    assert len(cut(article(f"{sentence(50)} {sentence(49)}"))) == 1
    assert WORDS == 100


def test_a_marker_inside_a_text_is_text() -> None:
    assert [piece.section for piece in cut(article("See Section::::X. Here.", " Section::::Y.", "More."))] == [0, 1]


@pytest.mark.parametrize("mode", MODES)
def test_a_ready_passage_is_kept_as_it_stands(mode: Mode) -> None:
    text = f"Section::::X  {sentence(300)}\n{sentence(3)}"
    assert cut(article(text, passage_id="7", first=0), mode) == [Cut(" ".join(text.split()), 0, 0, 0)]


@pytest.mark.parametrize("mode", MODES)
def test_a_million_words_without_an_end_are_cut_in_one_pass(mode: Mode) -> None:
    pieces = cut(article("word " * 1_000_000), mode)
    assert len(pieces) == (1 if mode == "sentences" else 10_000)


def test_a_passage_has_a_word() -> None:
    with pytest.raises(ValueError, match="a passage of 0 words; expected at least 1"):
        cut(article("A."), "words", 0)
