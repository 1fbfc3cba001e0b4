"""The target `openai`: one line for each example, with the messages of OpenAI's chat completions and the metadata
of the example.
"""

from collections import Counter
from itertools import chain
from pathlib import PurePosixPath
from textwrap import fill
from typing import ClassVar

from mmlongbench.exports.harness import write_template
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import Describing, embedded_bytes, json_line, refuse_model, write_lines
from mmlongbench.release.release import Example

IMAGES = {
    "file-url": "Images are `file://` URLs of the release, so the release must stay where it is. A server must be "
    "allowed to read it, as vLLM is by `--allowed-local-media-path`.",
    "path": "Images are absolute paths of the release, so the release must stay where it is. SGLang and `transformers "
    "serve` take paths; vLLM and OpenAI do not.",
    "data-uri": "Images are in the lines themselves, in base64.",
}
"""What the page says of images, by form."""


class OpenAILines(Target):
    """Messages of chat completions, one example a line, for clients of your own."""

    summary: ClassVar[str] = "chat messages, one JSON object an example, for a client of your own"

    def write(self, export: Export) -> Exported:
        """Write a file for each dataset and length, with the names of the public files."""
        refuse_model(export, "the lines hold messages, not requests")
        form = export.images or "file-url"
        describe, copied, written = Describing(export), Counter[str](), Counter[str]()

        def line(example: Example) -> bytes:
            copied["bytes"] += embedded_bytes(example, export, form)
            return json_line({"messages": example.messages(form), "metadata": describe(example)})

        for cell in export.cells:
            examples = cell.examples()
            if head := next(examples, None):
                name = str(PurePosixPath(head.file).with_suffix(".jsonl"))
                written[name] = write_lines(export.out / name, map(line, chain([head], examples)))
        said, first = fill(images_said(form), 120), next(iter(written), "")
        write_template(export.out / "README.md", "openai.md", images=said, first=first)
        return Exported(written.total(), bytes_copied=copied.total())


def images_said(form: str) -> str:
    """Return what the page of an export says about its images, by the form in which they are given."""
    return (
        IMAGES.get(form)
        or f"Images are URLs below {form}, where the folder `mmlb_image/` of the release must be served."
    )
