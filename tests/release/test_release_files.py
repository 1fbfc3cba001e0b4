"""The files of a release: their names and lines, the lock, the items; they appear whole or not at all."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from needs import library, shared
from PIL import Image, ImageOps
from tiny import command, draw_source, hashes, lock, records

import mmlongbench.task as mt
from mmlongbench.io.files import write_whole

TEMPLATES = (
    "documentQA/{name}_K{k}.jsonl",
    "vrag/{name}_K{k}_dep{placements}.jsonl",
    "NIAH/{name}_test_{questions}_K{k}_dep{placements}.jsonl",
    "ICL/{name}_K{k}.json",
)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)


@given(st.sampled_from(TEMPLATES), names, st.integers(1, 4096), st.integers(0, 9999), st.integers(1, 6))
def test_a_pattern_reads_back_what_it_wrote(template: str, name: str, k: int, questions: int, placements: int) -> None:
    pattern = mt.readers.FilePattern(template)
    assert pattern.recognise(pattern.write(name, k * 1024, questions, placements)) == (name, k * 1024)


@given(st.text(max_size=40))
def test_a_pattern_recognises_nothing_that_it_would_not_write(path: str) -> None:
    for template in TEMPLATES:
        assume(not path.startswith(template.split("{")[0]))
        assert mt.readers.FilePattern(template).recognise(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "documentQA/x_K8.json",
        "documentQA/x_K8.jsonl.tmp",
        "documentQA/x_K8_jsonl",
        "documentQA/a/x_K8.jsonl",
        "../documentQA/x_K8.jsonl",
        "documentQA/_K8.jsonl",
        "documentQA/x_K.jsonl",
        "documentQA/x_K0.jsonl",
        "documentQA/x_K08.jsonl",
        "documentQA/x_k8.jsonl",
    ],
)
def test_a_name_that_is_nearly_right_is_not_recognised(path: str) -> None:
    found = mt.readers.FilePattern(TEMPLATES[0]).recognise(path)
    assert found is None


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())), max_size=5))
def test_json_lines_come_back_as_they_went(
    tmp_path_factory: pytest.TempPathFactory, written: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.jsonl"
    path.write_bytes(b"".join(mt.readers.JsonLines().bundle(written)))
    assert [record for _, record in mt.readers.JsonLines().unbundle(path)] == written
    assert [where for where, _ in mt.readers.JsonLines().unbundle(path)] == [
        f"line {n + 1}" for n in range(len(written))
    ]
    assert path.read_bytes().count(b"\n") == len(written)


def test_an_undecodable_byte_of_a_name_can_be_written_and_read() -> None:
    (line,) = mt.readers.JsonLines().bundle([{"name": "\udcff"}])
    assert json.loads(line) == {"name": "\udcff"}


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new/file"

    def half() -> Iterator[bytes]:
        yield b"half"
        assert [*path.parent.iterdir()] != [path]
        raise ZeroDivisionError

    for before in ([], [path]):
        with pytest.raises(ZeroDivisionError):
            write_whole(path, half())
        assert [*path.parent.iterdir()] == before
        write_whole(path, [b"wh", b"ole"])
        assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_sizes_are_those_after_exif_rotation_and_are_read_from_headers_alone(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.effect_noise((600, 200), 90).save(tmp_path / "a.jpg", exif=exif)
    with Image.open(tmp_path / "a.jpg") as picture:
        shown = ImageOps.exif_transpose(picture).size
    with (tmp_path / "a.jpg").open("r+b") as file:
        file.truncate(1000)  # the header is whole, the pixels are not
    (counted,) = map(json.loads, command("count", tmp_path / "a.jpg", "--json").out.splitlines())
    assert counted["what"] == "{} × {}".format(*shown)
    assert shown == ((600, 200) if orientation < 5 else (200, 600))


MAKERS = {"mmlongbench", "pillow", "pymupdf", "tokenizers", "pyarrow", "tantivy", "numpy", "libjpeg-turbo"}
"""What makes bytes of a release."""


def test_the_lock_has_every_file_and_what_made_it(finished: Path) -> None:
    data, found = lock(finished), hashes(finished)
    found.pop("build.lock.json")
    assert {path: file["sha256"] for path, file in data["files"].items()} == found
    assert all(file["bytes"] == (finished / path).stat().st_size for path, file in data["files"].items())
    assert data["versions"].keys() == MAKERS
    (dataset,) = data["manifest"]
    assert dataset["source"].keys() == dataset["source_sha256"].keys() == {"samples", "documents"}
    assert data["datasets"]["mmlongdoc"]["licence"] == "none"


def test_the_items_say_what_stands_where_in_every_prompt(finished: Path) -> None:
    for length in ("1K", "2K"):
        rows = pq.read_table(finished / "items" / "documentQA" / f"mmlongdoc_K{length[0]}.parquet").to_pylist()
        for record in records(finished, length):
            items = [row for row in rows if row["id"] == record["id"]]
            assert [item["image"] for item in items] == record["page_list"]
            assert [item["position"] for item in items] == list(range(len(items)))
            assert sum(item["image_tokens"] for item in items) == record["tokens"]["image"]
            assert {item["role"] for item in items if record["doc_name"] in item["image"]} == {"own"}
            starts = [item["start"] for item in items]
            assert starts == sorted(set(starts))


def test_the_independent_validator_agrees(finished: Path) -> None:
    library("sentencepiece", "test")  # with which it counts
    words = [sys.executable, str(shared("validate_release.py")), str(finished)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed"


READER = '''"""Own documents whose names are written in capital letters."""

from builders.docvqa.own_documents import OwnDocuments
from builders.docvqa.rows import DocumentQuestion
from mmlongbench.task import Fault
from mmlongbench.task.readers import RawRow, SourcePaths


class Shouted(OwnDocuments):
    """Reads documents, and changes their names to lower case."""

    def row(self, raw: RawRow, sources: SourcePaths) -> DocumentQuestion | Fault:
        """Return the row with the name of its document in lower case."""
        raw.fields["doc"] = str(raw.fields["doc"]).lower()
        return super().row(raw, sources)
'''


def test_a_reader_in_a_file_works_with_an_installed_builder(tmp_path: Path) -> None:
    draw_source(tmp_path)
    (tmp_path / "questions.csv").write_text("doc,question,answer,pages\nBIRCH,What is its bark?,white,2\n")
    (tmp_path / "shouted.py").write_text(READER)
    (tmp_path / "m.yaml").write_text(
        "datasets: [{name: trees, builder: docvqa, reader: 'shouted.py:Shouted', lengths: [1K], admission_length: 1K, "
        "source: {questions: questions.csv, documents: documents}, reserve: 64}]"
    )
    ran = command("build", tmp_path / "m.yaml", "--out", tmp_path / "out", "--workers", 1)
    assert (ran.code, ran.err) == (0, "note: the code of shouted.py runs, because the manifest names it\n")
    code = lock(tmp_path / "out")["manifest"][0]["code"]
    assert (code["builder"]["distribution"], code["reader"]["name"]) == ("mmlongbench", "shouted.py:Shouted")
    assert code["reader"]["sha256"] == hashes(tmp_path)["shouted.py"]
    assert command("audit", tmp_path / "out", "--task", tmp_path / "shouted.py", "-q").code == 0
