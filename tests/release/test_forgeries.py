"""Forged releases with a lock that fits the forgery: which of `audit` and `verify` finds it, and what it names."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from once import linked, once
from PIL import Image
from samples import Sources, from_samples
from tiny import command

AUDIT, VERIFY = "audit", "verify"
PHOTOS, TEXT = "NIAH/vh_single_test_2_K2_dep6", "NIAH/retrieval-text_test_K2_dep6"
RAG, RAG_LONG = "vrag/infoseek_K2_dep3", "vrag/infoseek_K4_dep3"
LOCK = "build.lock.json"
DATASETS: dict[str, dict[str, Any]] = {
    "vh_single": {"builder": "visual_haystack", "reader": "visual_haystacks", "options": {"needles": "single"}},
    "retrieval-text": {
        "builder": "mm_niah",
        "reader": "mm_niah",
        "options": {"task": "retrieval", "needle": "text"},
        "lengths": ["2K"],
    },
    "infoseek": {"builder": "vrag", "reader": "infoseek", "options": {"gold": "lead"}},
}
"""Each has a release of its own, so that the audit of a forgery reads no other data."""
Records = list[dict[str, Any]]
Forgery = Callable[[Path], object]


@pytest.fixture(scope="session")
def honest(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the release of a dataset: two questions at 2K, and most at 4K too; not to be changed."""

    def built(name: str) -> Path:
        def make(folder: Path) -> None:
            common = {"lengths": ["2K", "4K"], "admission_length": "2K", "sample": {"n": 2}, "licence": "none"}
            manifest = from_samples({"datasets": [{"name": name, **common, **DATASETS[name]}]}, sample)
            (folder / "m.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
            made = command("build", folder / "m.yaml", "--out", folder / "out", "-q")
            assert (made.code, made.err) == (0, "")

        return once(tmp_path_factory, f"forgeries-{name}", make) / "out"

    return built


@pytest.fixture
def release(honest: Callable[[str], Path], tmp_path: Path) -> Path:
    """A release of photographs that may be changed."""
    return linked(honest("vh_single"), tmp_path / "release")


def lines(file: str, edit: Callable[[Records], object]) -> Forgery:
    """A forgery of the records of one file; `edit` changes the list."""

    def forge(release: Path) -> None:
        path = release / "mmlb_data" / f"{file}.jsonl"
        found = [json.loads(line) for line in path.read_bytes().splitlines()]
        edit(found)
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found), "utf-8")

    return forge


def changed(row: dict[str, Any], changes: dict[str, Any]) -> None:
    """Change some fields; a value that is callable makes the new one of the old one."""
    for key, value in changes.items():
        row[key] = value(row[key]) if callable(value) else value


def line(file: str, number: int, /, **changes: Any) -> Forgery:
    """A forgery of some fields of one record."""
    return lines(file, lambda found: changed(found[number], changes))


def items(file: str, edit: Callable[[Records], object]) -> Forgery:
    """A forgery of the items of one file."""

    def forge(release: Path) -> None:
        path = release / "items" / f"{file}.parquet"
        table = pq.read_table(path)
        found = table.to_pylist()
        edit(found)
        pq.write_table(pa.Table.from_pylist(found, table.schema), path)

    return forge


def item(file: str, role: str, /, **changes: Any) -> Forgery:
    """A forgery of the first item of a role in the second example of a file."""

    def edit(found: Records) -> None:
        second = next(row["placement"] for row in found if row["placement"])
        changed(next(row for row in found if row["role"] == role and row["placement"] == second), changes)

    return items(file, edit)


def lock(edit: Callable[[dict[str, Any]], object]) -> Forgery:
    """A forgery of the lock."""

    def forge(release: Path) -> None:
        found = json.loads((release / LOCK).read_text("utf-8"))
        edit(found)
        (release / LOCK).write_text(json.dumps(found), "utf-8")

    return forge


def counts(**changes: Any) -> Forgery:
    """A forgery of the lock's counts of the photographs at 2K."""
    return lock(lambda found: found["datasets"]["vh_single"]["cells"]["2K"].update(changes))


def all_of(*forgeries: Forgery) -> Forgery:
    return lambda release: [forge(release) for forge in forgeries]


def picture(edit: Callable[[Path], object]) -> Forgery:
    """A forgery of a picture that the first example shows; the file is a copy of its own."""

    def forge(release: Path) -> None:
        path = release / "mmlb_data" / f"{PHOTOS}.jsonl"
        shown = release / "mmlb_image" / json.loads(path.read_bytes().splitlines()[0])["ctxs"][0]
        data = shown.read_bytes()
        shown.unlink()
        shown.write_bytes(data)
        edit(shown)

    return forge


def drop(file: str, number: int) -> Forgery:
    """Drop a record and its items."""

    def without(found: Records) -> None:
        first = (found[0]["id"], found[0]["placement"])
        found[:] = [row for row in found if (row["id"], row["placement"]) != first]

    return all_of(lines(file, lambda found: found.pop(number)), items(file, without))


def swap(found: list[Any], one: int, other: int) -> None:
    found[one], found[other] = found[other], found[one]


def exchange(record: dict[str, Any]) -> None:
    """Let a picture of the haystack take the place of the needle, and of its name."""
    other, (needle,) = next(path for path in record["ctxs"] if path not in record["needles"]), record["needles"]
    record["ctxs"] = [other if path == needle else needle if path == other else path for path in record["ctxs"]]
    record["needles"] = [other]


def turn(path: Path) -> None:
    """Add an EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = 3
    with Image.open(path) as shown:
        shown.load()
        shown.save(path, exif=exif)


def redraw(path: Path) -> None:
    """Draw another picture of the same size."""
    with Image.open(path) as shown:
        size = shown.size
    Image.new("RGB", size, (1, 2, 3)).save(path)


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


def other_passage(record: dict[str, Any]) -> dict[str, Any]:
    gold = {each["doc_id"] for each in record["positive_ctxs"]}
    return next(each for each in record["ctxs"] if each["doc_id"] not in gold)


def placed(found: Records, to: dict[float, float]) -> None:
    """Give the items of some placements other ones."""
    for row in found:
        row["placement"] = to.get(row["placement"], row["placement"])


CELLS, LENGTHS = (
    "the number of examples does not fit the number of questions",
    "the lengths that are counted are not those of the manifest",
)
VERSIONS, COUNTS = "versions: expected the version of each package", "the counts cannot be read"
FIRST, SECOND, THIRD = "line 1, vh_single-9", "line 2, vh_single-9", "line 3, vh_single-9"
LINK = "is a link out of the release"
UNREAD, REJECTS = "the items of the file cannot be read", "the rejects are not those of the lock"
PLACEMENT, NEEDLES = "the placement differs from the prompt", "the needles differ from the prompt"
ITEMS, ELSEWHERE = "the items differ from the prompt", "the needles differ from another placement"
VARIED, DRAWN = "the answer differs from another placement", "depth_requested is ["
Row = tuple[str, str, tuple[str, ...], Forgery]
"""Where it is found (a public file, the lock, a folder), the kind, what the place names, and the forgery."""
# fmt: off
OF_AUDIT: dict[str, Row] = {
    "no answers": (PHOTOS, "the record has no answer", (FIRST,),
     lines(PHOTOS, lambda found: [record.update(answer=[]) for record in found])),
    "lines in another order": (PHOTOS, "the items of an example are missing", ("line 2, vh_single-10",),
     lines(PHOTOS, lambda found: found.reverse())),
    "an answer at one placement": (RAG, VARIED, ("line 2, infoseek-4",), line(RAG, 1, answer=["Rome"])),
    "an answer at one length": (RAG, "the answer of a question differs between files",
     ("infoseek-4", f"{RAG_LONG}.jsonl"),
     lines(RAG, lambda f: [each.update(answer=["Rome"]) for each in f[:3]])),
    "two depths exchanged, with items": (PHOTOS, PLACEMENT, ("line 1, vh_single-9: depth is 1.0", "at 0.0000"),
     all_of(
         line(PHOTOS, 0, depth=1.0),
         line(PHOTOS, 5, depth=0.0),
         items(PHOTOS, lambda f: placed(f, {0: 1.0, 1: 0.0})),
     )),
    "depth_achieved of a picture": (PHOTOS, PLACEMENT, ("line 3, vh_single-9: depth_achieved is 0.5",),
     line(PHOTOS, 2, depth_achieved=0.5)),
    "depth_achieved of a sentence": (TEXT, PLACEMENT, ("line 3, mm-niah-8: depth_achieved is 0.45",),
     line(TEXT, 2, depth_achieved=lambda old: old + 0.05)),
    "depth_achieved of passages": (RAG, PLACEMENT, ("line 1, infoseek-4: depth_achieved is 0.87",),
     line(RAG, 0, depth_achieved=lambda old: [old[0] + 0.02, *old[1:]])),
    "depth_achieved that is a text": (PHOTOS, PLACEMENT, (THIRD, "no number"), line(PHOTOS, 2, depth_achieved="0.4")),
    "needle_start of a picture": (PHOTOS, PLACEMENT, ("line 3, vh_single-9: needle_start is 731", "730"),
     line(PHOTOS, 2, needle_start=lambda old: old + 1)),
    "needle_start of a sentence": (TEXT, PLACEMENT, ("line 3, mm-niah-8: needle_start is 733", "734"),
     line(TEXT, 2, needle_start=lambda old: old - 1)),
    "needle_start of passages": (RAG, PLACEMENT, ("line 1, infoseek-4: needle_start is 1163", "1156"),
     line(RAG, 0, needle_start=lambda old: [old[0] + 7, *old[1:]])),
    "needle_start that is gone": (PHOTOS, PLACEMENT, (THIRD, "needle_start"),
     lines(PHOTOS, lambda found: found[2].pop("needle_start"))),
    "two permutations exchanged, with items": (RAG, PLACEMENT, ("line 1, infoseek-4", DRAWN, "permutation 1"),
     all_of(line(RAG, 0, permutation=1), line(RAG, 1, permutation=0), items(RAG, lambda f: placed(f, {0: 1, 1: 0})))),
    "depth_requested": (RAG, PLACEMENT, ("line 1, infoseek-4", f"{DRAWN}0.43", "permutation 0"),
     line(RAG, 0, depth_requested=lambda old: [old[0] / 2, *old[1:]])),
    "depth_requested of another needle": (RAG, PLACEMENT, ("line 1, infoseek-4", f"{DRAWN}0.78"),
     line(RAG, 0, depth_requested=lambda old: old[::-1])),
    "depth_requested of too few": (RAG, PLACEMENT, ("line 1, infoseek-4", "2 needles"),
     line(RAG, 0, depth_requested=lambda old: old[:1])),
    "contexts of two permutations exchanged": (RAG, PLACEMENT, ("line 1, infoseek-4: depth_requested is 0.86",),
     exchange_contexts),
    "a needle one place further": (PHOTOS, PLACEMENT, ("line 3, vh_single-9: depth is 0.4",), move_on),
    "counts by answer": (PHOTOS, "the counts by answer differ from the lock",
     ("'No': 6, 'Yes': 6", "'No': 5, 'Yes': 7"),
     counts(by_answer={"No": 5, "Yes": 7})),
    "items of too many rows": (PHOTOS, UNREAD, (FIRST, "12 examples"),
     items(PHOTOS, lambda f: f.extend(f[:1] * 12 * 4096))),
    "items of an example too large": (PHOTOS, UNREAD, ("vh-crowd, 0.0", "4,096 units"),
     items(
         PHOTOS,
         lambda f: f.extend([{**f[0], "id": f"vh-{n}"} for n in range(20)] + [{**f[0], "id": "vh-crowd"}] * 4_097),
     )),
    "needles that are empty": (PHOTOS, ELSEWHERE, (THIRD,), line(PHOTOS, 2, needles=[])),
    "needles that are empty, of the prompt": (PHOTOS, NEEDLES, (THIRD,), line(PHOTOS, 2, needles=[])),
    "a needle exchanged for another picture": (PHOTOS, ELSEWHERE, (THIRD,), lines(PHOTOS, lambda f: exchange(f[2]))),
    "a needle that is not shown": (PHOTOS, "length differs from the recount",
     ("line 3, vh_single-9: 1792 against 1431",),
     lines(PHOTOS, lambda f: f[2]["ctxs"].remove(f[2]["needles"][0]))),
    "pictures in another order": (PHOTOS, ITEMS, (FIRST, "images"),
     line(PHOTOS, 0, ctxs=lambda old: old[:1] + old[:0:-1])),
    "passages in another order": (RAG, ITEMS, ("infoseek-4",),
     lines(RAG, lambda f: swap(f[0]["ctxs"], 0, len(f[0]["ctxs"]) - 1))),
    "all passages in another order": (RAG, PLACEMENT, ("line 1, infoseek-4: needle_start is 1156",),
     line(RAG, 0, ctxs=lambda old: old[::-1])),
    "a sentence's passage in another place": (TEXT, ITEMS, ("line 3, mm-niah-8", "'row-8#1'", "116", "272"),
     lines(TEXT, lambda f: f[2]["ctxs"].insert(0, f[2]["ctxs"].pop()))),
    "positive_ctxs without one": (RAG, NEEDLES, ("line 1, infoseek-4", "the items have 2 needles, the record 1"),
     lines(RAG, lambda f: f[0]["positive_ctxs"].pop())),
    "positive_ctxs of a negative": (RAG, PLACEMENT, ("line 1, infoseek-4: depth_achieved is 0.85",),
     lines(RAG, lambda f: f[0]["positive_ctxs"].__setitem__(0, other_passage(f[0])))),
    "positive_ctxs that are not in the context": (RAG, NEEDLES, ("line 1, infoseek-4", "'Document (Title: "),
     lines(RAG, lambda f: f[0]["positive_ctxs"][0].update(text="It stands nowhere."))),
    "a sentence of positive_ctxs": (TEXT, ELSEWHERE, ("line 2, mm-niah-8",),
     lines(TEXT, lambda f: f[1]["positive_ctxs"][0].update(text="It is not so."))),
    "an item's start": (PHOTOS, ITEMS, (SECOND, "train2017/000000001444.jpg"),
     item(PHOTOS, "negative", start=lambda old: old + 1)),
    "all starts of an example": (PHOTOS, ITEMS, (SECOND, "train2017/000000001290.jpg"),
     items(PHOTOS, lambda f: [row.update(start=row["start"] + 3) for row in f if row["placement"] == 0.2])),
    "an item's text tokens": (RAG, ITEMS, ("line 2, infoseek-4", "'4055593#0'", "333"),
     item(RAG, "negative", text_tokens=lambda old: old + 1)),
    "an item's image tokens": (PHOTOS, ITEMS, (SECOND, "train2017/000000001444.jpg"),
     item(PHOTOS, "negative", image_tokens=lambda old: old + 1)),
    "an item's image": (PHOTOS, ITEMS, (SECOND, "images"),
     item(PHOTOS, "negative", image="visual-haystacks/other.jpg")),
    "an item's position": (PHOTOS, ITEMS, (SECOND, "0, 1, 2"), item(PHOTOS, "negative", position=99)),
    "a needle among the negatives": (PHOTOS, NEEDLES, (SECOND, "0 needles", "1"),
     item(PHOTOS, "needle", role="negative")),
    "a negative among the needles": (PHOTOS, NEEDLES, (SECOND, "2 needles", "1"),
     item(PHOTOS, "negative", role="needle")),
    "a passage that holds no needle": (TEXT, NEEDLES, ("line 1, mm-niah-8", "0 needles"),
     items(TEXT, lambda f: [row.update(inside="") for row in f])),
    "items of an example too many": (PHOTOS, "items of examples that the file does not have", ("vh-other, 0.0",),
     items(PHOTOS, lambda f: f.append({**f[0], "id": "vh-other"}))),
    "items that are missing": (PHOTOS, "the items of the file are missing", (),
     lambda release: (release / "items" / f"{PHOTOS}.parquet").unlink()),
    "another picture of the same size": ("items/assets.parquet", "the hash of an image is not that of the lock",
     ("vh_single: vh/train2017/000000000583.jpg",),
     picture(redraw)),
    "a picture with an EXIF orientation": (PHOTOS, "an image depends on its EXIF orientation, which a build takes away",
     (FIRST, "train2017/000000000583.jpg"),
     picture(turn)),
    "a picture that no line shows": ("mmlb_image", "no example shows the image", ("mmlb_image/vh/train2017/other.jpg",),
     picture(lambda path: shutil.copy(path, path.with_name("other.jpg")))),
}
# fmt: on
"""Forgeries that leave the files as the lock says, so that only counting finds them."""
# fmt: off
OF_BOTH: dict[str, Row] = {
    "two lines, counted by the lock": (PHOTOS, "two examples of one id and placement", ("line 13, vh_single-9",),
     all_of(lines(PHOTOS, lambda found: found.append(found[0])), counts(examples=13))),
    "a dropped line, counted by the lock": (PHOTOS,
     "a question does not have one example at each placement of the lock",
     ("vh_single-9: at 0.2, 0.4, 0.6, 0.8, 1.0",),
     all_of(drop(PHOTOS, 0), counts(examples=11))),
    "a dropped question, counted as a reject": (PHOTOS, "items of examples that the file does not have",
     ("vh_single-9, 0.0",),
     all_of(lines(PHOTOS, lambda found: found.__delitem__(slice(0, 6))), counts(examples=6, rejected=1))),
    "more examples that ran out of units than there are": (LOCK,
     "the count of examples that ran out of units is impossible",
     ("vh_single 2K: 99 of 12",),
     counts(ran_dry=99)),
    "a picture with a truncated tail": ("mmlb_image/vh/train2017/000000000583.jpg", "the image cannot be decoded",
     ("OSError",),
     picture(lambda path: path.write_bytes(path.read_bytes()[:-99]))),
    "a reject too many": (LOCK, REJECTS, ("vh_single: rows",),
     lambda release: (release / "rejects.jsonl").write_text('{"dataset": "vh_single", "id": "x", "length": null}\n')),
    "a public file that is missing": (LOCK, "the files of the lock are not those of its counts",
     ("vh_single 2K: 12 examples",),
     lambda release: (release / "mmlb_data" / f"{PHOTOS}.jsonl").unlink()),
    "a public file that is a link out": (PHOTOS, LINK, (),
     lambda release: link_out(release, f"mmlb_data/{PHOTOS}.jsonl")),
    "rejects that are a link out": ("rejects.jsonl", LINK, (), lambda release: link_out(release, "rejects.jsonl")),
}
# fmt: on
# fmt: off
OF_NOTHING: dict[str, tuple[str, Forgery]] = {
    "an answer at every length": ("infoseek",
     all_of(*(lines(f, lambda f: [each.update(answer=["Rome"]) for each in f[:3]]) for f in (RAG, RAG_LONG)))),
    "a field that no prompt shows": ("infoseek", line(RAG, 0, entity_text="Rome")),
    "examples that ran out of units": ("vh_single", counts(ran_dry=1)),
    "an item's unit": ("vh_single", item(PHOTOS, "negative", unit="other")),
}
# fmt: on
"""Forgeries that a release cannot show; the honest releases are among them."""


def describe_anew(release: Path) -> None:
    """Write the hashes of the present files into the lock."""

    def files(path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    found = {path.relative_to(release).as_posix(): files(path) for path in sorted(release.rglob("*")) if path.is_file()}
    found.pop(LOCK)
    lock(lambda lock: lock.update(files=found))(release)


def said_by(release: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return (file, kind, where first) of each problem that a command finds."""
    audits = map(json.loads, command("audit", release, "--json").out.splitlines())
    verified = json.loads(command("verify", release, "--json").out)
    return {
        AUDIT: [(each["file"], of["problem"], of["first"]) for each in audits for of in each["problems"]],
        VERIFY: [(each["file"], each["problem"], each["where"]) for each in verified["problems"]],
    }


def dataset_of(file: str) -> str:
    return next((name for name in DATASETS if name in file), "vh_single")


def names(found: list[tuple[str, str, str]], file: str, kind: str, facts: tuple[str, ...]) -> bool:
    """Whether one of the problems is of this file and kind, and its place names all the facts."""
    public = (file, f"{file}.jsonl", f"mmlb_data/{file}.jsonl", file.split("/")[0])
    return any(f in public and k == kind and all(fact in f"{f}: {w}" for fact in facts) for f, k, w in found)


@pytest.mark.parametrize("name", OF_AUDIT)
def test_a_forgery_that_fits_its_lock_is_found_by_the_audit(
    name: str, honest: Callable[[str], Path], tmp_path: Path
) -> None:
    file, kind, facts, forge = OF_AUDIT[name]
    release = linked(honest(dataset_of(file)), tmp_path / "release")
    forge(release)
    describe_anew(release)
    found = said_by(release)
    assert names(found[AUDIT], file, kind, facts), found
    assert found[VERIFY] == []


@pytest.mark.parametrize("name", OF_BOTH)
def test_a_forgery_that_no_lock_can_fit_is_found_by_both(
    name: str, honest: Callable[[str], Path], tmp_path: Path
) -> None:
    file, kind, facts, forge = OF_BOTH[name]
    release = linked(honest(dataset_of(file)), tmp_path / "release")
    forge(release)
    describe_anew(release)
    found = said_by(release)
    assert found[AUDIT], found
    assert found[VERIFY], found
    assert names([each for of in found.values() for each in of], file, kind, facts), found


@pytest.mark.parametrize("name", OF_NOTHING)
def test_what_a_release_cannot_show_is_no_problem(name: str, honest: Callable[[str], Path], tmp_path: Path) -> None:
    dataset, forge = OF_NOTHING[name]
    release = linked(honest(dataset), tmp_path / "release")
    forge(release)
    describe_anew(release)
    assert said_by(release) == {AUDIT: [], VERIFY: []}


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_honest_release_has_no_problem(dataset: str, honest: Callable[[str], Path]) -> None:
    assert said_by(honest(dataset)) == {AUDIT: [], VERIFY: []}


def test_a_label_of_many_shots_is_found(two_tasks: Path, tmp_path: Path) -> None:
    """The second public file of a task is compared with the first."""
    release, shots = linked(two_tasks, tmp_path / "release"), "ICL/food101_K8.frozen"
    line(shots, 0, answer=lambda old: old + 1)(release)
    describe_anew(release)
    found = said_by(release)
    first = json.loads((release / f"mmlb_data/{shots}.jsonl").read_bytes().splitlines()[0])["id"]
    assert names(
        found[AUDIT], "ICL/food101_K8.json", "the answer of a question differs between files", (first, shots)
    ), found
    assert found[VERIFY] == []


def test_one_odd_value_ends_no_look_at_other_examples(release: Path) -> None:
    items(PHOTOS, lambda found: found[0].update(start=None))(release)
    line(PHOTOS, 4, depth_achieved=0.5)(release)
    describe_anew(release)
    audited = map(json.loads, command("audit", release, "--json").out.splitlines())
    found = next(each["problems"] for each in audited if each["file"] == f"{PHOTOS}.jsonl")
    assert {(each["problem"], each["count"]) for each in found} == {(ITEMS, 1), (PLACEMENT, 1)}
    first = {each["problem"]: each["first"] for each in found}
    assert first[ITEMS].startswith("line 1, vh_single-9: unit 0: start: ")
    assert first[PLACEMENT].startswith("line 5, vh_single-9: depth_achieved is 0.5")


# fmt: off
LOCKS: dict[str, tuple[str, Forgery]] = {
    "no counts": ("the datasets that are counted are not those of the manifest", lock(lambda f: f.update(datasets={}))),
    "no versions": (VERSIONS, lock(lambda f: f.update(versions={}))),
    "a version that is a number": (VERSIONS,
     lock(lambda f: f.update(versions={"mmlongbench": "0.0.1", "pillow": 1.0}))),
    "the examples of a cell": (CELLS, counts(examples=7)),
    "the rejects of a cell": (REJECTS, counts(examples=6, rejected=2)),
    "no rejects": ("the lock names no file of rejects", lock(lambda f: f["files"].pop("rejects.jsonl"))),
    "a cell that is negative": (COUNTS, counts(examples=-6)),
    "a cell that is no object": (COUNTS, lock(lambda f: f["datasets"]["vh_single"]["cells"].update({"2K": 3}))),
    "a cell too few": (LENGTHS, lock(lambda f: f["datasets"]["vh_single"]["cells"].pop("2K"))),
    "a length too many": (LENGTHS, lock(lambda f: f["manifest"][0].update(lengths=[2048, 4096, 8192]))),
    "the questions": (CELLS, lock(lambda f: f["datasets"]["vh_single"]["questions"].update(kept=3))),
    "the rejects of rows": (REJECTS,
     lock(lambda f: f["datasets"]["vh_single"]["questions"].update(rejected={"no-photo": 1}))),
    "the placements": (CELLS, lock(lambda f: f["manifest"][0].update(placements=[0.0, 0.5]))),
    "placements that cannot be": ("the placements of the lock are not valid",
     lock(lambda f: f["manifest"][0].update(placements=3))),
}
# fmt: on


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_cannot_be_is_found_by_both(name: str, release: Path) -> None:
    said, forge = LOCKS[name]
    forge(release)
    for found in said_by(release).values():
        assert any(kind.startswith(said) for _, kind, _ in found), found


def test_a_lock_of_another_version_may_name_other_packages_and_no_code(release: Path) -> None:
    lock(lambda found: found.update(versions={"mmlongbench": "0.0.1", "pillow": "1.0"}))(release)
    lock(lambda found: [dataset.pop("code") for dataset in found["manifest"]])(release)
    assert said_by(release) == {AUDIT: [], VERIFY: []}


def hurt(path: Path, kind: str) -> None:
    """Put something there that is dangerous to read as a whole."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(100 * 1024**3)
    else:
        path.write_text("[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse", "deep"])
def test_a_lock_that_would_never_end_is_one_line(kind: str, release: Path) -> None:
    hurt(release / LOCK, kind)
    for tool in ("audit", "verify", "diff"):
        given = [release, release] if tool == "diff" else [release]
        refused = command(tool, *given)
        assert (refused.code, refused.err.count("\n")) == (2, 1), refused
        assert LOCK in refused.err


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse"])
def test_what_a_release_names_is_read_as_bounded_regular_files(kind: str, release: Path, tmp_path: Path) -> None:
    """A sparse file of records is only read line by line, so it is left out."""
    hurt(next((release / "mmlb_image").rglob("*.jpg")), kind)
    hurt(release / "items" / f"{PHOTOS}.parquet", kind)
    hurt(release / "rejects.jsonl", kind)
    if kind != "sparse":
        hurt(release / "mmlb_data" / f"{PHOTOS}.jsonl", kind)
    found = said_by(release)
    parts = {each[0].split("/")[0] for each in found[VERIFY]}
    assert {"items", "mmlb_image", "rejects.jsonl"} <= parts
    assert {"items", "mmlb_image", "rejects.jsonl"} <= {each[0] for each in found[AUDIT]}
    hurt(tmp_path / "tokenizer.json", kind)
    name = str(tmp_path / "tokenizer.json")
    lock(lambda found: found["manifest"][0]["counter"]["tokenizer"].update(name=name))(release)
    refused = command("audit", release)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "tokenizer.json" in refused.err
