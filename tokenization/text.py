"""Turns strings into tokens, with the embedded Llama 2 tokenizer or any `tokenizer.json`."""

import difflib
import functools
import hashlib
import lzma
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tokenization.errors import TokenizationError
from tokenization.ranks import of_tekken, of_tiktoken

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

LLAMA2 = "llama2"
LLAMA2_ASSET = "data/llama2.json.xz"
LLAMA2_SHA256 = "2e4fdae14d625ae903f1c58d49cbc3624fb4a220bb1a872c786c12900a310a85"  # hash of the decompressed JSON
MAX_BYTES = 512 * 1024 * 1024
"""The maximum size of a tokenizer.json, which may come with a release of others; the largest known ones have 40 MB."""

MAX_LINES, MAX_LINE = 1 << 15, 2048
"""The number of lines whose tokens are kept, and the most characters of such a line."""
MAX_WORDS = 1 << 18
"""The number of words whose tokens are kept; a word takes about 200 bytes."""
_WORD = re.compile("[ \u2581]*[^ \u2581]+|[ \u2581]+")
"""A word of SentencePiece: blanks, which it writes as U+2581, and what follows them up to the next blank."""
_PACKAGED = re.compile(r"([A-Za-z_]\w*):(.+)", re.ASCII)
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TextTokenizer:
    """Turns text into tokens. Nothing is put before a text, and `<s>` in a text counts as three ordinary characters."""

    name: str
    """The name that was loaded: `llama2`, a path or a hub id."""
    sha256: str
    """The SHA-256 of the tokenizer's JSON, in hexadecimal."""
    additive: bool
    """Whether two texts that a newline joins never share a token. If so, prices (see `price`) add up exactly."""
    _model: "Tokenizer" = field(repr=False, compare=False)
    _newline: int = field(init=False, repr=False, compare=False)
    _kept: Callable[[str], int] = field(init=False, repr=False, compare=False)
    _special: list["Tokenizer"] = field(init=False, repr=False, compare=False, default_factory=list)
    _words: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", functools.lru_cache(MAX_LINES)(self._sum_of_words))
        object.__setattr__(self, "_newline", len(self._encoding("\n")))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without BOS or any other special token."""
        return self._encoding(text).ids

    def count(self, text: str) -> int:
        """Return the tokens of a text; 0 for an empty text."""
        if not self.additive:
            return len(self._encoding(text))
        return self._sum_of_lines(text, before="\u2581") if text else 0

    def price(self, text: str) -> int:
        r"""Return the tokens that a text adds after a newline: `count("\n" + text) - count("\n")`.

        If the tokenizer is additive, each newline between two texts is one token:
        `price("\n".join(texts)) == sum(map(price, texts)) + len(texts) - 1`. The first text of a prompt is counted
        with `count`, not with `price`:
        `count("\n".join([first, *rest])) == max(1, count(first)) + sum(1 + price(text) for text in rest)`, where `rest`
        is not empty. The 1 in `max` is SentencePiece's dummy prefix, which is a token of its own if the first text is
        empty.

        >>> llama2 = load_tokenizer("llama2")
        >>> llama2.count("a page") + 1 + llama2.price("another") == llama2.count("a page\nanother")
        True
        """
        if not self.additive:
            return self.count("\n" + text) - self._newline
        return self._sum_of_lines(text)

    def count_pieces(self, pieces: Sequence[str], placeholder: str, around: str = "") -> int:
        """Return the tokens of a rendered conversation without its images, which part the pieces.

        Each special token that the tokenizer has counts as one token, as in the model's own processor. So it does in
        what a text quotes. `placeholder` is what the chat template writes for an image. If it consists of special
        tokens, it stands between the pieces: a tokenizer may cut the text after one in another way than a first text.
        `around` stands before and after it, less the two tokens that the image's own count has for it.
        """
        if not self._special:  # a copy, because the setting belongs to the tokenizer; made here, as it takes a second
            self._special.append(type(self._model).from_str(self._model.to_str()))
            self._special[0].encode_special_tokens = False
        model, images = self._special[0], len(pieces) - 1
        whole = f"{around}{placeholder}{around}".join(pieces)
        apart = model.encode(placeholder, add_special_tokens=False).ids
        is_special = not images or (bool(apart) and {*apart} <= {*model.get_added_tokens_decoder()})
        try:
            found = model.encode_batch_fast(
                [whole] if is_special else whole.split(placeholder), add_special_tokens=False
            )
        except TypeError as error:
            raise _refusal(whole) from error
        return sum(map(len, found)) - images * (len(apart) * is_special + 2 * bool(around))

    def _sum_of_lines(self, text: str, before: str = "") -> int:
        """Return the price of a text, with what comes before it. The tokens of lines are kept, since prompts show the
        same lines again at other lengths and placements.
        """
        try:
            lines = (before + text).split("\n")
            tokens = [self._kept(line) if len(line) <= MAX_LINE else self._sum_of_words(line) for line in lines]
        except TypeError as error:
            raise _refusal(text) from error
        return sum(tokens) + len(lines) - 1

    def _sum_of_words(self, line: str) -> int:
        """Return the price of a line as the sum over its words.

        No piece of Llama 2 has a blank after another character, or a newline, so no token reaches from one word into
        the next; and most words of a text are known from the texts before it.
        """
        words = _WORD.findall(line)
        try:
            return sum(map(self._words.__getitem__, words))
        except KeyError:
            pass
        kept = self._words
        if len(kept) > MAX_WORDS:  # not emptied: another thread may be reading it
            kept = {}
            object.__setattr__(self, "_words", kept)
        unknown = [word for word in set(words) if word not in kept]
        # as one text, a word a line: a batch of a few words would spend most of its time on threads
        (found,) = self._model.encode_batch_fast(["\n" + "\n".join(unknown)], add_special_tokens=False)
        ids = found.ids
        starts = [place for place, id in enumerate(ids) if id == ids[self._newline - 1]]
        lengths = (after - start - 1 for start, after in pairwise([*starts, len(ids)]))
        kept.update(zip(unknown, lengths, strict=True))
        return sum(map(kept.__getitem__, words))

    def _encoding(self, text: str) -> "Encoding":
        """Encode one text. The batch call omits the offsets, which makes it a third faster than `encode`."""
        try:
            return self._model.encode_batch_fast([text], add_special_tokens=False)[0]
        except TypeError as error:
            raise _refusal(text) from error

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return _reload, (self.name, self.sha256)


def load_tokenizer(name: str) -> TextTokenizer:
    """Load a tokenizer: `llama2` (embedded), the path of a `tokenizer.json` or a `tekken.json`, a hub id `owner/name`
    (downloaded), or that of an installed package: `tiktoken:ENCODING`, or `PACKAGE:FILE` for such a file in it.

    If a path and a hub id have the same name, the path is loaded. Only `llama2` is known to be additive, and only
    `llama2` is kept in memory.
    """
    content = tokenizer_json(name)
    return _llama2() if content is None else _build(name, content, additive=False)


def tokenizer_json(name: str) -> bytes | None:
    """Return a tokenizer that `load_tokenizer` loads as the bytes of a tokenizer.json; None for the embedded one. The
    file of a hub id is downloaded unless the local cache has it.
    """
    if name == LLAMA2:
        return None
    path, packaged = Path(name), _PACKAGED.fullmatch(name)
    try:
        if name and path.exists():
            content = read_file("tokenizer", name, path)
        elif packaged and packaged[1] == "tiktoken":
            return of_tiktoken(packaged[2])
        elif packaged:
            content = read_file("tokenizer", name, _of_package(*packaged.groups()))
        else:
            content = read_file("tokenizer", name, _of_hub(name))
        return of_tekken(content) if b'"token_bytes"' in content[:4096] else content
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        raise TokenizationError(f"tokenizer {name!r}: pip install {package} first") from error
    except TokenizationError:
        raise
    except (OSError, ValueError, LookupError, TypeError) as error:  # tiktoken's download fails with an OSError
        reason = f"{type(error).__name__}: {error}"[:300]
        raise TokenizationError(f"tokenizer {name!r} cannot be read ({reason}): check the name and the file") from error


def read_file(kind: str, name: str, path: Path) -> bytes:
    """Return the content of a tokenizer or a template, which may come with a release of others."""
    size = path.stat().st_size
    if path.is_dir():
        raise TokenizationError(f"{kind} {name!r} is a folder: give the path of the tokenizer.json in it")
    if not path.is_file():  # reading a pipe or a device might never end
        raise TokenizationError(f"{kind} {name!r}: {path} is a pipe or a device: give the path of a file")
    if size > MAX_BYTES:
        raise TokenizationError(f"{kind} {name!r}: {path} has {size:,} bytes, expected at most {MAX_BYTES:,}")
    return path.read_bytes()


def _of_package(package: str, file: str) -> Path:
    """Return the path of a file of an installed package, of which nothing is imported."""
    found = find_spec(package)
    if found is None:
        raise ModuleNotFoundError(name=package)
    folder = Path(next(iter(found.submodule_search_locations or [""]))).resolve()
    path = (folder / file).resolve()
    if not found.submodule_search_locations or folder not in path.parents:
        raise ValueError(f"{file} is no file of a package {package}")
    return path


def _of_hub(name: str) -> Path:
    if HUB_ID.fullmatch(name) and not name.endswith(".json"):
        return hub_files("tokenizer", name, "tokenizer.json")[0]
    if "/" in name or name.endswith(".json"):
        raise TokenizationError(f"tokenizer {name!r}: there is no such file; give the path of a tokenizer.json")
    hint = f"did you mean {LLAMA2!r}? " if difflib.get_close_matches(name.lower(), [LLAMA2]) else ""
    raise TokenizationError(
        f"no tokenizer {name!r}: {hint}There are {LLAMA2!r} (embedded), the path of a tokenizer.json, a hub id "
        "'owner/name', 'tiktoken:ENCODING' and 'PACKAGE:FILE'"
    )


@functools.cache
def _llama2() -> TextTokenizer:
    """Load the embedded tokenizer; `data/NOTICE` says what it is and where it comes from."""
    try:
        content = lzma.decompress((Path(__file__).parent / LLAMA2_ASSET).read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise TokenizationError(f"{LLAMA2_ASSET} cannot be read ({error}): install the package again") from error
    found = hashlib.sha256(content).hexdigest()
    if found != LLAMA2_SHA256:
        raise TokenizationError(f"{LLAMA2_ASSET}: SHA-256 {found}, expected {LLAMA2_SHA256}; install the package again")
    return _build(LLAMA2, content, additive=True)


def hub_files(kind: str, name: str, *files: str) -> list[Path]:
    """Download the files of a hub id that there are, unless the local cache has them; it must have at least one. A file
    that cannot be reached is not taken for one that it does not have.
    """
    try:
        from huggingface_hub import _CACHED_NO_EXIST, hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    except ImportError as error:
        raise TokenizationError(f"{kind} {name!r} is a hub id: install huggingface_hub, or give a path") from error
    found = []
    for file in files:
        try:
            found.append(Path(hf_hub_download(name, file)))
        except Exception as error:  # noqa: BLE001  the errors of the hub's client have no common base
            failure, is_there = error, not isinstance(error, EntryNotFoundError)
            if isinstance(
                error, LocalEntryNotFoundError
            ):  # without a connection; the cache may know that there is none
                is_there = try_to_load_from_cache(name, file) is not _CACHED_NO_EXIST
            if is_there:
                found.clear()
                break
    if not found:
        raise TokenizationError(
            f"{kind} {name!r}: no file of that path, and no {' or '.join(files)} from the hub "
            f"({type(failure).__name__}); check the id, the access rights and the connection, or give a path"
        ) from failure
    return found


def _build(name: str, content: bytes, *, additive: bool) -> TextTokenizer:
    """Build a tokenizer from the bytes of its JSON, without truncation, padding and special tokens, which would change
    a count.
    """
    from tokenizers import Tokenizer

    try:
        model = Tokenizer.from_buffer(content)
    except ValueError as error:
        raise TokenizationError(f"tokenizer {name!r} is not a tokenizer.json that can be used: {error}") from error
    model.no_truncation()
    model.no_padding()
    model.encode_special_tokens = True
    return TextTokenizer(name, hashlib.sha256(content).hexdigest(), additive, model)


def _reload(name: str, sha256: str) -> TextTokenizer:
    """Load a pickled tokenizer by name, and check that it is the same one."""
    loaded = load_tokenizer(name)
    if loaded.sha256 != sha256:
        raise TokenizationError(
            f"tokenizer {name!r} has SHA-256 {loaded.sha256}, expected {sha256}: it changed since it was pickled"
        )
    return loaded


def _refusal(text: str) -> TokenizationError:
    if not isinstance(text, str):
        return TokenizationError(f"a text is a str, not {type(text).__name__}: decode it first")
    found = _SURROGATE.search(text)
    if found is None:
        return TokenizationError(f"a text of {len(text)} characters cannot be encoded")
    return TokenizationError(
        f"a text of {len(text)} characters has the lone surrogate U+{ord(found[0]):04X} at position {found.start()}, "
        "which is not a character: replace it, for example by U+FFFD, when you read the text"
    )
