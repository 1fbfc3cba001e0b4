"""A release whose names, texts and answers are hostile to the formats of other tools."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
FOLDER = "mmlongbench-doc/a b#%41 'x' \"y\"é[1]\t*?&;$x{z}\udcff"
"""A folder of images, with what URLs, shells, glob patterns, templates and tables take for something else,
and a byte that is not UTF-8."""
RECORDS: tuple[Mapping[str, Any], ...] = (
    {
        "id": "0012",
        "answer": "0012",
        "question": "tabs\tand\r\nlines\rof\nall \u2028kinds \x85, and \"quotes\", 'too'?",
    },
    {"id": "2017-01-01", "answer": "2017-01-01", "question": "Where is <image token>, or < image >, or <Image>?"},
    {"id": 'a/b, "c"\n=1+1', "answer": "None", "question": "$name ${name} $$ {x} {{y}} %s \\n \\ <b>é 漢 😀</b>"},
    {"id": "N/A", "answer": "N/A", "question": "N/A"},
    {"id": " nan ", "answer": "null", "question": "\x00\x01\x1b[31m \ufeff \u202e"},
    {"id": "12", "answer": "12", "answer_format": "Integer", "question": "---\n- a: &b *c !d\n# not a heading\n```"},
)
"""What replaces fields of the records, in the order of the file."""
CHANGED = 1
"""How many of the questions have a marker of VLMEvalKit."""


def spoil(release: Path, to: Path) -> Path:
    """Copy the tiny release, and replace the names of its images, and fields of its records."""
    shutil.copytree(release, to)
    lock = json.loads((to / "build.lock.json").read_text("utf-8"))
    renamed = {}
    for path in sorted((to / "mmlb_image").rglob("*.jpg")):
        old = path.relative_to(to / "mmlb_image").as_posix()
        renamed[old] = f"{FOLDER}/{path.parent.name}/{path.stem.replace('_', '#')}{path.suffix}"
        new = to / "mmlb_image" / renamed[old]
        new.parent.mkdir(parents=True, exist_ok=True)
        path.rename(new)
        lock["files"][f"mmlb_image/{renamed[old]}"] = lock["files"].pop(f"mmlb_image/{old}")
    lines = [json.loads(line) for line in (to / FILE).read_text("utf-8").split("\n") if line]
    assert len(lines) == len(RECORDS)
    for line, record in zip(lines, RECORDS, strict=True):
        line |= {"answer_format": "String", **record}
        line["page_list"] = [renamed[path] for path in line["page_list"]]
    (to / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (to / FILE.replace("K1", "K2")).unlink()
    del lock["files"][FILE.replace("K1", "K2")]
    (to / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    return to
