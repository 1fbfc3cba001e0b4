"""Sentences by rule: abbreviations, initials, numbers, quotes and ellipses; and no word lost, whatever the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.task.advanced import sentences

SPLIT = [
    "Hello World. | My name is Jonas.",
    "What is your name? | My name is Jonas.",
    "My name is Jonas E. Smith. | J. R. R. Tolkien and J.-P. Sartre wrote.",
    "Dr. No met Mr. and Mrs. Smith in St. Gallen. | They left.",
    "They closed the deal with Pitt, Briggs & Co. at noon. | I came too.",
    "They closed the deal with Pitt, Briggs & Co. | It closed yesterday.",
    "I live in the U.S. | How about you?",
    "I work for the U.S. Government in Virginia.",
    "At 5 a.m. Mr. Smith went to the bank. | He left at 6 P.M. in haste.",
    "She has $100.00 and 3.5 % of it. | It is in her bag.",
    "He was born c. 1450, see p. 55, No. 7, Vol. II and Fig. 3. | In 1990. | The end.",
    "Born Jan. 5, 1950. | Died in Dec. | He won World War I. | The war ended.",
    "Smith et al. (2003) found it, e.g. Here, i.e. There.",
    "1. First item. | 2. Second item.",
    'She turned to him, "This is great." | She held the book out.',
    "She turned to him, 'This is great.' she said.",
    "“Really?” he asked. | “Yes.” | “No!” | (He left.) | And came back.",
    "He teaches (He worked for 5 years as an engineer.) at the university.",
    "Hello!! | Long time no see?! | Indeed.",
    "I never meant that… | She left the store... and then. . . came back.",
    '"He [...] used stairways [...]" (Smith 55) and […] More.',
    "See https://www.example.50.com/new-site.html. | Write to Jane.Doe@example.com. | Do.",
    "She works at Yahoo! in the accounting department.",
    "He got a Ph.D. | She did too. | Ph.D. students agree.",
    "这是一句。 | 那是一句。 | 这是 第三句",
    "It cost 5 million. | €3 were left. | ¿Qué? | Él no sabe.",
]
ENDS = st.sampled_from(["", ".", "!", "?", "…", "...", '."', ".)", ",", "。"])
WORDS = st.builds(str.__add__, st.text("aAbBüß1.-'\"([", max_size=6), ENDS)
SPACES = st.sampled_from([" ", "\n", "\n\n", "\t", "\u00a0", "\u2029", "\x1f", "\r\n", "  "])
texts = st.lists(st.one_of(WORDS, SPACES, st.text(max_size=4))).map("".join)


@pytest.mark.parametrize("text", SPLIT)
def test_sentences_end_where_a_reader_ends_them(text: str) -> None:
    assert sentences(text.replace(" | ", " ")) == text.split(" | ")


@given(texts)
def test_no_word_is_lost_and_whitespace_is_normal(text: str) -> None:
    found = sentences(text)
    assert " ".join(found).split() == text.split()
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in found)


@given(texts)
def test_a_sentence_is_one_sentence(text: str) -> None:
    for sentence in sentences(text):
        assert sentences(sentence) == [sentence]


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not() -> None:
    assert sentences("A heading\n \nThe text goes\non here") == ["A heading", "The text goes on here"]


def test_nothing_has_no_sentence() -> None:
    assert sentences("") == sentences(" \n\n ") == []


@pytest.mark.parametrize("piece", [".", '"', ".)", "a.", "a.a-", "[...", "\n", "! "])
def test_a_million_of_one_piece_take_no_more_than_one_pass(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert " ".join(sentences(text)).split() == text.split()
