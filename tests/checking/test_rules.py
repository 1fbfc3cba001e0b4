"""Mistakes of tasks, most of which build a release, each found by `check`: the rule, the method and what is said.

All of them are datasets of one manifest, so that one other process audits and builds them all.
"""

import csv
import json
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from once import linked

import mmlongbench as mm
from mmlongbench.checking.check import check
from mmlongbench.checking.findings import Failure, SecondLook
from mmlongbench.checking.repeatable import ids_stay
from mmlongbench.checking.second_process import BuiltRelease, difference, look_again, rooted, surroundings
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.loading import find_manifest, load_manifest

HERE = Path(__file__).parent / "careless"
EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.timeout(900)  # the first test checks what the others look at
BUILT, KEPT, PACKED = "a small release can be built", "questions are kept", "examples are packed at every length"
ROWS, IDS = "rows are the same when they are read again", "ids are unique, and stay the same"
DRAFTS, PROMPTS = "a draft is the same each time it is made", "prompts come back from records"
CLUSTER = "a question has the same cluster everywhere"
NEGATIVES, ONCE = "no negative holds an answer", "required units are shown once"
EVERY, FULL = "every row can be drafted", "contexts are full"
GIVEN, HEADS = "nothing gives the answer away", "nothing before a unit tells gold"
TWICE, EVIDENCE = "no unit is there twice under two ids", "evidence is in the context"
OPTIONS = "options differ, and the question shows them"
FOLLOWS, WRONG = "answers and wordings follow the context", "wrong answers do not score full"
ANSWERS, SLOTS = "answers score full, empty outputs do not", "no slot or marker is left in prompts"
AUDIT, BYTES = "an audit in another process finds nothing", "another process builds the same bytes"
LINE = "in other surroundings (hash seed, date, HOME, LANG, working directory, workers): mmlb_data/notes/"
AGAIN = "a second call returns a different draft: "

# Tasks of a package

# fmt: off
BUILDERS = {
    "Counter": (DRAFTS, "draft()", f"{AGAIN}parts of question 1 is [\"\\n\\nQuestion "),
    "MemoCounter": (DRAFTS, "draft()", f"{AGAIN}data['memo'] of question 1 is …"),
    "Random": (DRAFTS, "draft()", f"{AGAIN}unit "),
    "Clock": (DRAFTS, "draft()", f"{AGAIN}parts of question 1 is [\"\\n\\nAt "),
    "Today": (BYTES, "draft() or record()", f"{LINE}Today_K1.jsonl differs in line 1: 'asked' is "),
    "ProcessId": (BYTES, "draft() or record()", f"{LINE}ProcessId_K1.jsonl differs in line 1: 'asked' is "),
    "SetOrder": (BYTES, "draft() or record()", f"{LINE}SetOrder_K1.jsonl differs in line 1: 'notes' is "),
    "HashOrder": (BYTES, "draft() or record()", f"{LINE}HashOrder_K1.jsonl differs in line 1: 'notes' is "),
    "Remembers": (DRAFTS, "draft()", f"{AGAIN}unit "),
    "Shuffles": (DRAFTS, "draft()", f"{AGAIN}unit 1 is 'note"),
    "OnceOnly": (DRAFTS, "draft()", "iterated again, its take order gives other units: there are 22 units, then 0"),
    "LengthOrder": (DRAFTS, "draft()", "the units of its take order depend on the length: unit 1 is 'note"),
    "LengthText": (DRAFTS, "draft()", "the units of its take order depend on the length: tail of unit 'note"),
    "HoldsAnswer": (NEGATIVES, "draft()", "the text of the negative 'note"),
    "GoldTwice": (ONCE, "draft()", "the text 'The note note"),
    "LengthCluster": (CLUSTER, "cluster()", "expected one cluster of a question, found 'False' at 1K and 'True' at 2K"),
    "KeepsState": (AUDIT, "prompt()", "in a new process, the prompt cannot be rebuilt from the record: KeyError: 'not"),
    "PromptOnce": (PROMPTS, "prompt()", "prompt(record) is not the prompt that was packed: the text at character "),
    "AllFields": (PROMPTS, "prompt()", "prompt(record) with a field more is not the prompt that was packed: the text"),
    "RecordCounter": (PROMPTS, "record()", "a second call returns a different record: 'number' is "),
    "SlotLeft": (SLOTS, "draft()", "every prompt has the slot {name} outside its units; fill it in, or name it in"),
    "ExpressionLeft": (SLOTS, "draft()", "every prompt has the slot {row.name} outside its units; fill it in, or name"),
    "EmptyWord": (ANSWERS, "record()", "metric 'sub_em' gives an empty output the full score; the answer is ['the']"),
    "Generous": (ANSWERS, "record()", "metric 'generous' gives an empty output the full score; the answer is ['"),
    "Harsh": (ANSWERS, "record()", "metric 'harsh': expected score 1 for the answer ['"),
    "Moody": (ANSWERS, "score()", "ZeroDivisionError: division by zero (careless.py, line "),
    "Everything": (PACKED, "", "no question fits 1K; the first: "),
    "LateError": (EVERY, "draft()", "KeyError: 'note07' (careless.py, line "),
    "EmptyUnits": (EVERY, "draft()", "unit 'empty 0' is empty; leave it out"),
    "GoldOffered": (EVERY, "draft()", "is in the take order, so a short context does not show it; require it, or name"),
    "TwoIds": (TWICE, "draft()", "and 'again' have the same text 'The note note"),
    "Marked": (HEADS, "draft()", "'[gold]' stands before every gold unit in all contexts, and before no other unit"),
    "MarkedByForm": (HEADS, "draft()", "'0:0! ' (0: any number, a: any word) stands before every gold unit in all"),
    "MarkedInside": (HEADS, "draft()", "'gold' stands before every gold unit in all contexts, and before no other"),
    "AsksAnswer": (GIVEN, "draft()", "stands in the question itself, as do those of 3 of 3 questions; leave it out"),
    "OtherPages": (EVIDENCE, "evidence()", "page 7 of 'doc' holds the answer, and is not among those shown; name"),
    "NoImages": (EVIDENCE, "evidence()", "page 1 of 'doc' is said to be shown, and `images` has no path of it; evid"),
    "UnshownOption": (OPTIONS, "draft()", "the question does not show the option 'mauve', which choices() offers"),
    "OptionTwice": (OPTIONS, "choices()", "the option 'colour' is offered twice; correct the row, or leave it out"),
    "Positioned": (FOLLOWS, "record()", "'position' is 0.5 at two placements, and the needles move; leave it out"),
    "FirstOf": (FOLLOWS, "draft()", "Wording.choose takes 'first' in all "),
    "PromptDate": (AUDIT, "prompt()", "in other surroundings, the prompt is another one: "),
    "AnyText": (WRONG, "score()", "metric 'any-text' gives any text the full score: 'Lorem ipsum"),
    "AnyColour": (WRONG, "score()", "metric 'any-colour' gives the answer of another question the full score: "),
}
REFUSED = {
    "Marker": ("draft()", "a text holds a literal <image>: "),
    "DepthCluster": ("cluster()", "the cluster is '0.0' at depth 0.0 and '1.0' at depth 1.0, expected one of a quest"),
    "LateOption": ("record()", "metric 'mc_acc' cannot score the answer 12: expected the place of an option, from 0 t"),
    "NegativeLabel": ("record()", "metric 'cls_acc' cannot score the answer -1: expected a label, which is at least 0"),
    "WordyFloat": ("record()", "metric 'doc_qa' cannot score the answer 'many': expected a number for the format Fl"),
    "LongYes": ("record()", "metric 'binary_acc' cannot score the answer 'Certainly': expected yes or no"),
}
"""The mistakes that the build refuses."""
READERS = {
    "TellingIds": (GIVEN, "row()", "stands in the id of its row, as do those of 3 of 3 questions; ids are public"),
    "SameIds": (IDS, "row()", "another row of the source has the same id; give each row an id of its own"),
    "CountedIds": (ROWS, "row()", "row 1 differs when the source is read again: field 'id' is \"note-"),
    "SetRows": (BYTES, "raw_rows()", "workers): the rows of the source, or their order, differ"),
    "RandomRows": (ROWS, "row()", "differs when the source is read again: field 'colour' is \""),
    "NoRows": (KEPT, "", "none of 24 rows is kept (24 × no-moral); the first: notes.txt, line 1, moral: no-moral: exp"),
    "RandomSample": (BYTES, "draw()", "the fingerprints of the sources differ; a sample is the same every time"),
}
# fmt: on
METRICS = {
    **{"generous": "GenerousMetric", "harsh": "HarshMetric", "moody": "MoodyMetric"},
    **{"any-text": "AnyTextMetric", "any-colour": "AnyColourMetric"},
}
WITHOUT_ROW = (
    "SlotLeft",
    "ExpressionLeft",
    "Moody",
    "CountedIds",
    "RandomRows",
    "RandomSample",
    "SetRows",
    "Marked",
    "MarkedByForm",
    "MarkedInside",
)
"""The mistakes that are not about one row."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the mistakes be an installed package, as far as Python can tell."""
    info = tmp_path_factory.mktemp("site") / "mmlongbench_careless-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mmlongbench-careless\nVersion: 0.1\n")
    readers = ("NoteReader", *READERS)
    groups = {
        "builders": {name: name for name in ("Notes", "EndsProcess", *REFUSED, *BUILDERS)},
        "readers": {name: "NoteReader" if name == "RandomSample" else name for name in readers},
        "samples": {name: "draw_random" if name == "RandomSample" else "draw_notes" for name in readers},
        "metrics": METRICS,
    }
    points = [
        f"[mmlongbench.{group}]\n" + "".join(f"{name} = careless:{found}\n" for name, found in named.items())
        for group, named in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(info.parent))
        patch.syspath_prepend(str(HERE))
        yield


def dataset(name: str, builder: str, reader: str) -> dict[str, Any]:
    admission = "2K" if builder == "Everything" else "1K"
    given = {"name": name, "builder": builder, "reader": reader, "source": "sample", "lengths": ["1K", "2K"]}
    return {**given, "admission_length": admission, "sample": {"n": 3}}


# Tasks in files

NUMBERED = """class Numbered(mt.readers.Reader[Fable]):
    \"\"\"Numbers the rows.\"\"\"

    row_type = Fable
    sources = ("rows",)
    image_folder = "fables"

    def raw_rows(self, sources):
        columns = mt.readers.Columns(("title", "text", "moral"))
        for number, (place, raw) in enumerate(mt.readers.table_rows(sources["rows"], columns), 1):
            yield mt.readers.raw_row(f"fable{number:04d}", raw, "fables", place)

    def row(self, raw, sources):
        return Fable(id=raw.id, **raw.fields)


class Fables("""
TAKEN = "[other.unit() for other in others]"
MORALS = 'mt.Unit(other.title, other.text + " So: " + row.moral) for other in others'
LATE_HASHES = "(*others[:48], *sorted(others[48:], key=lambda other: hash(other.title)))"
AGAIN_SHOWN = 'mt.Unit(path + "#2", mt.Image(path), (99, n), "padding") for n, path in enumerate(paths)'
ANSWER = """    def answer(self, example: mt.PackedExample) -> str:
        return "owl" if example.row else "fox"

    def draft("""

RECORD = """    def record(self, example: mt.PackedExample) -> mt.Record:
        if len(example.units) > 48 and "second_process" in sys.argv[0]:
            {}
        return super().record(example)

    def draft("""

NEXT_PAGE = """    def evidence(self, record: mt.Record) -> mt.Evidence:
        own = [unit for unit in record["units"] if unit["label"].startswith(record["first"].removesuffix(".pdf"))]
        images = {int(unit["label"].split()[-1]) - 1: unit["shown"][0]["image"] for unit in own}
        return mt.Evidence(record["first"], (abs(record["first_page"] - 2),), tuple(images), images)

    def draft("""


def recorded(value: str) -> tuple[tuple[str, str], ...]:
    """Return the changes that add a field to records."""
    return ("import mmlongbench", "import os\nimport mmlongbench"), ("row.moral)", f"row.moral, {{'from': {value}}})")


FABLES = {
    "unchanged": (),
    "numbered": (("class Fables(", NUMBERED),),
    "numbered_csv": (("class Fables(", NUMBERED),),
    "padding": ((TAKEN, f"[{MORALS}]"),),
    "asked": (("moral of {row.title}?", "moral of {row.title}: {row.moral}?"),),
    "ambiguous": (("moral of {row.title}?", "moral of the fable?"),),
    "folder": recorded("os.getcwd()"),
    "home": recorded("os.environ.get('HOME')"),
    "lang": recorded("os.environ.get('LANG')"),
    "unfilled": (),
    "twins": (
        (
            "self.others(row, sources)",
            "{o.title: o for o in self.others(row, sources) if o.title != row.title}.values()",
        ),
    ),
    "answer": (("    def draft(", ANSWER),),
    "refused": (("import mm", "import sys\nimport mm"), ("    def draft(", RECORD.format('raise mt.Rejected("late")'))),
    "answered": (
        ("import mm", "import sys\nimport mm"),
        ("    def draft(", RECORD.format('return {**super().record(example), "answer": "another"}')),
    ),
    "longest": ((TAKEN, f"[other.unit() for other in {LATE_HASHES}]"),),
}
COMPARISONS = {
    "taken": (("mt.InOrder(rest)", f"mt.InOrder((*rest, *({AGAIN_SHOWN})))"),),
    "other_page": (("    def draft(", NEXT_PAGE),),
    "shown": (("mt.InOrder(rest)", f"mt.InOrder((*({AGAIN_SHOWN}), *rest))"),),
}
WRONG_FILES = {
    "numbered": (IDS, "raw_rows()", "the row has the id 'fable0001'; use an id of the source, or a hash"),
    "numbered_csv": (IDS, "raw_rows()", "the row has the id 'fable0001'; use an id of the source, or a hash"),
    # the short contexts of the first task do not show the gold image again; the build refuses contexts that do
    "taken": (ONCE, "draft()", "of the take order shows the image of the required unit 'comparison/"),
    "other_page": (EVIDENCE, "evidence()", ", and the gold units of the draft are the pages ["),
    "shown": (BUILT, "draft()", " show the same picture, comparison/"),
    "padding": (GIVEN, "draft()", "stands in a padding unit, as do those of 2 of 2 questions; leave such units out"),
    "asked": (GIVEN, "draft()", "stands in the question itself, as do those of 2 of 2 questions; leave it out"),
    "ambiguous": (EVERY, "draft()", "row 'ecc9160c2d5cccd2' has the same question and the answer '"),
    "unfilled": (FULL, "draft()", "of mean size are missing; add sources, or take 64K out of `lengths`"),
    "twins": (EVERY, "", "has all the same fields, the same question and the same answer; leave one out"),
    "answer": (FOLLOWS, "answer()", "the same for a half of each context, for one unit and for none; compute it from"),
    # only the fourth length, which is packed and not built, shows it
    "longest": (BYTES, "draft() or record()", "the prompt at depth 0.0 is another one: "),
    "refused": (BYTES, "draft() or record()", "the prompt at depth 0.0 is in one of the two processes only"),
    "answered": (BYTES, "draft() or record()", "the answer at depth 0.0 is another one: "),
    **dict.fromkeys(("folder", "home", "lang"), (BYTES, "draft() or record()", "differs in line 1: 'from' is ")),
}


def files_with_mistakes(folder: Path) -> list[dict[str, Any]]:
    """Write the example tasks with mistakes, and return their datasets."""
    shutil.copy(EXAMPLES / "fables/fables.jsonl", folder)
    shutil.copytree(EXAMPLES / "comparison/documents", folder / "documents")
    shutil.copy(EXAMPLES / "comparison/questions.csv", folder)
    rows = [json.loads(line) for line in (folder / "fables.jsonl").read_text("utf-8").splitlines()]
    twins = [{**row, "id": f"row {number}"} for number, row in enumerate([*rows, rows[0]])]
    (folder / "twins.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in twins), "utf-8")
    rows[0]["text"] = "A fox.\n\nA goat, and\na crow."  # line breaks in a cell
    with (folder / "fables.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    datasets = []
    common = {"lengths": ["2K"], "admission_length": "2K", "licence": "Apache-2.0", "sample": {"n": 2}}
    for example, kind, tasks in (("fables", "Fables", FABLES), ("comparison", "Comparison", COMPARISONS)):
        for name, changes in tasks.items():
            text = (EXAMPLES / example / f"{example}.py").read_text("utf-8")
            for before, after in changes:
                assert before in text, before
                text = text.replace(before, after)
            (folder / f"{name}.py").write_text(text, "utf-8")
            rows_of = {"numbered_csv": "fables.csv", "twins": "twins.jsonl"}
            source = {"rows": rows_of.get(name, "fables.jsonl")}
            source = source if example == "fables" else {"questions": "questions.csv", "documents": "documents"}
            reader = {"reader": f"{name}.py:Numbered"} if "numbered" in name else {}
            made = {"name": name, "builder": f"{name}.py:{kind}", "source": source, **reader, **common}
            late = {key: ["2K", "4K", "6K", "8K"] for key in ("longest", "refused", "answered")}
            lengths = {"unfilled": ["2K", "64K"], **late}.get(name, common["lengths"])
            datasets.append({**made, "lengths": lengths})
    return datasets


@pytest.fixture(scope="module")
def checked(installed: None, tmp_path_factory: pytest.TempPathFactory) -> mm.Checked:
    """All mistakes, and the tasks that have none."""
    folder = tmp_path_factory.mktemp("mistakes")
    tasks = [dataset("right", "Notes", "NoteReader")]
    tasks += [dataset(name, name, "NoteReader") for name in (*REFUSED, *BUILDERS)]
    tasks += [dataset(name, "Notes", name) for name in READERS]
    tasks += files_with_mistakes(folder)
    (folder / "all.yaml").write_text(yaml.safe_dump({"datasets": tasks}), "utf-8")
    return check(load_manifest(folder / "all.yaml"), workers=1)


def of(checked: mm.Checked, name: str) -> list[mm.Finding]:
    return [found for found in checked.findings if found.dataset == name]


def failures(checked: mm.Checked, name: str) -> list[mm.Finding]:
    return [found for found in of(checked, name) if found.status == "fails"]


def test_tasks_without_a_mistake_keep_all_rules(checked: mm.Checked) -> None:
    for name in ("right", "unchanged"):
        assert [each for each in of(checked, name) if each.status not in ("holds", "skipped")] == []
    assert [each.rule for each in of(checked, "right") if each.status == "skipped"] == [
        "padding is of other things than needles",
        OPTIONS,
        "variants fit their lengths",
        "paired datasets have the same contexts",
        "each round shows every label once",
        "images can be decoded, in the planned sizes",
    ]


def test_a_mistake_in_one_dataset_does_not_hide_another(checked: mm.Checked) -> None:
    assert {found.dataset for found in checked.failures} == {*REFUSED, *BUILDERS, *READERS, *WRONG_FILES}
    assert len(checked.datasets) == 1 + len(REFUSED) + len(BUILDERS) + len(READERS) + len(FABLES) + len(COMPARISONS)


@pytest.mark.parametrize(("name", "expected"), [*BUILDERS.items(), *READERS.items()])
def test_a_mistake_that_builds_is_found(name: str, expected: tuple[str, str, str], checked: mm.Checked) -> None:
    rule, method, said = expected
    (found,) = [each for each in of(checked, name) if each.rule == rule]
    assert (found.status, found.method) == ("fails", method)
    assert said in found.detail
    assert bool(found.row) == (name not in WITHOUT_ROW)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_build_refuses_is_a_finding_and_rules_that_need_the_release_are_not_run(
    name: str, checked: mm.Checked
) -> None:
    method, said = REFUSED[name]
    first, *others = of(checked, name)
    assert (first.rule, first.status, first.method) == (BUILT, "fails", method)
    assert first.row.startswith("note")
    assert first.detail.startswith(said)
    ran = {each.rule for each in others if each.status != "not run"}
    assert ran == (set() if name == "Marker" else {KEPT, ROWS, IDS, DRAFTS, EVERY})
    reasons = {each.detail for each in others if each.status == "not run"}
    assert reasons <= {"the small release was not built", "no questions were chosen"}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_mistake_in_a_task_file_is_the_only_failure(name: str, checked: mm.Checked) -> None:
    rule, method, said = WRONG_FILES[name]
    (failure,) = failures(checked, name)
    assert (failure.rule, failure.method) == (rule, method)
    assert said in failure.detail
    assert (failure.row == "fable0002") == name.startswith("numbered")


def test_an_audit_counts_every_reject_of_one_id(checked: mm.Checked) -> None:
    """The task rejects 21 rows as repetitions of three ids; the lock counts 21 rejects."""
    assert [found.status for found in of(checked, "SameIds") if found.rule == AUDIT] == ["holds"]


def test_a_reader_of_the_engine_may_number_rows(tmp_path: Path) -> None:
    """Its ids are only looked at: public data that it reads do not change."""
    (note,) = ids_stay("own_documents", {"rows": tmp_path / "none.jsonl"}, ["m_001", "m_002", "m_003"], tmp_path)
    assert note == "ids are the numbers of rows: they move when a row is added above them"


# The other process


def test_a_task_that_ends_the_other_process_is_found_alone(installed: None, tmp_path: Path) -> None:
    tasks = [dataset("ends", "EndsProcess", "NoteReader"), dataset("right", "Notes", "NoteReader")]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump({"datasets": tasks}), "utf-8")
    found = check(load_manifest(tmp_path / "two.yaml"), workers=1)
    said = "the process that builds again ended with exit code 3: it said nothing"
    assert [(each.dataset, each.rule) for each in found.failures] == [("ends", AUDIT), ("ends", BYTES)]
    assert all(said in each.detail for each in found.failures)


def test_a_process_that_dies_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it dies before it looks at anything, and again for each release alone."""
    monkeypatch.setattr("sys.executable", "/bin/false")
    manifest = load_manifest(find_manifest("quickstart"))
    given = [BuiltRelease(manifest, tmp_path, tmp_path, {})] * 2
    said = "the process that builds again ended with exit code 1: it said nothing"
    assert look_again(given, tmp_path) == [SecondLook(failures=(Failure(said),), build_error=said)] * 2


def test_a_difference_names_the_line_the_field_and_the_row(finished: Path, tmp_path: Path) -> None:
    other = linked(finished, tmp_path / "other")
    assert difference(finished, other) is None
    path = other / "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    path.write_text(path.read_text("utf-8").replace('"hard"', '"soft"'), "utf-8")
    found = difference(finished, other)
    assert found
    assert (found.row, found.method) == ("mmlongdoc_0", "draft() or record()")
    assert (
        found.detail == 'mmlb_data/documentQA/mmlongdoc_K1.jsonl differs in line 1: \'answer\' is "hard" against "soft"'
    )
    path.unlink()
    found = difference(finished, other)
    assert found
    assert found.detail.endswith("two builds has mmlb_data/documentQA/mmlongdoc_K1.jsonl")


def test_it_is_given_absolute_paths(tmp_path: Path) -> None:
    given = {"name": "cars", "builder": "many_shot", "reader": "classified_tables", "lengths": ["8K"]}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({"datasets": [{**given, "source": {"data": "x"}}]}), "utf-8")
    (spec,) = load_manifest(tmp_path / "m.yaml").datasets
    relative = spec.model_copy(update={"source": {"data": (LocalPath(Path("data")),)}, "corpus": Path("corpus")})
    manifest = mm.Manifest(datasets=(relative,))
    (found,) = rooted(BuiltRelease(manifest, tmp_path, tmp_path, {})).manifest.datasets
    assert found.source == {"data": (LocalPath(Path("data").absolute()),)}
    assert found.corpus == Path("corpus").absolute()


def test_it_finds_packages_of_the_user_with_another_home(tmp_path: Path) -> None:
    given = surroundings(tmp_path)
    command = [sys.executable, "-c", "import os, site; print(os.environ['HOME']); print(site.getuserbase())"]
    found = subprocess.run(command, env=given, check=True, capture_output=True, text=True).stdout.splitlines()
    assert found == [str(tmp_path), site.getuserbase()]
    assert os.environ.get("HOME") != str(tmp_path)
