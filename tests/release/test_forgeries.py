"""Forged releases, each with its original lock and with a new one: which command finds the forgery, and its message.

`AUDIT`, `VERIFY` and `BOTH` say which command finds it under a new lock. `NOTHING`: the release cannot show it. Under
the old lock both find every one.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tiny import command

from builders.samples.mm_niah.upstream import draw_upstream
from mmlongbench.errors import ReleaseError
from mmlongbench.io.progress import Progress
from mmlongbench.prompt import Prompt
from mmlongbench.release.audit import audit_release
from mmlongbench.release.depths import Haystack, placement_faults
from mmlongbench.release.lock import read_lock
from mmlongbench.release.positions import Found, NeedlePlaces
from mmlongbench.release.verify import verify

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
AUDIT, VERIFY, BOTH, NOTHING = "audit", "verify", "both", "nothing"
PHOTOS, PHOTOS_LONG = "NIAH/vh_single_test_2_K2_dep6", "NIAH/vh_single_test_2_K4_dep6"
TEXT = "NIAH/retrieval-text_test_K2_dep6"
RAG, RAG_LONG = "vrag/infoseek_K2_dep3", "vrag/infoseek_K4_dep3"
SHOTS = "ICL/food101_K8.frozen"
COUNTS = "NIAH/counting-text_test_K8_dep3"
DATASETS = {
    "vh_single": "builder: visual_haystack, reader: visual_haystacks, options: {needles: single}",
    "retrieval-text": "builder: mm_niah, reader: mm_niah, options: {task: retrieval, needle: text}",
    "infoseek": "builder: vrag, reader: infoseek, options: {gold: lead}",
    "counting-text": "builder: mm_niah, reader: mm_niah, options: {task: counting, needle: text}, lengths: [8K]",
    "food101": "builder: many_shot, reader: image_tables, lengths: [8K], sample: {n: 4, stratify: kind}, "
    "pictures: {longest_side: 64}",
}
"""Each has a release of its own, so that the audit of a forgery reads no other data."""
Records = list[dict[str, Any]]
Forgery = Callable[[Path], object]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the release of a dataset; do not change it."""

    @cache
    def built(name: str) -> Path:
        folder = tmp_path_factory.mktemp("forgeries")
        length = "admission_length: 8K" if "8K" in DATASETS[name] else "admission_length: 2K"
        defaults = f"{{source: sample, lengths: [2K, 4K], {length}, sample: {{n: 2}}, licence: none}}"
        text = f"defaults: {defaults}\ndatasets:\n  - {{name: {name}, {DATASETS[name]}}}\n"
        if name == "counting-text":
            text = text.replace("source: sample", f"source: {json.dumps(counted_sources(folder))}")
        (folder / "forged.yaml").write_text(text)
        assert command("build", folder / "forged.yaml", "--out", folder / "out", "--workers", 1, "-q").err == ""
        return folder / "out"

    return built


def counted_sources(folder: Path) -> dict[str, str]:
    """Draw questions whose answers are counts of what a context shows."""
    drawn = draw_upstream(folder / "source", rows=3, pictures=8, pages=3)["counting-text"]
    return {name: str(path) for name, path in drawn.items()}


@pytest.fixture
def release(honest: Callable[[str], Path], tmp_path: Path) -> Path:
    """A release of photographs that may be changed."""
    shutil.copytree(honest("vh_single"), tmp_path / "release")
    return tmp_path / "release"


def lines(file: str, edit: Callable[[Records], object]) -> Forgery:
    """A forgery of the records of one file; `edit` changes the list."""

    def forge(release: Path) -> None:
        path = release / "mmlb_data" / f"{file}.jsonl"
        found = [json.loads(line) for line in path.read_bytes().splitlines()]
        edit(found)
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found), "utf-8")

    return forge


def line(file: str, number: int, /, **changes: Any) -> Forgery:
    """A forgery of some fields of one record; a value that is callable makes the new one of the old one."""

    def edit(found: Records) -> None:
        for key, value in changes.items():
            found[number][key] = value(found[number][key]) if callable(value) else value

    return lines(file, edit)


def items(file: str, edit: Callable[[Records], object]) -> Forgery:
    """A forgery of the items of one file."""

    def forge(release: Path) -> None:
        path = release / "items" / f"{file}.parquet"
        table = pq.read_table(path)
        found = table.to_pylist()
        edit(found)
        pq.write_table(pa.Table.from_pylist(found, table.schema), path)

    return forge


def retyped(file: str, column: str, change: Callable[[Any], object]) -> Forgery:
    """A forgery of the items of one file in which a column has values of another type."""

    def forge(release: Path) -> None:
        path = release / "items" / f"{file}.parquet"
        found = [{**row, column: change(row[column])} for row in pq.read_table(path).to_pylist()]
        pq.write_table(pa.Table.from_pylist(found), path)

    return forge


def crowd(row: dict[str, Any], number: int) -> Records:
    """Items of twenty examples that the file does not have, and so many of another."""
    return [{**row, "id": f"vh-{n}"} for n in range(20)] + [{**row, "id": "vh-crowd"}] * number


def item(file: str, role: str, /, **changes: Any) -> Forgery:
    """A forgery of the first item of a role in the second example of a file."""

    def edit(found: Records) -> None:
        second = next(row["placement"] for row in found if row["placement"])
        at = next(row for row in found if row["role"] == role and row["placement"] == second)
        for key, value in changes.items():
            at[key] = value(at[key]) if callable(value) else value

    return items(file, edit)


def counts(dataset: str, /, **changes: Any) -> Forgery:
    """A forgery of the lock's counts of the 2K cell."""
    return lock(lambda found: found["datasets"][dataset]["cells"]["2K"].update(changes))


def lock(edit: Callable[[dict[str, Any]], object]) -> Forgery:
    """A forgery of the lock."""

    def forge(release: Path) -> None:
        path = release / "build.lock.json"
        found = json.loads(path.read_text("utf-8"))
        edit(found)
        path.write_text(json.dumps(found), "utf-8")

    return forge


def all_of(*forgeries: Forgery) -> Forgery:
    return lambda release: [forge(release) for forge in forgeries]


def picture(edit: Callable[[Path], object], number: int = 0) -> Forgery:
    """A forgery of a picture that the first example shows."""

    def forge(release: Path) -> None:
        path = release / "mmlb_data" / f"{PHOTOS}.jsonl"
        edit(release / "mmlb_image" / json.loads(path.read_bytes().splitlines()[0])["ctxs"][number])

    return forge


def swap(found: list[Any], one: int, other: int) -> None:
    found[one], found[other] = found[other], found[one]


def drop(file: str, number: int) -> Forgery:
    """Drop a record, its items, and one from the lock's count."""

    def without(found: Records) -> None:
        first = (found[0]["id"], found[0]["placement"])
        found[:] = [row for row in found if (row["id"], row["placement"]) != first]

    return all_of(lines(file, lambda found: found.pop(number)), items(file, without))


def exchange(record: dict[str, Any]) -> dict[str, Any]:
    """Let a picture of the haystack take the place of the needle, and of its name."""
    other = next(path for path in record["ctxs"] if path not in record["needles"])
    at, (needle,) = record["ctxs"].index(other), record["needles"]
    record["ctxs"] = [other if path == needle else needle if path == other else path for path in record["ctxs"]]
    assert record["ctxs"].index(needle) == at
    return {**record, "needles": [other]}


def turn(path: Path) -> None:
    """Add an EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = 3
    with Image.open(path) as shown:
        shown.save(path, exif=exif)


def redraw(path: Path) -> None:
    """Draw another picture of the same size."""
    with Image.open(path) as shown:
        Image.new("RGB", shown.size, (1, 2, 3)).save(path)


def link_out(release: Path, name: str) -> None:
    """Replace a file by a link to a copy outside."""
    shutil.move(release / name, release.parent / "outside")
    (release / name).symlink_to(release.parent / "outside")


def exchange_contexts(release: Path) -> None:
    """Let the first question of passages stand at two permutations in each other's context."""
    fields = ("ctxs", "needle_start", "depth_achieved", "length", "tokens")

    def of_records(found: Records) -> None:
        kept = [{field: found[number][field] for field in fields} for number in (0, 2)]
        found[0].update(kept[1])
        found[2].update(kept[0])

    def of_items(found: Records) -> None:
        own = [row for row in found if row["id"] == found[0]["id"]]
        first, middle, last = ([row for row in own if row["placement"] == at] for at in (0, 1, 2))
        exchanged = [{**row, "placement": 2 - row["placement"]} for row in (*last, *first)]
        found[:] = [*exchanged[: len(last)], *middle, *exchanged[len(last) :], *found[len(own) :]]

    all_of(lines(RAG, of_records), items(RAG, of_items))(release)


def move_on(release: Path) -> None:
    """Exchange the needle of a depth and the photograph after it, consistently in all files."""
    starts: list[int] = []

    def of_items(found: Records) -> None:
        first = next(number for number, row in enumerate(found) if row["placement"] == 0.4)
        count = sum(row["placement"] == 0.4 and row["id"] == found[first]["id"] for row in found)
        rows = found[first : first + count]
        gap, start = rows[1]["start"] - rows[0]["start"] - rows[0]["image_tokens"], rows[0]["start"]
        at = next(number for number, row in enumerate(rows) if row["role"] == "needle")
        swap(rows, at, at + 1)
        for number, row in enumerate(rows):
            row.update(position=number, start=start)
            start += row["image_tokens"] + gap
        before = rows[at + 1]["start"] - rows[0]["start"]
        total = start - rows[0]["start"] - rows[at + 1]["image_tokens"] - gap
        starts.extend((at, rows[at + 1]["start"], before, total))
        found[first : first + count] = rows

    items(PHOTOS, of_items)(release)
    at, start, before, total = starts

    def of_records(found: Records) -> None:
        swap(found[2]["ctxs"], at, at + 1)
        found[2].update(needle_start=start, depth_achieved=before / total)

    lines(PHOTOS, of_records)(release)


def shots(edit: Callable[[Records], object]) -> Forgery:
    """A forgery of the examples of a file of many shots."""
    return lines(SHOTS, edit)


def other_passage(record: dict[str, Any]) -> dict[str, Any]:
    gold = {each["doc_id"] for each in record["positive_ctxs"]}
    return next(each for each in record["ctxs"] if each["doc_id"] not in gold)


FORGERIES: dict[str, tuple[str, Forgery]] = {
    "two lines of one id and placement": (AUDIT, lines(PHOTOS, lambda found: found.append(found[0]))),
    "two lines, counted by the lock": (
        BOTH,
        all_of(lines(PHOTOS, lambda found: found.append(found[0])), counts("vh_single", examples=13)),
    ),
    "a dropped line": (AUDIT, lines(PHOTOS, lambda found: found.pop())),
    "a dropped line with its items": (AUDIT, drop(PHOTOS, 0)),
    "a dropped line, counted by the lock": (BOTH, all_of(drop(PHOTOS, 0), counts("vh_single", examples=11))),
    "a dropped question": (AUDIT, lines(PHOTOS, lambda found: found.__delitem__(slice(0, 6)))),
    "a dropped question, counted as a reject": (
        BOTH,
        all_of(
            lines(PHOTOS, lambda found: found.__delitem__(slice(0, 6))), counts("vh_single", examples=6, rejected=1)
        ),
    ),
    "no answers": (AUDIT, lines(PHOTOS, lambda found: [record.update(answer=[]) for record in found])),
    "lines in another order": (AUDIT, lines(PHOTOS, lambda found: found.reverse())),
    "a line of another length": (AUDIT, lines(PHOTOS, lambda found: found.__setitem__(0, {**found[1], "depth": 0.0}))),
    "another id": (AUDIT, line(PHOTOS, 3, id="vh-other")),
    "an answer at one placement": (AUDIT, line(RAG, 1, answer=["Rome"])),
    "an answer at one length": (AUDIT, lines(RAG, lambda f: [each.update(answer=["Rome"]) for each in f[:3]])),
    "a yes for a no at one length": (AUDIT, lines(PHOTOS, lambda f: [each.update(answer="maybe") for each in f[:6]])),
    "an answer at every length": (
        NOTHING,
        all_of(*(lines(f, lambda f: [each.update(answer=["Rome"]) for each in f[:3]]) for f in (RAG, RAG_LONG))),
    ),
    "length": (AUDIT, line(PHOTOS, 2, length=lambda old: old - 1)),
    "tokens.text": (AUDIT, line(TEXT, 2, tokens=lambda old: {**old, "text": old["text"] + 1})),
    "tokens.image": (AUDIT, line(PHOTOS, 2, tokens=lambda old: {**old, "image": 0})),
    "tokens.reserve": (AUDIT, line(PHOTOS, 2, tokens=lambda old: {**old, "reserve": 0})),
    "depth": (AUDIT, line(PHOTOS, 1, depth=0.9)),
    "two depths exchanged": (AUDIT, all_of(line(PHOTOS, 1, depth=0.8), line(PHOTOS, 4, depth=0.2))),
    "two depths exchanged, with items": (
        AUDIT,
        all_of(
            line(PHOTOS, 0, depth=1.0),
            line(PHOTOS, 5, depth=0.0),
            items(
                PHOTOS,
                lambda f: [
                    row.update(placement={0: 1.0, 1: 0.0}.get(row["placement"]))
                    for row in f
                    if row["placement"] in (0, 1)
                ],
            ),
        ),
    ),
    "depth_achieved of a picture": (AUDIT, line(PHOTOS, 2, depth_achieved=0.5)),
    "depth_achieved of a sentence": (AUDIT, line(TEXT, 2, depth_achieved=lambda old: old + 0.05)),
    "depth_achieved of passages": (AUDIT, line(RAG, 0, depth_achieved=lambda old: [old[0] + 0.02, *old[1:]])),
    "depth_achieved that is a text": (AUDIT, line(PHOTOS, 2, depth_achieved="0.4")),
    "needle_start of a picture": (AUDIT, line(PHOTOS, 2, needle_start=lambda old: old + 1)),
    "needle_start of a sentence": (AUDIT, line(TEXT, 2, needle_start=lambda old: old - 1)),
    "needle_start of passages": (AUDIT, line(RAG, 0, needle_start=lambda old: [old[0] + 7, *old[1:]])),
    "needle_start that is gone": (AUDIT, lines(PHOTOS, lambda found: found[2].pop("needle_start"))),
    "permutation": (AUDIT, all_of(line(RAG, 0, permutation=1), line(RAG, 1, permutation=0))),
    "permutation, with items": (
        AUDIT,
        all_of(
            line(RAG, 0, permutation=1),
            line(RAG, 1, permutation=0),
            items(RAG, lambda f: [row.update(placement=1 - row["placement"]) for row in f if row["placement"] < 2]),
        ),
    ),
    "depth_requested": (AUDIT, line(RAG, 0, depth_requested=lambda old: [old[0] / 2, *old[1:]])),
    "depth_requested of another needle": (AUDIT, line(RAG, 0, depth_requested=lambda old: old[::-1])),
    "contexts of two permutations exchanged": (AUDIT, exchange_contexts),
    "a needle one place further": (AUDIT, move_on),
    "an answer of a count at one placement": (NOTHING, line(COUNTS, 1, answer=[9])),
    "needles of a count": (AUDIT, lines(COUNTS, lambda f: f[1]["positive_ctxs"].pop())),
    "counts by answer": (AUDIT, counts("vh_single", by_answer={"No": 5, "Yes": 7})),
    "more examples that ran out of units than there are": (BOTH, counts("vh_single", ran_dry=99)),
    "examples that ran out of units": (NOTHING, counts("vh_single", ran_dry=1)),
    "items of too many rows": (AUDIT, items(PHOTOS, lambda f: f.extend(f[:1] * 400_000))),
    "items of one long text": (AUDIT, items(PHOTOS, lambda f: [row.update(unit="x" * 20_000) for row in f])),
    "items of another type": (AUDIT, retyped(PHOTOS, "start", lambda old: [old])),
    "items of an example too large": (AUDIT, items(PHOTOS, lambda f: f.extend(crowd(f[0], 4_200)))),
    "a label of many shots": (AUDIT, shots(lambda found: found[0].update(answer=found[0]["answer"] + 1))),
    "needles of another picture": (AUDIT, lines(PHOTOS, lambda f: f[2].update(needles=[exchange(f[2])["needles"][0]]))),
    "needles that are empty": (AUDIT, line(PHOTOS, 2, needles=[])),
    "a needle exchanged for another picture": (AUDIT, lines(PHOTOS, lambda f: f[2].update(exchange(f[2])))),
    "a needle that is not shown": (AUDIT, lines(PHOTOS, lambda f: f[2]["ctxs"].remove(f[2]["needles"][0]))),
    "pictures in another order": (AUDIT, line(PHOTOS, 0, ctxs=lambda old: old[:1] + old[:0:-1])),
    "passages in another order": (AUDIT, lines(RAG, lambda f: swap(f[0]["ctxs"], 0, len(f[0]["ctxs"]) - 1))),
    "all passages in another order": (AUDIT, line(RAG, 0, ctxs=lambda old: old[::-1])),
    "a sentence's passage in another place": (AUDIT, lines(TEXT, lambda f: f[2]["ctxs"].insert(0, f[2]["ctxs"].pop()))),
    "positive_ctxs without one": (AUDIT, lines(RAG, lambda f: f[0]["positive_ctxs"].pop())),
    "positive_ctxs of a negative": (
        AUDIT,
        lines(RAG, lambda f: f[0]["positive_ctxs"].__setitem__(0, other_passage(f[0]))),
    ),
    "positive_ctxs that are not in the context": (
        AUDIT,
        lines(RAG, lambda f: f[0]["positive_ctxs"][0].update(text="It stands nowhere.")),
    ),
    "a sentence of positive_ctxs": (
        AUDIT,
        lines(TEXT, lambda f: f[1]["positive_ctxs"][0].update(text="It is not so.")),
    ),
    "a gold passage taken out of the context": (
        AUDIT,
        lines(RAG, lambda f: f[0]["ctxs"].remove(f[0]["positive_ctxs"][0])),
    ),
    "a field that no prompt shows": (NOTHING, line(RAG, 0, entity_text="Rome")),
    "an item's start": (AUDIT, item(PHOTOS, "negative", start=lambda old: old + 1)),
    "all starts of an example": (
        AUDIT,
        items(PHOTOS, lambda f: [row.update(start=row["start"] + 3) for row in f if row["placement"] == 0.2]),
    ),
    "an item's text tokens": (AUDIT, item(RAG, "negative", text_tokens=lambda old: old + 1)),
    "an item's image tokens": (AUDIT, item(PHOTOS, "negative", image_tokens=lambda old: old + 1)),
    "an item's image": (AUDIT, item(PHOTOS, "negative", image="visual-haystacks/other.jpg")),
    "an item's position": (AUDIT, item(PHOTOS, "negative", position=99)),
    "a needle among the negatives": (AUDIT, item(PHOTOS, "needle", role="negative")),
    "a negative among the needles": (AUDIT, item(PHOTOS, "negative", role="needle")),
    "gold among the negatives": (AUDIT, item(RAG, "gold", role="negative")),
    "a passage that holds no needle": (AUDIT, items(TEXT, lambda f: [row.update(inside="") for row in f])),
    "an item's unit": (NOTHING, item(PHOTOS, "negative", unit="other")),
    "items that lack an example": (AUDIT, items(PHOTOS, lambda f: f.__delitem__(slice(0, 3)))),
    "items of an example too many": (AUDIT, items(PHOTOS, lambda f: f.append({**f[0], "id": "vh-other"}))),
    "items that are missing": (AUDIT, lambda release: (release / "items" / f"{PHOTOS}.parquet").unlink()),
    "items that are no table": (AUDIT, lambda release: (release / "items" / f"{PHOTOS}.parquet").write_bytes(b"none")),
    "a picture of another size": (AUDIT, picture(lambda path: Image.new("RGB", (99, 980)).save(path))),
    "another picture of the same size": (AUDIT, picture(redraw)),
    "a picture with an EXIF orientation": (AUDIT, picture(turn)),
    "a picture with a truncated tail": (BOTH, picture(lambda path: path.write_bytes(path.read_bytes()[:-99]))),
    "a picture that is missing": (AUDIT, picture(lambda path: path.unlink())),
    "a picture that is none": (BOTH, picture(lambda path: path.write_bytes(b"none"))),
    "a picture that no line shows": (AUDIT, picture(lambda path: shutil.copy(path, path.with_name("other.jpg")))),
    "a reject too many": (
        BOTH,
        lambda release: (release / "rejects.jsonl").write_text('{"dataset": "vh_single", "id": "x", "length": null}\n'),
    ),
    "a public file that is missing": (BOTH, lambda release: (release / "mmlb_data" / f"{PHOTOS}.jsonl").unlink()),
    "a public file that is a link out": (BOTH, lambda release: link_out(release, f"mmlb_data/{PHOTOS}.jsonl")),
    "rejects that are a link out": (BOTH, lambda release: link_out(release, "rejects.jsonl")),
}
SAID: dict[str, tuple[str, str]] = {
    "two lines of one id and placement": (
        "vh_single",
        f"{PHOTOS}.jsonl: two examples of one id and placement: line 13, vh_single-9",
    ),
    "two lines, counted by the lock": (
        "vh_single",
        f"{PHOTOS}.jsonl: two examples of one id and placement: line 13, vh_single-9",
    ),
    "a dropped line": (
        "vh_single",
        f"{PHOTOS}.jsonl: items of examples that the file does not have: vh_single-10, 1.0",
    ),
    "a dropped line with its items": (
        "vh_single",
        f"{PHOTOS}.jsonl: a question does not have one example at each placement of the lock: vh_single-9: at 0.2, 0.4",
    ),
    "a dropped line, counted by the lock": (
        "vh_single",
        f"{PHOTOS}.jsonl: a question does not have one example at each placement of the lock: vh_single-9: at 0.2, 0.4",
    ),
    "a dropped question": (
        "vh_single",
        f"{PHOTOS}.jsonl: items of examples that the file does not have: vh_single-9, 0.0",
    ),
    "a dropped question, counted as a reject": (
        "vh_single",
        f"{PHOTOS}.jsonl: items of examples that the file does not have: vh_single-9, 0.0",
    ),
    "no answers": ("vh_single", f"{PHOTOS}.jsonl: the record has no answer: line 1, vh_single-9: vh_single-9"),
    "lines in another order": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items of an example are missing: line 2, vh_single-10",
    ),
    "a line of another length": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 1, vh_single-9: the images of the units are not t",
    ),
    "another id": ("vh_single", f"{PHOTOS}.jsonl: the items of an example are missing: line 4, vh-other"),
    "an answer at one placement": (
        "infoseek",
        f"{RAG}.jsonl: the answer differs from another placement: line 2, infoseek-4: infoseek-4",
    ),
    "an answer at one length": (
        "infoseek",
        f"{RAG}.jsonl: the answer of a question differs between files: infoseek-4: from vrag/infoseek_K4_dep3.json",
    ),
    "a yes for a no at one length": (
        "vh_single",
        f"{PHOTOS}.jsonl: the answer of a question differs between files: vh_single-9: from NIAH/vh_single_test_2_",
    ),
    "an answer at every length": ("infoseek", ""),
    "length": ("vh_single", f"{PHOTOS}.jsonl: length differs from the recount: line 3, vh_single-9: 1791 against 1792"),
    "tokens.text": (
        "retrieval-text",
        f"{TEXT}.jsonl: tokens.text differs from the recount: line 3, mm-niah-8: 1599 against 1598",
    ),
    "tokens.image": (
        "vh_single",
        f"{PHOTOS}.jsonl: tokens.image differs from the recount: line 3, vh_single-9: 0 against 1731",
    ),
    "tokens.reserve": (
        "vh_single",
        f"{PHOTOS}.jsonl: tokens.reserve differs from the lock: line 3, vh_single-9: 0 against 256",
    ),
    "depth": ("vh_single", f"{PHOTOS}.jsonl: the items of an example are missing: line 2, vh_single-9"),
    "two depths exchanged": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 2, vh_single-9: the images of the units are not t",
    ),
    "two depths exchanged, with items": (
        "vh_single",
        f"{PHOTOS}.jsonl: the placement differs from the prompt: line 1, vh_single-9: depth is 1.0, but in the prompt",
    ),
    "depth_achieved of a picture": (
        "vh_single",
        f"{PHOTOS}.jsonl: the placement differs from the prompt: line 3, vh_single-9: depth_achieved is 0.5, but in",
    ),
    "depth_achieved of a sentence": (
        "retrieval-text",
        f"{TEXT}.jsonl: the placement differs from the prompt: line 3, mm-niah-8: depth_achieved is 0.454416037187",
    ),
    "depth_achieved of passages": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_achieved is 0.878030168589",
    ),
    "depth_achieved that is a text": (
        "vh_single",
        f"{PHOTOS}.jsonl: the placement differs from the prompt: line 3, vh_single-9: needle_start or depth_achiev",
    ),
    "needle_start of a picture": (
        "vh_single",
        f"{PHOTOS}.jsonl: the placement differs from the prompt: line 3, vh_single-9: needle_start is 731, but in",
    ),
    "needle_start of a sentence": (
        "retrieval-text",
        f"{TEXT}.jsonl: the placement differs from the prompt: line 3, mm-niah-8: needle_start is 733, but in the",
    ),
    "needle_start of passages": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: needle_start is 1163, but in th",
    ),
    "needle_start that is gone": (
        "vh_single",
        f"{PHOTOS}.jsonl: the placement differs from the prompt: line 3, vh_single-9: needle_start or depth_achiev",
    ),
    "permutation": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_requested is [0.8632467626",
    ),
    "permutation, with items": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_requested is [0.8632467626",
    ),
    "depth_requested": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_requested is [0.4316233813",
    ),
    "depth_requested of another needle": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_requested is [0.7847580682",
    ),
    "contexts of two permutations exchanged": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_requested is 0.86324676269",
    ),
    "a needle one place further": (
        "vh_single",
        f"{PHOTOS}.jsonl: the placement differs from the prompt: line 3, vh_single-9: depth is 0.4, but in the prompt",
    ),
    "an answer of a count at one placement": ("counting-text", ""),
    "needles of a count": (
        "counting-text",
        f"{COUNTS}.jsonl: the needles differ from another placement: line 2, mm-niah-0: mm-niah-0",
    ),
    "counts by answer": (
        "vh_single",
        f"{PHOTOS}.jsonl: the counts by answer differ from the lock: {{'No': 6, 'Yes': 6}} against {{'No': 5, 'Yes",
    ),
    "more examples that ran out of units than there are": (
        "vh_single",
        "build.lock.json: the count of examples that ran out of units is impossible: vh_single 2K: 99 of 12, 0 units",
    ),
    "examples that ran out of units": ("vh_single", ""),
    "items of too many rows": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items of the file cannot be read: line 1, vh_single-9: vh_single_test_2_K2_dep6.parq",
    ),
    "items of one long text": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items of the file cannot be read: line 1, vh_single-9: vh_single_test_2_K2_dep6.parq",
    ),
    "items of another type": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items of the file cannot be read: line 1, vh_single-9: vh_single_test_2_K2_dep6.parq",
    ),
    "items of an example too large": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items of the file cannot be read: vh_single_test_2_K2_dep6.parquet: vh-crowd, 0.0: m",
    ),
    "a label of many shots": (
        "food101",
        "ICL/food101_K8.json: the answer of a question differs between files: validation-5: from ICL/food101_K8.f",
    ),
    "needles of another picture": (
        "vh_single",
        f"{PHOTOS}.jsonl: the needles differ from another placement: line 3, vh_single-9: vh_single-9",
    ),
    "needles that are empty": (
        "vh_single",
        f"{PHOTOS}.jsonl: the needles differ from another placement: line 3, vh_single-9: vh_single-9",
    ),
    "a needle exchanged for another picture": (
        "vh_single",
        f"{PHOTOS}.jsonl: the needles differ from another placement: line 3, vh_single-9: vh_single-9",
    ),
    "a needle that is not shown": (
        "vh_single",
        f"{PHOTOS}.jsonl: length differs from the recount: line 3, vh_single-9: 1792 against 1431",
    ),
    "pictures in another order": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 1, vh_single-9: the images of the units are not t",
    ),
    "passages in another order": (
        "infoseek",
        f"{RAG}.jsonl: the items differ from the prompt: infoseek-4: units do not begin lines, but do so in other ",
    ),
    "all passages in another order": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: needle_start is 1156, but in th",
    ),
    "a sentence's passage in another place": (
        "retrieval-text",
        f"{TEXT}.jsonl: the items differ from the prompt: line 3, mm-niah-8: unit 'row-8#1' starts at 116, but 272 ",
    ),
    "positive_ctxs without one": (
        "infoseek",
        f"{RAG}.jsonl: the needles differ from the prompt: line 1, infoseek-4: the items have 2 needles, the recor",
    ),
    "positive_ctxs of a negative": (
        "infoseek",
        f"{RAG}.jsonl: the placement differs from the prompt: line 1, infoseek-4: depth_achieved is 0.858030168589",
    ),
    "positive_ctxs that are not in the context": (
        "infoseek",
        f"{RAG}.jsonl: the needles differ from the prompt: line 1, infoseek-4: the needle 'Document (Title: Painte",
    ),
    "a sentence of positive_ctxs": (
        "retrieval-text",
        f"{TEXT}.jsonl: the needles differ from another placement: line 2, mm-niah-8: mm-niah-8",
    ),
    "a gold passage taken out of the context": (
        "infoseek",
        f"{RAG}.jsonl: length differs from the recount: line 1, infoseek-4: 1792 against 1642",
    ),
    "a field that no prompt shows": ("infoseek", ""),
    "an item's start": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 2, vh_single-9: unit 'train2017/000000001444.jpg'",
    ),
    "all starts of an example": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 2, vh_single-9: unit 'train2017/000000001290.jpg'",
    ),
    "an item's text tokens": (
        "infoseek",
        f"{RAG}.jsonl: the items differ from the prompt: line 2, infoseek-4: unit '4055593#0' starts at 333, the u",
    ),
    "an item's image tokens": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 2, vh_single-9: unit 'train2017/000000001444.jpg'",
    ),
    "an item's image": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 2, vh_single-9: the images of the units are not t",
    ),
    "an item's position": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 2, vh_single-9: positions are not 0, 1, 2, …",
    ),
    "a needle among the negatives": (
        "vh_single",
        f"{PHOTOS}.jsonl: the needles differ from the prompt: line 2, vh_single-9: the items have 0 needles, the r",
    ),
    "a negative among the needles": (
        "vh_single",
        f"{PHOTOS}.jsonl: the needles differ from the prompt: line 2, vh_single-9: the items have 2 needles, the r",
    ),
    "gold among the negatives": (
        "infoseek",
        f"{RAG}.jsonl: the needles differ from the prompt: line 2, infoseek-4: the items have 1 needles, the recor",
    ),
    "a passage that holds no needle": (
        "retrieval-text",
        f"{TEXT}.jsonl: the needles differ from the prompt: line 1, mm-niah-8: the items have 0 needles, the recor",
    ),
    "an item's unit": ("vh_single", ""),
    "items that lack an example": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items differ from the prompt: line 1, vh_single-9: positions are not 0, 1, 2, …",
    ),
    "items of an example too many": (
        "vh_single",
        f"{PHOTOS}.jsonl: items of examples that the file does not have: vh-other, 0.0",
    ),
    "items that are missing": ("vh_single", f"{PHOTOS}.jsonl: the items of the file are missing: the whole file"),
    "items that are no table": (
        "vh_single",
        f"{PHOTOS}.jsonl: the items of the file cannot be read: line 1, vh_single-9: ArrowInvalid: Parquet file si",
    ),
    "a picture of another size": (
        "vh_single",
        f"{PHOTOS}.jsonl: length differs from the recount: line 1, vh_single-9: 1792 against 1572",
    ),
    "another picture of the same size": (
        "vh_single",
        "items/assets.parquet: the hash of an image is not that of the lock: vh_single: vh/train2017/000000000583.jpg",
    ),
    "a picture with an EXIF orientation": (
        "vh_single",
        f"{PHOTOS}.jsonl: an image depends on its EXIF orientation, which a build takes away: line 1, vh_single-9:",
    ),
    "a picture with a truncated tail": (
        "vh_single",
        "mmlb_image/vh/train2017/000000000583.jpg: the image cannot be decoded: OSError: image file is truncated",
    ),
    "a picture that is missing": (
        "vh_single",
        f"{PHOTOS}.jsonl: the prompt cannot be rebuilt and counted: line 1, vh_single-9: image 'vh/train2017/00000",
    ),
    "a picture that is none": (
        "vh_single",
        f"{PHOTOS}.jsonl: the prompt cannot be rebuilt and counted: line 1, vh_single-9: image 'vh/train2017/00000",
    ),
    "a picture that no line shows": (
        "vh_single",
        "mmlb_image: no example shows the image: mmlb_image/vh/train2017/other.jpg",
    ),
    "a reject too many": ("vh_single", "build.lock.json: the rejects are not those of the lock: vh_single: rows"),
    "a public file that is missing": (
        "vh_single",
        "build.lock.json: the files of the lock are not those of its counts: vh_single 2K: 12 examples",
    ),
    "a public file that is a link out": ("vh_single", f"{PHOTOS}.jsonl: is a link out of the release: the whole file"),
    "rejects that are a link out": ("vh_single", "rejects.jsonl: is a link out of the release: rejects.jsonl"),
}
"""For each forgery, its dataset and the beginning of the message; empty if nothing finds it."""
OF_THE_LOCK = {
    "counts by answer",
    "examples that ran out of units",
    "more examples that ran out of units than there are",
}
"""Forgeries that change only the lock, so the original lock cannot be kept."""
FOUND_BY = {AUDIT: {AUDIT}, VERIFY: {VERIFY}, BOTH: {AUDIT, VERIFY}, NOTHING: set[str]()}
LOCKS: dict[str, tuple[str, Forgery]] = {
    "no counts": ("the datasets that are counted are not those of the manifest", lock(lambda f: f.update(datasets={}))),
    "no versions": ("versions: expected the version of each package", lock(lambda f: f.update(versions={}))),
    "the examples of a cell": (
        "the number of examples does not fit the number of questions",
        counts("vh_single", examples=7),
    ),
    "the rejects of a cell": ("the rejects are not those of the lock", counts("vh_single", examples=6, rejected=2)),
    "no rejects": ("the lock names no file of rejects", lock(lambda f: f["files"].pop("rejects.jsonl"))),
    "a cell that is negative": (
        "the counts cannot be read",
        counts("vh_single", examples=-6),
    ),
    "a cell that is no object": (
        "the counts cannot be read",
        lock(lambda f: f["datasets"]["vh_single"]["cells"].update({"2K": 3})),
    ),
    "a cell too few": (
        "the lengths that are counted are not those of the manifest",
        lock(lambda f: f["datasets"]["vh_single"]["cells"].pop("2K")),
    ),
    "a length too many": (
        "the lengths that are counted are not those of the manifest",
        lock(lambda f: f["manifest"][0].update(lengths=[2048, 4096, 8192])),
    ),
    "the questions": (
        "the number of examples does not fit the number of questions",
        lock(lambda f: f["datasets"]["vh_single"]["questions"].update(kept=3)),
    ),
    "the rejects of rows": (
        "the rejects are not those of the lock",
        lock(lambda f: f["datasets"]["vh_single"]["questions"].update(rejected={"no-photo": 1})),
    ),
    "the placements": (
        "the number of examples does not fit the number of questions",
        lock(lambda f: f["manifest"][0].update(placements=[0.0, 0.5])),
    ),
    "placements that cannot be": (
        "the placements of the lock are not valid",
        lock(lambda f: f["manifest"][0].update(placements=3)),
    ),
}
REFUSED: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "a format of 1.0": ("expected a lock of format 1", lambda f: f.update(format=1.0)),
    "a format of true": ("expected a lock of format 1", lambda f: f.update(format=True)),
    "a dataset twice": ("two datasets have the name 'vh_single'", lambda f: f["manifest"].append(f["manifest"][0])),
}
UNUSABLE: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "an unknown builder": ("no builder 'vh' is installed", lambda f: f["manifest"][0].update(builder="vh")),
    "a tokenizer that is gone": (
        "there is no such file",
        lambda f: f["manifest"][0]["counter"]["tokenizer"].update(name="gone.json"),
    ),
    "lengths that are none": ("lengths", lambda f: f["manifest"][0].update(lengths=["many"])),
    "a key that is unknown": ("unknown key 'colour'", lambda f: f["manifest"][0].update(colour="red")),
}
NOT_HERE = {"an unknown builder", "a tokenizer that is gone"}
"""Those that are right on a machine where the builder or the tokenizer is installed."""


def describe_anew(release: Path) -> None:
    """Write the hashes of the present files into the lock."""

    def files(path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    found = {path.relative_to(release).as_posix(): files(path) for path in sorted(release.rglob("*")) if path.is_file()}
    found.pop("build.lock.json")
    lock(lambda lock: lock.update(files=found))(release)


def said_by(release: Path) -> dict[str, list[str]]:
    """Return the output of each command for a release, one line for each problem."""
    audits = audit_release(release, QUIET)
    audited = [f"{found.file}: {kind}: {at}" for found in audits for kind, at in found.first.items()]
    return {AUDIT: audited, VERIFY: [str(problem) for problem in verify(release, QUIET).problems]}


def finds(release: Path) -> set[str]:
    """Which of the commands find something."""
    return {name for name, said in said_by(release).items() if said}


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_honest_release_has_no_problem(dataset: str, honest: Callable[[str], Path]) -> None:
    assert said_by(honest(dataset)) == {AUDIT: [], VERIFY: []}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_under_the_old_lock_and_under_a_new_one(
    name: str, honest: Callable[[str], Path], tmp_path: Path
) -> None:
    (by, forge), (dataset, said) = FORGERIES[name], SAID[name]
    release = tmp_path / "release"
    shutil.copytree(honest(dataset), release)
    forge(release)
    if name not in OF_THE_LOCK:
        assert finds(release) == {AUDIT, VERIFY}
        describe_anew(release)
    found = said_by(release)
    assert {each for each, of_it in found.items() if of_it} == FOUND_BY[by], found
    assert by == NOTHING or any(line.startswith(said) for of_it in found.values() for line in of_it), found
    assert bool(said) == (by != NOTHING)


def test_one_odd_value_ends_no_look_at_other_examples(release: Path) -> None:
    items(PHOTOS, lambda found: found[0].update(start=None))(release)
    line(PHOTOS, 4, depth_achieved=0.5)(release)
    describe_anew(release)
    found = next(found for found in audit_release(release, QUIET) if found.file == f"{PHOTOS}.jsonl")
    assert found.problems == {"the items differ from the prompt": 1, "the placement differs from the prompt": 1}
    assert (
        "line 1, vh_single-9: unit 0: start: Input should be a valid integer"
        in found.first["the items differ from the prompt"]
    )
    assert "line 5, vh_single-9: depth_achieved is 0.5" in found.first["the placement differs from the prompt"]


def test_rejects_that_are_too_large_are_named(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (release / "rejects.jsonl").write_text(json.dumps({"dataset": "vh_single", "id": "x", "length": 2048}) + "\n")
    describe_anew(release)
    monkeypatch.setattr("mmlongbench.release.checking.MAX_OF_A_FILE", 9)
    assert said_by(release)[AUDIT] == [
        "build.lock.json: the rejects are not compared: rejects.jsonl: 52 bytes, at most 9 are read"
    ]


def test_a_lock_of_another_version_may_name_other_packages(release: Path) -> None:
    lock(lambda found: found.update(versions={"mmlongbench": "0.0.1", "pillow": "1.0"}))(release)
    lock(lambda found: [dataset.pop("code") for dataset in found["manifest"]])(release)
    assert finds(release) == set()
    lock(lambda found: found.update(versions={"mmlongbench": "0.0.1", "pillow": 1.0}))(release)
    assert finds(release) == {AUDIT, VERIFY}


def test_thousands_of_equal_needles_are_found_in_time_that_grows_with_their_number() -> None:
    text = "It is so. " * 20_000
    places = NeedlePlaces(Prompt.of(["Read.\n", text]), [0], 6)
    assert [places.take("It is so.") for _ in range(20_000)] == list(range(6, 6 + 10 * 20_000, 10))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_cannot_be_is_found_by_both(name: str, release: Path) -> None:
    said, forge = LOCKS[name]
    forge(release)
    kinds = [kind for audit in audit_release(release, QUIET) for kind in audit.problems]
    assert any(kind.startswith(said) for kind in kinds)
    assert any(problem.problem.startswith(said) for problem in verify(release, QUIET).problems)


@pytest.mark.parametrize("name", REFUSED)
def test_a_lock_of_another_form_is_refused(name: str, release: Path) -> None:
    said, edit = REFUSED[name]
    lock(edit)(release)
    for tool in (audit_release, verify):
        with pytest.raises(ReleaseError, match=said):
            tool(release, QUIET)


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_manifest_of_a_lock_that_cannot_be_used_is_one_line(name: str, release: Path) -> None:
    said, edit = UNUSABLE[name]
    lock(edit)(release)
    refused = command("audit", release, "-q")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert said in refused.err
    assert "pydantic" not in refused.err
    verified = command("verify", release, "-q")
    assert said in verified.err
    if name in NOT_HERE:
        assert verified.code == 0
        assert verified.err.startswith("note: the manifest and the counts of build.lock.json were not checked: ")
    else:
        assert verified.code == 1
        assert verified.err.startswith("build.lock.json: the manifest cannot be used: ")


@pytest.mark.parametrize(
    ("start", "achieved", "depth", "said"),
    [
        (64, 0.5, 0.5, None),
        (64, 0.0, 0.5, "depth_achieved is 0.0, but in the prompt it is 0.5000"),
        (5, 0.5, 0.5, "needle_start is 5, but in the prompt the tokens before needles are 4, 64"),
        (64, 0.5, 0.57, "depth is 0.57, but in the prompt the needle is at 0.5000"),
        (64, 0.5, 0.53, None),
    ],
)
def test_of_several_needles_the_one_at_the_depth_is_looked_at(
    start: int, achieved: float, depth: float, said: str | None
) -> None:
    found = [Found(4, 10, is_sentence=False), Found(64, 10, is_sentence=False)]
    hay = Haystack(100, (0, 50), (0, 10, 20, 30, 40, 50, 60, 100), slack=0)
    record = {"needle_start": start, "depth_achieved": achieved, "depth": depth}
    assert list(placement_faults(record, found, hay, is_single=True)) == ([said] if said else [])


def test_a_sentence_between_two_units_may_stand_in_the_middle_of_either() -> None:
    found = [Found(844, 11, is_sentence=True)]
    hay = Haystack(1665, (844,), (0, 788, 819, 969, 1665), slack=2)
    record = {"needle_start": [844], "depth_achieved": [844 / 1665]}
    for place, is_near in ((818, True), (817, True), (810, False), (900, True), (960, False)):
        said = list(placement_faults({**record, "depth_requested": [place / 1665]}, found, hay, is_single=False))
        assert (not said) == is_near, place


def test_a_key_twice_is_refused(release: Path) -> None:
    path = release / "build.lock.json"
    path.write_text(path.read_text("utf-8").replace('"format": 1,', '"format": 1, "format": 1,', 1), "utf-8")
    with pytest.raises(ReleaseError, match="the key 'format' twice in one object"):
        read_lock(release)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse", "deep"])
def test_a_lock_that_would_never_end_is_one_line(kind: str, release: Path) -> None:
    path = release / "build.lock.json"
    path.unlink()
    hurt(path, kind)
    for tool in ("audit", "verify", "diff"):
        given = [release, release] if tool == "diff" else [release]
        refused = command(tool, *given)
        assert (refused.code, refused.err.count("\n")) == (2, 1), refused
        assert "build.lock.json" in refused.err


def hurt(path: Path, kind: str) -> None:
    """Put something there that is dangerous to read as a whole."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(100 * 1024**3)
    else:
        path.write_text("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize(
    ("what", "kind"),
    [(what, kind) for what in ("picture", "items", "rejects") for kind in ("pipe", "device", "sparse")]
    + [("records", "pipe"), ("records", "device")],
)
def test_what_a_release_names_is_read_as_a_bounded_regular_file(what: str, kind: str, release: Path) -> None:
    path = {
        "picture": next((release / "mmlb_image").rglob("*.jpg")),
        "items": release / "items" / f"{PHOTOS}.parquet",
        "rejects": release / "rejects.jsonl",
        "records": release / "mmlb_data" / f"{PHOTOS}.jsonl",
    }[what]
    path.unlink()
    hurt(path, kind)
    assert finds(release) == {AUDIT, VERIFY}


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_a_tokenizer_that_would_never_end_is_one_line(kind: str, release: Path, tmp_path: Path) -> None:
    hurt(tmp_path / "tokenizer.json", kind)
    name = str(tmp_path / "tokenizer.json")
    lock(lambda found: found["manifest"][0]["counter"]["tokenizer"].update(name=name))(release)
    refused = command("audit", release)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "tokenizer.json" in refused.err
