"""The target `openai-batch`: files of requests for OpenAI's Batch API, split at its limits.

The limits are those of the API's reference: 50,000 requests and 200 MB a file, 1,500 images and 512 MB a request. A
request is in one file, so the limit of a file is the smaller one.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import ClassVar, Literal

from mmlongbench.documents.pixels import opened, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.target import INDEX, Export, Exported, Target, images_said, json_line, named, once
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
_RESERVE = "the number of tokens that the release keeps free"
DETAIL: Literal["high"] = "high"
"""How finely a model sees an image: the finest value that all vision models of the API take."""


class OpenAIBatch(Target):
    """Requests for OpenAI's Batch API."""

    summary: ClassVar[str] = "requests for OpenAI's Batch API, in files below its limits (needs --model)"
    image_forms: ClassVar[str] = "data-uri|https?://.*"
    image_advice: ClassVar[str] = "the API cannot read files of this machine; use data-uri, or a public https:// URL"

    def write(self, export: Export) -> Exported:
        """Write `batch-001.jsonl` and so on; examples that no request can hold are named."""
        if not export.model:
            raise ReleaseError("--model: is missing; every request names its model")
        form, name, format_of = export.images or "data-uri", once(custom_id), _formats(export)
        left_out, copied, requests, shards, size, lines = list[str](), 0, 0, 0, 0, 0
        with (export.out / INDEX).open("wb") as index, ExitStack() as stack:
            for example in export.examples():
                request, line = name(example), b""
                reason = _unfit(example, format_of)
                if not reason:
                    line = export.request(request, example, _with_detail(example.messages(form)))
                    reason = f"a request of {len(line):,} bytes; a file may have {SHARD:,}" if len(line) > SHARD else ""
                if reason:
                    left_out.append(f"{named(example)}: {reason}")
                    continue
                if not shards or size + len(line) > SHARD or lines == MAX_REQUESTS:
                    shards, size, lines = shards + 1, 0, 0
                    stack.close()
                    batch = stack.enter_context((export.out / f"batch-{shards:03}.jsonl").open("wb"))
                batch.write(line)
                size, lines, requests = size + len(line), lines + 1, requests + 1
                index.write(json_line({"custom_id": request, **export.describe(example)}))
                copied += export.embedded_bytes(example, form)
        export.write_page(
            "openai_batch.md",
            files="One file" if shards == 1 else f"{shards} files",
            examples=f"{requests:,}",
            model=export.model,
            limit=MAX_FILE // 10**6,
            requests=f"{MAX_REQUESTS:,}",
            images=images_said(form),
            detail=DETAIL,
            tokens=f"{export.max_tokens:,}" if export.max_tokens else _RESERVE,
            index=INDEX,
            left_out="".join(f"- left out: {each}\n" for each in left_out),
        )
        notes = (f"images are sent with detail {DETAIL}; a model shrinks an image that is larger than its limit",)
        return Exported(requests, tuple(left_out), notes, copied)


def _unfit(example: Example, format_of: Callable[[str], str]) -> str:
    """Return why a request cannot hold an example; empty if it has few enough images, all of known formats."""
    images = example.prompt.images
    if len(images) > MAX_IMAGES:
        return f"{len(images):,} images; a request may have {MAX_IMAGES:,}"
    strange = (image for image in images if format_of(image) not in FORMATS)
    if (image := next(strange, None)) is not None:
        return f"image {image}: is {format_of(image)}; the API takes PNG, JPEG, WEBP and GIF"
    return ""


def _formats(export: Export) -> Callable[[str], str]:
    """Return a function that says the format of an image, which it looks up once."""

    @cache
    def format_of(image: str) -> str:
        try:
            with opened(export.release.path / IMAGES / image) as picture:
                return str(picture.format)
        except unreadable() as error:
            raise ReleaseError(f"image {image!r}: cannot be read: {type(error).__name__}: {error}"[:200]) from error

    return format_of


def _with_detail(messages: list[Message]) -> list[Message]:
    """Return messages whose images say how finely they are seen; without it, models choose different values."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                part["image_url"]["detail"] = DETAIL
    return messages
