"""The embedded Llama 2 tokenizer against ids written out, and against SentencePiece with the original model."""

import functools
import hashlib
import importlib.util
import lzma
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needs import shared

import tokenization
from tokenization import TextTokenizer, TokenizationError, load_tokenizer
from tokenization import text as text_module

MODEL_SHA256 = "9e556afd44213b6bd1be2b850ebbbd98f5481437a8021afaf58ee7fb1818d347"
DATA = Path(tokenization.__file__).parent / "data"

KNOWN = {
    "Hello, world!": [15043, 29892, 3186, 29991],
    "What is the total revenue in 2017?\nAnswer:": [
        *[1724, 338, 278, 3001, 337, 9947, 297, 29871, 29906, 29900, 29896, 29955, 29973],
        *[13, 22550, 29901],
    ],
    "Document 3 (page 12): 長い文書": [
        *[10854, 29871, 29941, 313, 3488, 29871, 29896, 29906, 1125],
        *[29871, 30899, 30298, 30333, 30854],
    ],
    "👩\u200d👧": [29871, 243, 162, 148, 172, 30722, 243, 162, 148, 170],
    "": [],
    " ": [259],
    "\n": [29871, 13],
    "▁": [259],
    "    four": [268, 3023],
    "  \n\n  x": [1678, 13, 13, 29871, 921],
    "a\r\nb": [263, 30004, 13, 29890],
    "\0": [29871, 3],
    "\x01\x7f\x85": [29871, 4, 130, 197, 136],
    "e\u0301": [321, 30103],
    "<s>": [529, 29879, 29958],
    "</s>": [1533, 29879, 29958],
    "<unk>": [529, 2960, 29958],
    "<0x0A>": [529, 29900, 29916, 29900, 29909, 29958],
}


@pytest.fixture(scope="module")
def llama2() -> TextTokenizer:
    return load_tokenizer("llama2")


@pytest.mark.parametrize(("text", "ids"), KNOWN.items())
def test_known_ids(llama2: TextTokenizer, text: str, ids: list[int]) -> None:
    assert llama2.encode(text) == ids
    assert llama2.count(text) == len(ids)


def test_names_itself(llama2: TextTokenizer) -> None:
    assert (llama2.name, llama2.additive) == ("llama2", True)
    assert llama2.sha256 == hashlib.sha256(lzma.decompress((DATA / "llama2.json.xz").read_bytes())).hexdigest()
    assert load_tokenizer("llama2") is llama2
    assert pickle.loads(pickle.dumps(llama2)) is llama2
    assert llama2.sha256 in (DATA / "NOTICE").read_text(encoding="utf-8")


def test_no_piece_has_a_newline(llama2: TextTokenizer) -> None:
    pieces = llama2._model.get_vocab()
    assert len(pieces) == 32_000
    assert [piece for piece in pieces if "\n" in piece] == []
    assert (pieces["<0x0A>"], llama2.encode("\n")[-1]) == (13, 13)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("x" * 1_000_000, 250_001), (" " * 100_000, 6_251), ("\n" * 100_000, 100_001), ("\0" * 100_000, 100_001)],
    ids=["x", "spaces", "newlines", "NUL"],
)
def test_long_runs(llama2: TextTokenizer, text: str, tokens: int) -> None:
    assert llama2.count(text) == tokens


# Texts with what could merge or be split: spaces of both kinds, line ends, and characters without a piece of their own.
pages = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" ▁\n\r\t;{}.a1é語👩\u200d"))


@given(first=pages, rest=st.lists(pages, min_size=1))
def test_prices_add_up(first: str, rest: list[str]) -> None:
    llama2 = load_tokenizer("llama2")
    joined = "\n".join([first, *rest])
    assert llama2.count(joined) == max(1, llama2.count(first)) + sum(1 + llama2.price(text) for text in rest)
    assert llama2.price(joined) == llama2.price(first) + sum(1 + llama2.price(text) for text in rest)


@given(text=pages)
def test_counts_what_it_encodes(text: str) -> None:
    llama2 = load_tokenizer("llama2")
    assert llama2.count(text) == len(llama2.encode(text))
    assert llama2.price(text) == len(llama2.encode(f"\n{text}")) - len(llama2.encode("\n"))


@given(text=pages)
def test_decodes_to_the_text(text: str) -> None:
    llama2 = load_tokenizer("llama2")
    assert llama2._model.decode(llama2.encode(text), skip_special_tokens=False) == text.replace("▁", " ")


@pytest.mark.parametrize("text", ["ab\ud800c", "ab\udfff", "ab\ude00\ud83d"])
def test_lone_surrogate(llama2: TextTokenizer, text: str) -> None:
    for call in (llama2.encode, llama2.count):
        with pytest.raises(
            TokenizationError, match=rf"{len(text)} characters.*U\+{ord(text[2]):04X} at position 2.*replace"
        ):
            call(text)
    with pytest.raises(TokenizationError, match=rf"lone surrogate U\+{ord(text[2]):04X}"):
        llama2.price(text)


def test_bytes_are_no_text(llama2: TextTokenizer) -> None:
    with pytest.raises(TokenizationError, match="not bytes: decode it first"):
        llama2.count(b"page")  # type: ignore[arg-type]


def test_damaged_asset(monkeypatch: pytest.MonkeyPatch) -> None:
    load = text_module._llama2.__wrapped__
    monkeypatch.setattr(text_module, "LLAMA2_SHA256", "0" * 64)
    with pytest.raises(TokenizationError, match=r"llama2\.json\.xz: SHA-256 2e4fdae1.*expected 0{64}; install"):
        load()
    monkeypatch.setattr(text_module, "LLAMA2_ASSET", "data/NOTICE")
    with pytest.raises(TokenizationError, match=r"data/NOTICE cannot be read.*install the package again"):
        load()
    monkeypatch.setattr(text_module, "LLAMA2_ASSET", "data/none.xz")
    with pytest.raises(TokenizationError, match=r"data/none\.xz cannot be read"):
        load()


# Comparison with SentencePiece


@functools.cache
def original_model() -> Any:
    """SentencePiece with the original model, or a skipped test."""
    import sentencepiece

    content = shared("reference", "llama2", "tokenizer.model").read_bytes()
    assert hashlib.sha256(content).hexdigest() == MODEL_SHA256
    return sentencepiece.SentencePieceProcessor(model_proto=content)


FRAGMENTS = [
    *["<s>", "</s>", "<unk>", "<0x0A>", "<0xE2>", "<image>", "< image >", "▁", "▁▁", " ▁", "\n\n\n", "\r\n", ";\r\n"],
    *["👩\u200d👩\u200d👧\u200d👦", "👍🏽", "🏳\ufe0f\u200d🌈", "🇩🇪", "e\u0301\u0323", "न\u093cी", "각"],
    *["ก\u0e35\u0e48", "\u202e", "\u2028", "\ufeff"],
    *["\ufffd", "\u00a0", "\u3000", "\u00ad", "ﬁ", "Ⅳ", "½", "I\u0307", "ẞ"],
    *["the ", " and", "http://", "1234567", "3.14", "()", '");', "''", "—"],
]  # fmt: skip
RANGES = [(0x00, 0x20), (0x20, 0x7F), (0x61, 0x7B), (0x7F, 0x250), (0x300, 0x370), (0x370, 0x700), (0x900, 0x1000)]
RANGES += [(0x2000, 0x2C00), (0x3040, 0x3100), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xE000, 0x10000)]
RANGES += [(0x10000, 0x110000), (0x1F300, 0x1FB00)]


def fragment(kind: int, value: int) -> str:
    """One piece of a string: a fragment from the list, a run of spaces, or a character of one of the ranges."""
    if kind < 96:
        return FRAGMENTS[value % len(FRAGMENTS)]
    if kind < 120:
        return " " * (1 + value % 20)
    low, high = RANGES[kind % len(RANGES)]
    return chr(low + value % (high - low))


def drawn_string(number: int) -> str:
    """The string of this number: 1 to 24 pieces, drawn by hashing the number."""
    draws = hashlib.shake_256(f"llama2 {number}".encode()).digest(97)
    starts = range(1, 1 + 4 * (1 + draws[0] % 24), 4)
    return "".join(fragment(draws[at], int.from_bytes(draws[at + 1 : at + 4], "big")) for at in starts)


def pages_of(documents: Path) -> Iterator[str]:
    """The text of every page of every PDF in a folder."""
    import pymupdf

    for path in sorted(documents.glob("*.pdf")):
        with pymupdf.open(path) as document:
            yield from (page.get_text() for page in document)


def differences(texts: list[str]) -> list[str]:
    llama2 = load_tokenizer("llama2")
    expected = original_model().encode(texts)
    return [text for text, ids in zip(texts, expected, strict=True) if llama2.encode(text) != ids]


def test_same_as_sentencepiece_on_known_texts() -> None:
    assert original_model().encode(list(KNOWN)) == list(KNOWN.values())


def test_words_that_another_thread_forgets_while_a_line_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    llama2, meanwhile = load_tokenizer("llama2"), list[str]()

    class Model:
        def encode_batch_fast(self, texts: list[str], **settings: bool) -> object:
            texts_of_the_other, meanwhile[:] = meanwhile[:], []
            for each in texts_of_the_other:
                text.count(each)
            return llama2._model.encode_batch_fast(texts, **settings)

    text = TextTokenizer("llama2", "", True, Model())  # type: ignore[arg-type]
    monkeypatch.setattr(text_module, "MAX_WORDS", 1)
    assert text.count("known") == llama2.count("known")
    meanwhile += ["two more", "forget all"]
    assert text.count("known and unknown") == llama2.count("known and unknown")


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.rare)])
def test_same_as_sentencepiece_on_drawn_strings(count: int) -> None:
    texts = [drawn_string(number) for number in range(count)]
    assert len(set(texts)) > 0.95 * count
    assert differences(texts) == []


@pytest.mark.rare
def test_same_as_sentencepiece_on_real_pages() -> None:
    texts = list(pages_of(shared("real", "mmlongbench-doc", "documents")))
    assert differences(texts) == []
    assert differences(["\n".join(texts[:100])]) == []


def test_asset_is_made_by_the_script(tmp_path: Path) -> None:
    source = os.environ.get("MMLONGBENCH_LLAMA_JS", "")
    if not source:
        pytest.skip("MMLONGBENCH_LLAMA_JS does not name llama-tokenizer.js of llama-tokenizer-js 1.2.2")
    made = tmp_path / "llama2.json.xz"
    convert_script().main([source, str(made)])
    assert made.read_bytes() == (DATA / "llama2.json.xz").read_bytes()


def test_script_refuses_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.js"
    other.write_text("const x = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no constant 'llama_vocab_base64'.*llama-tokenizer-js 1\.2\.2"):
        convert_script().main([str(other), str(tmp_path / "out.xz")])
    with pytest.raises(SystemExit, match="usage:"):
        convert_script().main([])


def convert_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("convert_llama2", Path(__file__).with_name("convert_llama2.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
