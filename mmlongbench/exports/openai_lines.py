"""The target `openai`: one line an example, with the messages of OpenAI's chat completions and what describes the
example.
"""

from collections import Counter
from itertools import chain
from pathlib import PurePosixPath
from textwrap import fill
from typing import ClassVar

from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import Describing, embedded_bytes, json_line, refuse_model, write_lines, write_text
from mmlongbench.release.opened import Example

README = """# Chat messages of a release, one example a line

Each line of `<folder>/<name>.jsonl` has two fields:

- `messages` is what a model is sent: the messages of a chat completion, with texts and images in reading order.
- `metadata` describes the example. No server is sent it. `file`, `id` and `depth` or `permutation` name the example in
  a line of predictions; `metric` is the metric that scores `answer`.

{images}

```python
import json
from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")
with open("predictions.jsonl", "w") as out:
    for line in open("{first}"):
        example = json.loads(line)
        reply = client.chat.completions.create(model="MODEL", messages=example["messages"])
        key = {{k: v for k, v in example["metadata"].items() if k in ("file", "id", "depth", "permutation", "digest")}}
        print(json.dumps({{**key, "prediction": reply.choices[0].message.content}}), file=out)
```

Then run `mmlongbench score RELEASE predictions.jsonl`.
"""
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
        text = README.format(images=fill(images_said(form), 120), first=next(iter(written), ""))
        write_text(export.out / "README.md", text)
        return Exported(written.total(), bytes_copied=copied.total())


def images_said(form: str) -> str:
    """Return what a page says of images in a form."""
    return (
        IMAGES.get(form)
        or f"Images are URLs below {form}, where the folder `mmlb_image/` of the release must be served."
    )
