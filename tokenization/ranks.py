"""Tokenizers that rank pieces of bytes, tiktoken's and Mistral's tekken, in the form of a tokenizer.json."""

import base64
import functools
import json
from collections.abc import Mapping
from itertools import count


@functools.lru_cache(maxsize=1)
def of_tiktoken(encoding: str) -> bytes:
    """Return an encoding of the installed package tiktoken, which downloads its pieces unless they are in its cache."""
    import tiktoken

    tiktoken_encoding = tiktoken.get_encoding(encoding)
    ranks = tiktoken_encoding._mergeable_ranks  # the package has no public way to them
    return _of_ranks(ranks, tiktoken_encoding._pat_str, tiktoken_encoding._special_tokens)


@functools.lru_cache(maxsize=1)
def of_tekken(content: bytes) -> bytes:
    """Return a tekken.json, whose ids of pieces begin after those of the special tokens."""
    data = json.loads(content)
    config, listed = data["config"], data.get("special_tokens")
    if listed is None:  # the files before version 7 leave them to the package
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        listed = [
            {"rank": each["rank"], "token_str": each["token_str"]} for each in Tekkenizer.DEPRECATED_SPECIAL_TOKENS
        ]
    special, first = {each["token_str"]: each["rank"] for each in listed}, config["default_num_special_tokens"]
    pieces = data["vocab"][: config["default_vocab_size"] - first]
    ranks = {base64.b64decode(piece["token_bytes"]): piece["rank"] + first for piece in pieces}
    return _of_ranks(ranks, config["pattern"], special)


def _of_ranks(ranks: Mapping[bytes, int], pattern: str, special: Mapping[str, int]) -> bytes:
    """Return pieces of bytes, of which the lowest rank is merged first, as the JSON of the tokenizers package.

    Each way to put a piece together of two others is a merge. A text that is a whole piece is not merged at all.
    """
    letters = {byte: chr(byte) for byte in (*range(33, 127), *range(161, 173), *range(174, 256))}
    others = count(256)  # bytes that are no visible character are written as the characters from 256 on
    letters |= {byte: chr(next(others)) for byte in range(256) if byte not in letters}
    written = {piece: "".join(map(letters.__getitem__, piece)) for piece in ranks}
    merges: list[tuple[bytes, bytes]] = []
    for piece in sorted(ranks, key=ranks.__getitem__):
        halves = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
        pairs = [(left, right) for left, right in halves if left in ranks and right in ranks]
        merges += sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    # a possessive {1,3}+ would be read as a repetition of {1,3}
    regex = pattern.replace("{1,3}+", "{1,3}")
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokens = sorted(special.items(), key=lambda token: token[1])
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    vocab = dict(tokens) | {written[piece]: rank for piece, rank in ranks.items()}
    written_merges = [[written[left], written[right]] for left, right in merges]
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": rank, "content": token, **flags} for token, rank in tokens],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "decoder": level,
        "model": {"type": "BPE", "ignore_merges": True, "vocab": vocab, "merges": written_merges},
    }
    return json.dumps(tokenizer, ensure_ascii=False).encode()
