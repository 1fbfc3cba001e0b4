"""Hostile sources and manifests through the command line: rejects and a build that goes on, or code 2 and one line."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest
import yaml
from claimed_png import claimed_png
from hostile_pdfs import CATALOGUE, LETTER, pdf
from samples import Sources
from tiny import Ran, build, command, draw_pdf, draw_source, rejects, row, write_manifest, write_rows


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source, to be changed."""
    shutil.copytree(source, tmp_path / "source")
    return tmp_path / "source"


def declared(count: int) -> bytes:
    """A page tree with one page and a false count."""
    tree: dict[int, bytes | str] = {1: CATALOGUE, 2: f"<</Type/Pages/Kids[3 0 R]/Count {count}>>"}
    return pdf({**tree, 3: f"<</Type/Page/Parent 2 0 R{LETTER}>>"})


def shared(levels: int) -> bytes:
    """A tree of ten branches a level that all lead to one page: 10 ** levels pages in a kilobyte."""
    tree: dict[int, bytes | str] = {1: CATALOGUE}
    for level in range(levels):
        kids = f"{level + 3} 0 R " * 10
        tree[level + 2] = f"<</Type/Pages/Kids[{kids}]/Count {10 ** (levels - level)}>>"
    return pdf({**tree, levels + 2: f"<</Type/Page/Parent {levels + 1} 0 R{LETTER}>>"})


def many(pages: int, count: int) -> bytes:
    """A page tree with this many pages and the false count `count`."""
    kids = " ".join(f"{number} 0 R" for number in range(3, pages + 3))
    tree: dict[int, bytes | str] = {1: CATALOGUE, 2: f"<</Type/Pages/Kids[{kids}]/Count {count}>>"}
    return pdf({**tree, **dict.fromkeys(range(3, pages + 3), f"<</Type/Page/Parent 2 0 R{LETTER}>>")})


def deep(levels: int, is_apart: bool = False) -> bytes:
    """One page under so many levels; the lists of kids in the tree or objects apart."""
    tree: dict[int, bytes | str] = {1: CATALOGUE}
    for level in range(levels):
        node, below = 2 * level + 2, 2 * level + 4
        kids = f"{node + 1} 0 R" if is_apart else f"[{below} 0 R]"
        tree |= {node: f"<</Type/Pages/Kids {kids}/Count 1>>", node + 1: f"[{below} 0 R]"}
    return pdf({**tree, 2 * levels + 2: f"<</Type/Page/Parent 2 0 R{LETTER}>>"})


def drawn(**options: Any) -> bytes:
    """A well-made PDF of twelve pages."""
    with pymupdf.open() as document:
        for number in range(12):
            document.new_page().insert_text((72, 72), f"This is page {number}. " * 5)
        data: bytes = document.tobytes(**options)
    return data


PDFS = {
    "declared": (declared(1_000_000), "broken-document"),
    "shared": (shared(6), "broken-document"),
    "nested": (many(6_000, 6_000), "pages-of-a-document"),
    "hidden": (many(25_000, 2), "above-admission-length"),
    "deep": (deep(300), "above-admission-length"),  # it is read; its page is a large one
    "apart": (deep(300, is_apart=True), "above-admission-length"),
    "encrypted": (drawn(encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, user_pw="user"), "encrypted-document"),
    "torn": (drawn()[: len(drawn()) // 2], "truncated-document"),
    "empty": (b"", "broken-document"),
    "page": (b"<!DOCTYPE html>", "not-a-pdf"),
}
NOT_THERE = {"link": "path-outside-source", "device": "missing-document", "pipe": "missing-document", "a\0b": "missing"}


def test_hostile_documents_are_rejects_and_the_others_are_built(own: Path, tmp_path: Path) -> None:
    for name, (data, _) in PDFS.items():
        (own / "documents" / f"{name}.pdf").write_bytes(data)
    draw_pdf(tmp_path / "elsewhere.pdf", 2)
    (own / "documents" / "link.pdf").symlink_to(tmp_path / "elsewhere.pdf")
    (own / "documents" / "device.pdf").symlink_to("/dev/zero")
    os.mkfifo(own / "documents" / "pipe.pdf")
    reasons = {name: reason for name, (_, reason) in PDFS.items()} | NOT_THERE
    paths = ("../ash", "/etc/passwd", str(own / "documents" / "ash"))
    reasons |= dict.fromkeys((*paths, "../elsewhere"), "missing-document")
    rows = tuple(row(f"{name}.pdf", "What?", "hard", "[1]") for name in ("ash", *reasons))
    write_rows(own, rows)
    built = build(own, tmp_path / "out")
    assert built.code == 0, built.err
    found = {line["id"]: line["reason"] for line in rejects(tmp_path / "out")}
    expected = [reason if reason != "missing" else "missing-document" for reason in reasons.values()]
    assert [found.pop(f"mmlongdoc_{number}", "") for number in range(1, len(rows))] == expected
    assert not found
    assert command("audit", tmp_path / "out", "-q").code == 0


LONE = "\ud800"
ODD_FIELDS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"question": f"What {LONE}?"}, "invalid-unicode"),
    ({"answer": f"a {LONE}"}, "invalid-unicode"),
    ({"answer": "['\\ud800', 'b']", "answer_format": "List"}, "invalid-unicode"),
    ({"doc_id": f"{LONE}.pdf"}, "invalid-unicode"),
    ({"doc_type": LONE}, "invalid-unicode"),
    ({"evidence_pages": "[" * 3_000}, "answer-pages-not-a-list"),
    ({"evidence_pages": f"[{'1,' * 60_000}]"}, "answer-pages-not-a-list"),
    ({"evidence_pages": f"[{'9' * 4_000}]"}, "answer-page-out-of-range"),
    ({"question": "\0"}, ""),
    ({"answer": "a\0b"}, ""),
    ({"evidence_sources": "['\\ud800', 'Chart']"}, ""),
    ({"doc_type": "\0"}, ""),
)


def test_text_that_cannot_be_written_is_a_reject_and_a_nul_byte_is_text(own: Path, tmp_path: Path) -> None:
    given = [{**row("ash.pdf", "What?", "hard", "[1]"), **odd} for odd, _ in ODD_FIELDS]
    (own / "samples.json").write_text(json.dumps(given), "ascii")
    built = build(own, tmp_path / "out", "--lengths", "1K")
    assert built.code == 0, built.err
    found = {line["id"]: line["reason"] for line in rejects(tmp_path / "out")}
    assert [found.get(f"mmlongdoc_{number}", "") for number in range(len(given))] == [why for _, why in ODD_FIELDS]
    assert command("audit", tmp_path / "out", "-q").code == 0
    data = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*.json*"))
    assert not any(f"\\ud{digit}".encode() in data.lower() for digit in "89ab")


def refused(ran: Ran, said: str) -> None:
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert len(ran.err) < 1_000
    assert said in ran.err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[" * 100_000, "samples.json: unreadable-source: expected a JSON array of rows, found maximum recursion"),
        (b"[" * 400 + b"]" * 400, "samples.json: nested-too-deeply: expected at most 100 levels"),
        (b"\0" * 1_000, "samples.json, line 1, column 1: invalid-json: expected a JSON array of rows, found Expecting"),
        (b"\xff\xfe\xff", "samples.json: unreadable-source: expected a JSON array of rows, found 'utf-16"),
        (b'["caf\xe9"]', "samples.json: unreadable-source: expected a JSON array of rows, found 'utf-8"),
        (b"[" + b"9" * 5_000 + b"]", "samples.json: unreadable-source: expected a JSON array of rows, found Exceeds"),
        (b'"rows"', "samples.json: invalid-source: expected a JSON array of rows, found str"),
        (b"\x1f\x8b\x08", "samples.json: broken-gzip: expected a whole gzip stream, found "),
    ],
)
def test_a_source_that_is_none_ends_the_build_in_one_line(data: bytes, said: str, own: Path, tmp_path: Path) -> None:
    (own / "samples.json").write_bytes(data)
    refused(build(own, tmp_path / "out"), said)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_as_a_source_ends_the_build_in_one_line(kind: str, own: Path, tmp_path: Path) -> None:
    (own / "samples.json").unlink()
    if kind == "pipe":
        os.mkfifo(own / "samples.json")
    else:
        (own / "samples.json").symlink_to("/dev/zero")
    refused(build(own, tmp_path / "out"), "samples: expected a file or a folder, found a pipe or a device: ")


LAUGHS = "\n".join(f"{chr(98 + n)}: &{chr(98 + n)} [{f'*{chr(97 + n)}, ' * 10}]" for n in range(9))
"""Ten to the ninth values in half a kilobyte."""
MERGES = "\n".join(f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [*{chr(97 + n)}, *{chr(97 + n)}]}}" for n in range(25))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a: &a [x]\n{LAUGHS}\ndatasets: *j", "expected at most 1000000 values with all aliases written out, found"),
        (f"a: &a {{x: 1}}\n{MERGES}\ndatasets: [*z]", "expected at most 1000000 values with all aliases written out"),
        ("datasets: &a [*a]", "expected at most 100 levels of lists and mappings, found more"),
        (f"datasets: {'[' * 300}{']' * 300}", "m.yaml: expected YAML, found "),
        ("# " + "x" * 1_100_000, "m.yaml: cannot be read: more than 1,048,576 bytes"),
        ("datasets: !!timestamp x", "found a tag that does not fit its value (AttributeError: "),
        ("datasets: !!bool 7", "found a tag that does not fit its value (KeyError: '7')"),
        ("datasets: !!int ''", "found a tag that does not fit its value (IndexError: "),
        ('datasets: ["\\ud800"]', "found expected text that can be written, found a lone surrogate in '\\ud800'"),
        ("datasets: [\0]", "m.yaml: expected YAML, found unacceptable character #x0000"),
        (f"datasets: [{{name: {'x' * 90_000}, y: 1}}]", "x…: the key 'builder' is missing"),
        (f"datasets: [{{name: x, lengths: ['{'7' * 90_000}']}}]", "dataset 'x': "),
        (f"? {'x' * 90_000}\n: 1", "m.yaml: unknown key 'xxx"),
    ],
    ids=["laughs", "merges", "circle", "deep", "long", "date", "bool", "int", "lone", "nul", "name", "length", "key"],
)
def test_a_hostile_manifest_ends_the_build_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(text)
    refused(command("build", tmp_path / "m.yaml", "--out", tmp_path / "out"), said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a: &a [x]\n{LAUGHS}\nmmlongdoc_0: {{source: me, set: {{answer: *j}}}}", "expected at most 1000000 values"),
        ("x: !!timestamp y", "errata errata.yaml: a tag that does not fit its value"),
        ("x: {source: a}\nx: {source: b}", "errata errata.yaml: 'x' occurs twice"),
        ('x: {source: "\\ud800", drop: true}', "errata errata.yaml: expected text that can be written"),
        (f"? {'x' * 90_000}\n: {{source: me}}", "expected either `set` or `drop: true`"),
        ("x: {source: me, set: &a {b: *a}}", "errata errata.yaml: expected at most 100 levels"),
    ],
    ids=["laughs", "date", "twice", "surrogate", "long", "circle"],
)
def test_hostile_errata_end_the_build_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    draw_source(tmp_path / "source")
    (tmp_path / "source" / "errata.yaml").write_text(text)
    manifest = write_manifest(tmp_path / "source" / "own.yaml", errata="errata.yaml")
    refused(command("build", manifest, "--out", tmp_path / "out"), said)


PICTURES: dict[str, Callable[[Path], object]] = {
    "huge.png": lambda path: path.write_bytes(claimed_png(60_000, 60_000)),
    "text.png": lambda path: path.write_text("a picture of a mill"),
    "link.png": lambda path: path.symlink_to("/etc/passwd"),
    "device.png": lambda path: path.symlink_to("/dev/zero"),
    "pipe.png": os.mkfifo,
    "../../etc/passwd.png": lambda path: None,
    "/etc/passwd.png": lambda path: None,
    "a\0b.png": lambda path: None,
}


def test_hostile_pictures_of_a_haystack_are_rejects_and_the_others_are_built(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    places = sample("own_pages")
    questions, documents = tmp_path / "questions.jsonl", tmp_path / "documents"
    shutil.copytree(places["documents"], documents)
    lines = [json.loads(line) for line in places["questions"].read_text("utf-8").splitlines()]
    assert len(lines) > len(PICTURES)
    for line, (name, make) in zip(lines, PICTURES.items(), strict=False):
        make(documents / name)
        line["needles"] = [name]
    questions.write_text("\n".join(map(json.dumps, lines)))
    dataset = {
        "name": "retrieval-image",
        "builder": "mm_niah",
        "reader": "own_pages",
        "source": {"questions": str(questions), "documents": str(documents)},
        "lengths": ["8K"],
        "options": {"task": "retrieval", "needle": "image"},
    }
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))
    built = command("build", tmp_path / "m.yaml", "--out", tmp_path / "out")
    assert built.code == 0, built.err
    reasons = [line["reason"] for line in rejects(tmp_path / "out") if "length" not in line or not line["length"]]
    assert sorted(reasons) == sorted(["broken-image"] * 2 + ["missing-image"] * (len(PICTURES) - 2))
