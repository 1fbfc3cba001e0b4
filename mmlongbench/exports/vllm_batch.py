"""The target `vllm-batch`: one file of requests for `vllm run-batch`, and the commands that run it.

The defaults and limits are those of vLLM 0.33.
"""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import ClassVar

from mmlongbench.documents.pixels import header_size, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.openai_lines import images_said
from mmlongbench.exports.requests import answer_tokens, request_line
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import INDEX, Describing, embedded_bytes, json_line, once, write_text
from mmlongbench.lengths import K
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example, custom_id

DECODED = 715_827_880
"""How many bytes the decoded images of a request may have by default, at 4 bytes a pixel
(`VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES`)."""
PIXELS = 178_956_970
"""How many pixels an image may have by default (`VLLM_MAX_IMAGE_PIXELS`)."""
BATCH = "batch.jsonl"
README = """# Requests for vLLM

{examples:,} requests in `{batch}`. Run them in this folder:

```sh
{run}
mmlongbench collect RELEASE results.jsonl --model {model}
```

`collect` writes the predictions for `mmlongbench score`. A server with the same settings, for `mmlongbench run` or a
client of your own:

```sh
{serve}
```

{points}- Texts and images keep their order if the chat template of the model reads the parts of a message. If vLLM logs
  that the content format of the template is `string`, add `--interleave-mm-strings`; without it, vLLM moves all images
  to the front.
- `{index}` says which example each `custom_id` is.
"""


class VllmBatch(Target):
    """Requests for `vllm run-batch`."""

    summary: ClassVar[str] = "requests for vllm run-batch, with the exact command to run or to serve"

    def write(self, export: Export) -> Exported:
        """Write `batch.jsonl`, and a page with the commands that its requests need."""
        form = export.images or "file-url"
        if form == "path":
            raise ReleaseError("--images path: vLLM takes no plain paths; use file-url, data-uri or a URL")
        describe, name, needs, copied = Describing(export), once(custom_id), _Needs(export.release.path / IMAGES), 0
        with (export.out / BATCH).open("wb") as batch, (export.out / INDEX).open("wb") as index:
            for example in export.examples():
                request = name(example)
                batch.write(request_line(request, example.messages(form), export, example))
                index.write(json_line({"custom_id": request, **describe(example)}))
                needs.add(example, answer_tokens(example, export))
                copied += embedded_bytes(example, export, form)
        folder = needs.folder() if form == "file-url" else None
        write_text(export.out / "README.md", _page(export, form, needs, folder))
        notes = [f"vLLM is allowed to read {folder} (--allowed-local-media-path)"] if folder else []
        if needs.environment:
            notes.append(f"set {' '.join(needs.environment)} when vLLM starts; see README.md")
        return Exported(needs.examples, notes=tuple(notes), bytes_copied=copied)


@dataclass
class _Needs:
    """What a server must allow, so that it takes every request."""

    images: Path
    """The folder of the images."""
    examples: int = 0
    longest: int = 0
    """The tokens of the longest prompt with its answer."""
    most_images: int = 0
    """The largest number of images of a prompt."""
    most_decoded: int = 0
    """The largest size of the decoded images of a prompt, in bytes."""
    most_pixels: int = 0
    """The largest number of pixels of an image."""
    _pixels: dict[str, int] = field(default_factory=dict)

    def add(self, example: Example, answer: int) -> None:
        """Take an example into account."""
        pixels = [self._pixels_of(image) for image in example.prompt.images]
        self.examples += 1
        self.longest = max(self.longest, example.tokens.total + answer)
        self.most_images = max(self.most_images, len(pixels))
        self.most_decoded = max(self.most_decoded, 4 * sum(pixels))
        self.most_pixels = max(self.most_pixels, *pixels, 0)

    def folder(self) -> Path | None:
        """Return the smallest folder that holds all images, with links followed; None if there are none.

        Raises:
            ReleaseError: only the root of the file system holds all images.

        """
        folders = {(self.images / image).resolve().parent for image in self._pixels}
        if not folders:
            return None
        found = Path(os.path.commonpath(folders))
        if found == found.parent:
            raise ReleaseError(
                f"{self.images}: only {found} holds all images; vLLM would be allowed to read every file"
            )
        return found

    @property
    def environment(self) -> tuple[str, ...]:
        """The variables that vLLM must be started with."""
        decoded = ("VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES=0",) if self.most_decoded > DECODED else ()
        pixels = (f"VLLM_MAX_IMAGE_PIXELS={self.most_pixels}",) if self.most_pixels > PIXELS else ()
        return (*decoded, *pixels)

    @property
    def window(self) -> int:
        """The length of a context that every request fits, a multiple of 1,024."""
        return -(-self.longest // K) * K

    def _pixels_of(self, image: str) -> int:
        if image not in self._pixels:
            try:
                width, height = header_size(self.images / image)
            except unreadable() as error:
                raise ReleaseError(f"image {image!r}: cannot be read: {type(error).__name__}: {error}"[:200]) from error
            self._pixels[image] = width * height
        return self._pixels[image]


def _page(export: Export, form: str, needs: _Needs, folder: Path | None) -> str:
    model = shlex.quote(export.model or "MODEL")
    options = {"--max-model-len": str(needs.window)}
    points = [
        f"`--max-model-len`: the longest request has {needs.longest:,} tokens with its answer, as the release "
        "counts them (text in Llama 2 tokens, an image as 28 × 28 pixels a token). A model with other "
        "tokens may need more: see `mmlongbench audit RELEASE --models NAME`."
    ]
    if needs.most_images:
        options["--limit-mm-per-prompt"] = json.dumps({"image": needs.most_images})
        points.append(f"`--limit-mm-per-prompt`: the prompt with the most images has {needs.most_images:,}.")
        points.append(images_said(form))
    if folder:
        options["--allowed-local-media-path"] = str(folder)
        points.append("`--allowed-local-media-path` is the smallest folder that holds every image.")
    if variables := " ".join(needs.environment):
        points.append(
            f"`{variables}`: the images of a request have up to {needs.most_decoded:,} bytes when they are decoded. By "
            f"default, vLLM refuses requests over {DECODED:,}, and images over {PIXELS:,} pixels."
        )
    start = "".join(f"{variable} " for variable in needs.environment)
    return README.format(
        examples=needs.examples,
        batch=BATCH,
        run=f"{start}vllm run-batch -i {BATCH} -o results.jsonl --model {model}{_said(options)}",
        serve=f"{start}vllm serve {model}{_said(options)}",
        model=model,
        points="".join(map(_point, points)),
        index=INDEX,
    )


def _said(options: Mapping[str, str]) -> str:
    return "".join(f" {option} {shlex.quote(value)}" for option, value in options.items())


def _point(text: str) -> str:
    """Return a text as a point of a list, with the line ends of a page."""
    return fill(text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False) + "\n"
