"""The target `openai`: one line for each example, with the messages of OpenAI's chat completions and the metadata
of the example.
"""

from pathlib import PurePosixPath
from textwrap import fill
from typing import ClassVar

from mmlongbench.exports.target import Export, Exported, Target, images_said, json_line


class OpenAILines(Target):
    """Messages of chat completions, one example a line, for clients of your own."""

    summary: ClassVar[str] = "chat messages, one JSON object an example, for a client of your own"
    without_model: ClassVar[str] = "the lines hold messages, not requests"

    def write(self, export: Export) -> Exported:
        """Write a file for each dataset and length, with the names of the public files."""
        form = export.images or "file-url"
        copied, counts = 0, dict[str, int]()
        for cell in export.cells:
            public = export.release.file(cell.dataset, cell.length).name
            name = PurePosixPath(public).with_suffix(".jsonl").as_posix()
            path, count = export.out / name, 0
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for example in cell.examples():
                    line = {"messages": example.messages(form), "metadata": export.describe(example)}
                    file.write(json_line(line))
                    copied += export.embedded_bytes(example, form)
                    count += 1
            if count:
                counts[name] = count
            else:
                path.unlink()
        said, first = fill(images_said(form), 120), next(iter(counts), "")
        export.write_page("openai.md", images=said, first=first)
        return Exported(sum(counts.values()), bytes_copied=copied)
