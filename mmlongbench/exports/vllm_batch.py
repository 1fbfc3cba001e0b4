"""The target `vllm-batch`: one file of requests for `vllm run-batch`, and the commands that run it.

The defaults and limits are those of vLLM 0.33.
"""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import ClassVar

from mmlongbench.documents.pixels import header_size, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.target import INDEX, Export, Exported, Target, images_said, json_line, once
from mmlongbench.lengths import K
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import custom_id

DECODED = 715_827_880
"""How many bytes the decoded images of a request may have by default, at 4 bytes a pixel
(`VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES`)."""
PIXELS = 178_956_970
"""How many pixels an image may have by default (`VLLM_MAX_IMAGE_PIXELS`)."""
BATCH = "batch.jsonl"


class VllmBatch(Target):
    """Requests for `vllm run-batch`."""

    summary: ClassVar[str] = "requests for vllm run-batch, with the exact command to run or to serve"
    image_forms: ClassVar[str] = "(?!path$).*"
    image_advice: ClassVar[str] = "vLLM takes no plain paths; use file-url, data-uri or a URL"

    def write(self, export: Export) -> Exported:
        """Write `batch.jsonl`, and a page with the commands that its requests need."""
        form, name, root = export.images or "file-url", once(custom_id), export.release.path / IMAGES
        pixels_of: dict[str, int] = {}
        examples = copied = longest = most_images = most_pixels = 0
        with (export.out / BATCH).open("wb") as batch, (export.out / INDEX).open("wb") as index:
            for example in export.examples():
                request, images = name(example), example.prompt.images
                batch.write(export.request(request, example, example.messages(form)))
                index.write(json_line({"custom_id": request, **export.describe(example)}))
                for image in images:
                    if image not in pixels_of:
                        pixels_of[image] = _pixels(root, image)
                examples += 1
                longest = max(longest, example.tokens.total + export.answer_tokens(example))
                most_images = max(most_images, len(images))
                most_pixels = max(most_pixels, sum(pixels_of[image] for image in images))
                copied += export.embedded_bytes(example, form)
        folder = _common_folder(root, list(pixels_of)) if form == "file-url" else None
        decoded, largest = 4 * most_pixels, max(pixels_of.values(), default=0)
        variables = ["VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES=0"] if decoded > DECODED else []
        variables += [f"VLLM_MAX_IMAGE_PIXELS={largest}"] if largest > PIXELS else []
        options = {"--max-model-len": str(-(-longest // K) * K)}
        points = [
            f"`--max-model-len`: the longest request has {longest:,} tokens with its answer, as the release "
            f"counts them ({export.counted_as}). A model with other tokens may need "
            "more: see `mmlongbench audit RELEASE --count-as NAME`."
        ]
        if most_images:
            options["--limit-mm-per-prompt"] = json.dumps({"image": most_images})
            points.append(f"`--limit-mm-per-prompt`: the prompt with the most images has {most_images:,}.")
            points.append(images_said(form))
        if folder:
            options["--allowed-local-media-path"] = str(folder)
            points.append("`--allowed-local-media-path` is the smallest folder that holds every image.")
        if variables:
            points.append(
                f"`{' '.join(variables)}`: the images of a request have up to {decoded:,} bytes when they are decoded. "
                f"By default, vLLM refuses requests over {DECODED:,}, and images over {PIXELS:,} pixels."
            )
        said = "".join(f" {option} {shlex.quote(value)}" for option, value in options.items())
        start, model = "".join(f"{variable} " for variable in variables), shlex.quote(export.model or "MODEL")
        export.write_page(
            "vllm_batch.md",
            examples=f"{examples:,}",
            batch=BATCH,
            run=f"{start}vllm run-batch -i {BATCH} -o results.jsonl --model {model}{said}",
            serve=f"{start}vllm serve {model}{said}",
            model=model,
            points="".join(_point(point) for point in points),
            index=INDEX,
        )
        notes = [f"vLLM is allowed to read {folder} (--allowed-local-media-path)"] if folder else []
        if variables:
            notes.append(f"set {' '.join(variables)} when vLLM starts; see README.md")
        return Exported(examples, notes=tuple(notes), bytes_copied=copied)


def _point(text: str) -> str:
    """Return a text as a point of a list, with the line ends of a page."""
    return fill(text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False) + "\n"


def _pixels(root: Path, image: str) -> int:
    try:
        width, height = header_size(root / image)
    except unreadable() as error:
        raise ReleaseError(f"image {image!r}: cannot be read: {type(error).__name__}: {error}"[:200]) from error
    return width * height


def _common_folder(root: Path, images: Sequence[str]) -> Path | None:
    """Return the smallest folder of all images (links followed), if any; raises ReleaseError if it is the root."""
    if not images:
        return None
    folder = Path(os.path.commonpath({(root / image).resolve().parent for image in images}))
    if folder == folder.parent:
        raise ReleaseError(f"{root}: only {folder} holds all images; vLLM would be allowed to read every file")
    return folder
