"""Audit tokens per second against raw `tokenizers` on the same prompt texts.

The audit's side is its whole path: reading a record, rebuilding its prompt, counting text and images, comparing with
what the record says. The raw side has the prompt texts in memory and only encodes them. Both take turns in one run;
the medians of the rounds are printed. Ratios are of text tokens, since raw `tokenizers` knows no images: the target is
for examples made of text. In a release of page images, the audit's time goes to reading the headers of images.
"""

import lzma
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click
from worlds import passages, spread

from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.errors import ReleaseError
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import Manifest
from mmlongbench.release.audit import Target
from mmlongbench.release.audit import audit as audit_files
from mmlongbench.release.file_audit import FileAudit
from mmlongbench.release.read_dataset import ReadDataset
from mmlongbench.release.release import Release
from tokenization import TokenCount
from tokenization.text import LLAMA2_ASSET

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LENGTH = 128 * K
TARGET = 0.7
"""Target: smallest ratio of the audit to raw `encode`."""
AUDIT, ENCODE, BATCH = "audit", "raw encode", "raw encode_batch_fast"


@dataclass(frozen=True, slots=True)
class Case:
    """A release or a file to audit, and the texts of its prompts."""

    audit: Callable[[], list[FileAudit]]
    texts: list[str]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("release", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
@click.option("--examples", type=click.IntRange(min=1), default=4, show_default=True, help="Of 128K, without RELEASE.")
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
def main(release: Path | None, examples: int, rounds: int) -> None:
    """Audit RELEASE, or else examples of 128K tokens of passages, and encode the same texts with raw `tokenizers`."""
    with _generated(examples) if release is None else _released(release) as case:
        raw = _raw()
        tokens = _check(case, raw)
        with Progress().bar("rounds", rounds) as advance:
            done = [_round(case, raw, turn, advance) for turn in range(rounds)]
    target = f">= {TARGET}" if release is None else "none: few texts, many images"
    print(f"{tokens.text} text tokens, {tokens.image} of images, {len(case.texts)} examples, {rounds} rounds: medians")
    _show(done, tokens, target)


@contextmanager
def _generated(count: int) -> Iterator[Case]:
    """Examples that are nearly all text: passages with one picture."""
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        dataset = {"name": "passages", "builder": "vrag", "lengths": [LENGTH], "sample": {"n": count}}
        manifest = Manifest.model_validate({"datasets": [{**dataset, **passages(Path(folder)), "placements": [0.5]}]})
        build(manifest, release, LocalExecutor(1, Progress(is_shown=False)))
        with _released(release) as case:
            yield case


@contextmanager
def _released(release: Path) -> Iterator[Case]:
    """Return a release from its folder."""
    files = [(file.dataset, file.path) for file in Release.open(release).files if not file.is_bundle]
    texts = [text for dataset, path in files if dataset for text in _texts(dataset, path)]
    yield Case(lambda: audit_files(Target((release,)), Progress(False)), texts)


def _texts(dataset: ReadDataset, path: Path) -> Iterator[str]:
    for _, record in dataset.builder.spec.format.unbundle(path):
        yield dataset.builder.prompt(record).text


def _check(case: Case, raw: "Tokenizer") -> TokenCount:
    """Return the tokens of all examples; both sides must count the same, or their times cannot be compared."""
    audits = case.audit()
    if problems := [f"{found.file}: {problem}" for found in audits for problem in found.first.values()]:
        raise ReleaseError(f"the audit has found problems, so its time says nothing: {problems[0]}")
    counted = TokenCount(int(sum(a.text.total for a in audits)), int(sum(a.image.total for a in audits)))
    encoded = sum(len(raw.encode(text, add_special_tokens=False)) for text in case.texts)
    if counted.text != encoded:
        raise ReleaseError(
            f"text tokens: {counted.text} by the audit, {encoded} by raw llama2: is it of another tokenizer?"
        )
    return counted


def _raw() -> "Tokenizer":
    """The embedded tokenizer without the package around it."""
    from tokenizers import Tokenizer

    content = files("tokenization").joinpath(LLAMA2_ASSET).read_bytes()
    raw: Tokenizer = Tokenizer.from_buffer(lzma.decompress(content))
    raw.encode_special_tokens = True
    return raw


def _round(case: Case, raw: "Tokenizer", turn: int, advance: Callable[[], None]) -> dict[str, float]:
    """Seconds of CPU time of each way; which one goes first changes from round to round."""
    ways: dict[str, Callable[[], object]] = {
        AUDIT: case.audit,
        ENCODE: lambda: [raw.encode(text, add_special_tokens=False) for text in case.texts],
        BATCH: lambda: [raw.encode_batch_fast([text], add_special_tokens=False) for text in case.texts],
    }
    names = list(ways)
    seconds = {}
    for name in names[turn % len(names) :] + names[: turn % len(names)]:
        began = time.process_time()
        ways[name]()
        seconds[name] = time.process_time() - began
    advance()
    return seconds


def _show(rounds: Sequence[dict[str, float]], tokens: TokenCount, target: str) -> None:
    seconds = {name: statistics.median(done[name] for done in rounds) for name in rounds[0]}
    print(f"{'':24}{'tokens/s':>12}   {'ratio of the audit':24}target")
    print(f"{AUDIT:24}{tokens.text / seconds[AUDIT]:12.0f}")
    print(f"{AUDIT + ', images counted':24}{tokens.total / seconds[AUDIT]:12.0f}")
    for name, wanted in ((ENCODE, target), (BATCH, "")):
        ratio = spread([done[name] / done[AUDIT] for done in rounds])
        print(f"{name:24}{tokens.text / seconds[name]:12.0f}   {ratio:24}{wanted}".rstrip())


if __name__ == "__main__":
    main()
