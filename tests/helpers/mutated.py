"""Hostile changes of valid input: bytes, values of JSON and YAML, whole files. Hypothesis makes every choice."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mmlongbench.errors import DraftError, MMLongBenchError

MOST = int(os.environ.get("MMLONGBENCH_FUZZ", "0"))
"""Examples of each test in a long run. By default each test has a few, which are the same everywhere."""
# fmt: off
TEXTS = (
    "", " ", "\0", "\ud800", "a\udfffb", "<image>", "../../etc/passwd", "/etc/passwd", "/dev/zero", "a\0b", "x" * 5000,
    "x/" * 3000, "[" * 3000, "['\\ud800']", "[1, 0xffffffffffffffffffffffff]", "(((((1,),),),),)", "\u0661\u0662",
    "1e999", "7" * 5000, "_" + "7" * 5000, "a\nb\r\nc\u2028d", "%s {0} {name}", "hub:a/b",
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 10**30, -(10**300), 1.5, float("nan"), float("inf"), [], {}, [[]],
)
NESTED = b"[" * 500 + b"]" * 500
CHUNKS = (b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\n", b"\r", b'"', b"{", b"}", b"[]", b"null", b"\x1f\x8b")
BLOCKS = (
    b"9" * 5000, b"NaN", b"-Infinity", b"1e400", b"\xef\xbb\xbf", b"\x7f\xff\xff\xff", b"\xff" * 4, bytes(4), NESTED,
)
# fmt: on

hostile_values = st.one_of(
    st.sampled_from(VALUES),
    st.sampled_from(TEXTS),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
)


def fuzzing(examples: int) -> settings:
    """The settings of a fuzz test: so many examples, the same everywhere; or `MOST`, each time others."""
    unchecked = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    few = settings(deadline=None, suppress_health_check=unchecked, max_examples=examples, database=None)
    return settings(few, max_examples=MOST, derandomize=False) if MOST else few


@contextmanager
def refusal_or_none(file: str = "") -> Iterator[None]:
    """Run a block that may raise an error for users, which must be short and name a file."""
    try:
        yield
    except DraftError:  # a task of this project has crashed
        raise
    except MMLongBenchError as error:
        said = str(error)
    else:
        return
    assert said.strip()
    assert len(said) < 3_000
    assert file in said


def changed_bytes(draw: Callable[..., Any], data: bytes) -> bytes:
    """Bytes with up to eight changes: overwritten, taken out, put in, doubled, cut off."""
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        new = draw(st.sampled_from(CHUNKS) | st.sampled_from(BLOCKS) | st.binary(max_size=8))
        change = draw(st.sampled_from(("write", "put", "double", "cut")))
        if change == "write":
            data = data[:start] + new + data[start + len(new) :]
        elif change == "put":
            data = data[:start] + new + data[end:]
        elif change == "double":
            data = data[:end] + data[start:]
        elif draw(st.integers(0, 3)) == 0:
            data = data[:start]
    return data


def changed_value(draw: Callable[..., Any], value: Any, depth: int = 0) -> Any:
    """A value with one change somewhere inside: another value, a key taken out, renamed or put in, an item doubled."""
    if not isinstance(value, dict | list) or not value or (depth and draw(st.integers(0, 5)) == 0):
        return draw(hostile_values)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    change = draw(st.sampled_from(("inside", "inside", "inside", "inside", "out", "double")))
    if isinstance(value, dict):
        rest = {other: inner for other, inner in value.items() if other != key}
        if change == "inside":
            return {**value, key: changed_value(draw, value[key], depth + 1)}
        return rest if change == "out" else {**rest, draw(st.sampled_from(TEXTS)): value[key]}
    before, after = value[:key], value[key + 1 :]
    if change == "inside":
        return [*before, changed_value(draw, value[key], depth + 1), *after]
    return [*before, *after] if change == "out" else [*before, value[key], *value[key:]]


def changed_file(draw: Callable[..., Any], path: Path) -> bytes:
    """A file's bytes, changed: by its values where it is JSON or lines of JSON, or as bytes."""
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl") or draw(st.integers(0, 2)) == 0:
        return changed_bytes(draw, data)
    try:
        return json.dumps(changed_value(draw, json.loads(data))).encode()
    except ValueError:
        lines = data.splitlines()[:40]
    at = draw(st.integers(0, len(lines) - 1))
    lines[at] = json.dumps(changed_value(draw, json.loads(lines[at]))).encode()
    return b"\n".join(lines)
