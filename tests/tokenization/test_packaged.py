"""Tokenizers of installed packages: their ids are those of their own algorithm, and errors say what to install."""

import base64
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenization import TokenizationError, load_tokenizer
from tokenization.ranks import of_tekken, of_tiktoken
from tokenization.text import _build, tokenizer_json

RANKS = {bytes([byte]): byte for byte in range(256)} | {
    piece: 256 + at for at, piece in enumerate([b"ab", b"bc", b"abc", b"  ", b"aab", b"\n\n", "é".encode(), b" a"])
}
PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}+|\s+"
ENCODING = SimpleNamespace(_mergeable_ranks=RANKS, _pat_str=PATTERN, _special_tokens={"<|end|>": 300})
TEKKEN = {
    "config": {"pattern": PATTERN, "default_vocab_size": 266, "default_num_special_tokens": 2},
    "vocab": [{"rank": rank, "token_bytes": base64.b64encode(piece).decode()} for piece, rank in RANKS.items()]
    + [{"rank": 999, "token_bytes": "eHh4"}],  # over the size of the vocabulary
    "special_tokens": [{"rank": 0, "token_str": "<s>"}, {"rank": 1, "token_str": "[IMG]"}],
}


def merged(piece: bytes) -> list[int]:
    """Merge the neighbours with the lowest rank, the first of them first, until none has a rank."""
    parts = [bytes([byte]) for byte in piece]
    while len(parts) > 1 and piece not in RANKS:
        ranks = [RANKS.get(left + right, 9999) for left, right in pairwise(parts)]
        if min(ranks) == 9999:
            break
        at = ranks.index(min(ranks))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [RANKS[piece]] if piece in RANKS else [RANKS[part] for part in parts]


@given(st.text("abcé", max_size=12))
def test_ids_are_those_of_the_ranks(text: str) -> None:
    expected = merged(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=lambda name: ENCODING))
        assert _build("tiktoken", of_tiktoken("any"), additive=False).encode(text) == expected
    assert _build("tekken", of_tekken(json.dumps(TEKKEN).encode()), additive=False).encode(text) == [
        rank + 2 for rank in expected
    ]


def test_a_package_is_loaded_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=lambda name: ENCODING))
    loaded = load_tokenizer("tiktoken:base")
    assert (loaded.name, loaded.count("  ab ab\n\n1234"), loaded.additive) == ("tiktoken:base", 9, False)
    assert loaded.count_pieces(["ab<|end|>", "ab"], "<|end|>") == 3
    content = tokenizer_json("tiktoken:base")
    assert content
    (tmp_path / "kept.json").write_bytes(content)
    assert load_tokenizer(str(tmp_path / "kept.json")).sha256 == loaded.sha256


def test_a_file_of_a_package_or_of_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shipper/data").mkdir(parents=True)
    (tmp_path / "shipper/__init__.py").touch()
    (tmp_path / "shipper/data/tekken.json").write_text(json.dumps(TEKKEN))
    monkeypatch.syspath_prepend(str(tmp_path))
    ids = load_tokenizer("shipper:data/tekken.json").encode("abc")
    assert ids == load_tokenizer(str(tmp_path / "shipper/data/tekken.json")).encode("abc") == [260]
    (tmp_path / "shipper/__init__.py").write_text("raise SystemExit")  # nothing of it runs
    assert load_tokenizer("shipper:data/tekken.json").encode("abc") == ids
    (tmp_path / "alone.py").write_text("raise SystemExit")
    (tmp_path / "outside.json").write_text(json.dumps(TEKKEN))
    for name in ("shipper:none.json", "shipper:../outside.json", f"shipper:{tmp_path}/outside.json", "alone:x.json"):
        with pytest.raises(TokenizationError, match=f"tokenizer '{re.escape(name)}' cannot be read"):
            load_tokenizer(name)


def test_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    of_tiktoken.cache_clear()
    for name in ("tiktoken", "no_such_package"):
        with pytest.raises(TokenizationError, match=f"tokenizer '{name}:base': pip install {name} first"):
            load_tokenizer(f"{name}:base")
    old = {key: value for key, value in TEKKEN.items() if key != "special_tokens"}
    (tmp_path / "tekken.json").write_text(json.dumps(old))
    monkeypatch.setitem(sys.modules, "mistral_common", None)
    with pytest.raises(TokenizationError, match="pip install mistral_common first"):
        load_tokenizer(str(tmp_path / "tekken.json"))


@pytest.mark.parametrize(
    "content", ['{"token_bytes": 1', '{"config": {}, "special_tokens": [], "vocab": [{"token_bytes": 1}]}']
)
def test_a_broken_tekken(content: str, tmp_path: Path) -> None:
    (tmp_path / "tekken.json").write_text(content)
    with pytest.raises(TokenizationError, match=r"tekken\.json' cannot be read"):
        load_tokenizer(str(tmp_path / "tekken.json"))
