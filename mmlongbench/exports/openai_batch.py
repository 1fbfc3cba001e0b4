"""The target `openai-batch`: files of requests for OpenAI's Batch API, split at its limits.

The limits are those of the API's reference: 50,000 requests and 200 MB a file, 1,500 images and 512 MB a request. A
request is in one file, so the limit of a file is the smaller one.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, ClassVar, Literal, Self

from mmlongbench.documents.pixels import opened, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.openai_lines import images_said
from mmlongbench.exports.requests import request_line
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import INDEX, Describing, embedded_bytes, json_line, named, once, write_text
from mmlongbench.messages import Message
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example, custom_id

MAX_REQUESTS = 50_000
"""The maximum number of requests of a file."""
MAX_FILE = 200_000_000
"""The maximum size of a file in bytes."""
SHARD = MAX_FILE * 95 // 100
"""The size up to which files are filled; the rest is spare."""
MAX_IMAGES = 1_500
"""The maximum number of images of a request."""
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "GIF")
"""The formats of images that the API takes, as Pillow calls them."""
DETAIL: Literal["high"] = "high"
"""How finely a model sees an image: the finest value that all vision models of the API take."""
README = """# Requests for OpenAI's Batch API

{files} with {examples:,} requests for `{model}`. Each file is below {limit} MB and has at most {requests:,} requests,
which are the limits of the API.

```python
from pathlib import Path
from openai import OpenAI

client = OpenAI()
for path in sorted(Path(".").glob("batch-*.jsonl")):
    file = client.files.create(file=path, purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    Path(f"{{path.stem}}.id").write_text(batch.id)
```

When a batch has ended, download its output file and, if there is one, its error file. Then run
`mmlongbench collect RELEASE OUTPUT.jsonl ERRORS.jsonl --model {model}`, which writes the predictions for
`mmlongbench score`.

- {images} `detail` is `{detail}` for each image. A model shrinks an image that is larger than its limit for this
  detail.
- `max_completion_tokens` is {tokens}. Reasoning counts as a part of it: raise it for a model that reasons
  (`--max-tokens`).
- `{index}` says which example each `custom_id` is.
{left_out}"""


class OpenAIBatch(Target):
    """Requests for OpenAI's Batch API."""

    summary: ClassVar[str] = "requests for OpenAI's Batch API, in files below its limits (needs --model)"

    def write(self, export: Export) -> Exported:
        """Write `batch-001.jsonl` and so on; examples that no request can hold are named."""
        if not export.model:
            raise ReleaseError("--model: is missing; every request names its model")
        form = export.images or "data-uri"
        if form != "data-uri" and not form.startswith(("https://", "http://")):
            raise ReleaseError(
                f"--images {form}: the API cannot read files of this machine; use data-uri, or a public https:// URL"
            )
        fits, describe, name = _Fitting(export), Describing(export), once(custom_id)
        left_out, copied = [], 0
        with _Shards(export.out) as shards, (export.out / INDEX).open("wb") as index:
            for example in export.examples():
                request = name(example)
                reason, line = fits.reason(example), b""
                if not reason:
                    line = request_line(request, _with_detail(example.messages(form)), export, example)
                    reason = f"a request of {len(line):,} bytes; a file may have {SHARD:,}" if len(line) > SHARD else ""
                if reason:
                    left_out.append(f"{named(example)}: {reason}")
                    continue
                shards.add(line)
                index.write(json_line({"custom_id": request, **describe(example)}))
                copied += embedded_bytes(example, export, form)
        write_text(export.out / "README.md", _page(export, form, shards, left_out))
        notes = (f"images are sent with detail {DETAIL}; a model shrinks an image that is larger than its limit",)
        return Exported(shards.requests, tuple(left_out), notes, copied)


class _Fitting:
    """Says whether a request can hold an example; the format of an image is looked up once."""

    def __init__(self, export: Export) -> None:
        self._folder = export.release.path / IMAGES
        self._formats: dict[str, str] = {}

    def reason(self, example: Example) -> str:
        """Return why a request cannot hold an example; empty if it has few enough images, all of known formats."""
        images = example.prompt.images
        if len(images) > MAX_IMAGES:
            return f"{len(images):,} images; a request may have {MAX_IMAGES:,}"
        for image in images:
            if image not in self._formats:
                self._formats[image] = self._format(image)
            if self._formats[image] not in FORMATS:
                return f"image {image}: is {self._formats[image]}; the API takes PNG, JPEG, WEBP and GIF"
        return ""

    def _format(self, image: str) -> str:
        try:
            with opened(self._folder / image) as picture:
                return str(picture.format)
        except unreadable() as error:
            raise ReleaseError(f"image {image!r}: cannot be read: {type(error).__name__}: {error}"[:200]) from error


class _Shards:
    """Writes lines to `batch-001.jsonl`, `batch-002.jsonl` and so on, each below the limits."""

    def __init__(self, folder: Path) -> None:
        self.requests, self.files = 0, 0
        self._folder = folder
        self._open: BinaryIO | None = None
        self._bytes, self._lines = 0, 0

    def add(self, line: bytes) -> None:
        """Write a line to the current file, or to a new one if the current one is full."""
        if self._open is None or self._bytes + len(line) > SHARD or self._lines == MAX_REQUESTS:
            self._next()
        if self._open is not None:
            self._open.write(line)
        self._bytes, self._lines, self.requests = self._bytes + len(line), self._lines + 1, self.requests + 1

    def _next(self) -> None:
        self._close()
        self.files += 1
        self._open = (self._folder / f"batch-{self.files:03}.jsonl").open("wb")
        self._bytes, self._lines = 0, 0

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()


def _with_detail(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages whose images say how finely they are seen; without it, models choose different values."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                part["image_url"]["detail"] = DETAIL
    return messages


def _page(export: Export, form: str, shards: _Shards, left_out: Sequence[str]) -> str:
    tokens = f"{export.max_tokens:,}" if export.max_tokens else "the number of tokens that the release keeps free"
    missing = "".join(f"- left out: {each}\n" for each in left_out)
    return README.format(
        files="One file" if shards.files == 1 else f"{shards.files} files",
        examples=shards.requests,
        model=export.model,
        limit=f"{MAX_FILE // 10**6}",
        requests=MAX_REQUESTS,
        images=images_said(form),
        detail=DETAIL,
        tokens=tokens,
        index=INDEX,
        left_out=missing,
    )
