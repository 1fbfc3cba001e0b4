"""Mistakes of tasks, most of which build a release, each found by `check`: the rule, the method and what is said.

All of them are datasets of one manifest, so that one other process audits and builds them all.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mmlongbench.checking.check import check
from mmlongbench.checking.findings import Checked, Finding
from mmlongbench.manifest.model import DatasetSpec, Manifest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "careless"
KEPT, ROWS, IDS = (
    "questions are kept, and fit every length",
    "rows are the same when they are read again",
    "ids are unique, and stay the same",
)
DRAFTS, PROMPTS, CLUSTER = (
    "a draft is the same each time it is made",
    "prompts come back from records",
    "a question has the same cluster everywhere",
)
NEGATIVES, ONCE = "no negative holds an answer", "required units are shown once"
ANSWERS, SLOTS = "answers score full, empty outputs do not", "no slot or marker is left in prompts"
AUDIT, BYTES = "an audit in another process finds nothing", "another process builds the same bytes"
LINE = "in other surroundings (hash seed, date, HOME, LANG, working directory, workers): mmlb_data/notes/"
AGAIN = "a second call returns a different draft: "
BUILDERS = {
    "Counter": (DRAFTS, "draft()", f"{AGAIN}parts of the question is ('\\n\\nQuestion "),
    "Random": (DRAFTS, "draft()", f"{AGAIN}unit "),
    "Clock": (DRAFTS, "draft()", f"{AGAIN}parts of the question is ('\\n\\nAt "),
    "Today": (BYTES, "draft() or record()", f"{LINE}Today_K1.jsonl differs in line 1: 'asked' is ['\\n\\nOn 20"),
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
    "KeepsState": (
        AUDIT,
        "prompt()",
        "in a new process, the prompt cannot be rebuilt from the record: KeyError: 'note",
    ),
    "PromptOnce": (PROMPTS, "prompt()", "prompt(record) is not the prompt that was packed: the text at character "),
    "AllFields": (PROMPTS, "prompt()", "prompt(record) with a field more is not the prompt that was packed: the text"),
    "RecordCounter": (PROMPTS, "record()", "a second call returns a different record: 'number' is "),
    "SlotLeft": (SLOTS, "draft()", "every prompt has the slot {name} outside its units; fill it in, or name it in"),
    "ExpressionLeft": (SLOTS, "draft()", "every prompt has the slot {row.name} outside its units; fill it in, or name"),
    "EmptyWord": (ANSWERS, "record()", "metric 'sub_em' gives an empty output the full score; the answer is ['the']"),
    "Generous": (ANSWERS, "record()", "metric 'generous' gives an empty output the full score; the answer is ['"),
    "Harsh": (ANSWERS, "record()", "metric 'harsh': expected score 1 for the answer ['"),
    "Moody": (ANSWERS, "score()", "ZeroDivisionError: division by zero (careless.py, line "),
    "Everything": (KEPT, "", "no question fits 1K; the first: notes.txt, line "),
}
REFUSED = {
    "Marker": ("draft()", "a text holds a literal <image>: "),
    "DepthCluster": (
        "cluster()",
        "the cluster is '0.0' at depth 0.0 and '1.0' at depth 1.0, expected one of a question",
    ),
    "LateOption": (
        "record()",
        "metric 'mc_acc' cannot score the answer 12: expected the place of an option, from 0 to 9",
    ),
    "NegativeLabel": ("record()", "metric 'cls_acc' cannot score the answer -1: expected a label, which is at least 0"),
    "LongYes": ("record()", "metric 'binary_acc' cannot score the answer 'Certainly': expected yes or no"),
}
"""The mistakes that the build refuses."""
READERS = {
    "SameIds": (IDS, "row()", "another row of the source has the same id; give each row an id of its own"),
    "CountedIds": (ROWS, "row()", "row 1 differs when the source is read again: field 'id' is 'note-"),
    "SetRows": (BYTES, "raw_rows()", "workers): the rows of the source, or their order, differ"),
    "RandomRows": (ROWS, "row()", "differs when the source is read again: field 'colour' is '"),
    "NoRows": (
        KEPT,
        "",
        "none of 24 rows is kept (24 × no-moral); the first: notes.txt, line 1, moral: no-moral: expected",
    ),
    "RandomSample": (BYTES, "draw()", "the fingerprints of the sources differ; a sample is the same every time"),
}
METRICS = {"generous": "GenerousMetric", "harsh": "HarshMetric", "moody": "MoodyMetric"}
WITHOUT_ROW = ("SlotLeft", "ExpressionLeft", "Moody", "CountedIds", "RandomRows", "RandomSample", "SetRows")
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


def dataset(name: str, builder: str, reader: str) -> DatasetSpec:
    fields = {"name": name, "builder": builder, "reader": reader, "source": "sample", "lengths": ["1K", "2K"]}
    admission = "2K" if builder == "Everything" else "1K"
    return DatasetSpec.model_validate({**fields, "admission_length": admission, "sample": {"n": 3}})


@pytest.fixture(scope="module")
def checked(installed: None) -> Checked:
    """All mistakes, and the task that has none."""
    tasks = [dataset("right", "Notes", "NoteReader")]
    tasks += [dataset(name, name, "NoteReader") for name in (*REFUSED, *BUILDERS)]
    tasks += [dataset(name, "Notes", name) for name in READERS]
    return check(Manifest(datasets=tuple(tasks)), workers=1)


def of(checked: Checked, name: str) -> list[Finding]:
    return [found for found in checked.findings if found.dataset == name]


def test_the_task_without_a_mistake_keeps_all_rules(checked: Checked) -> None:
    found = of(checked, "right")
    assert [each for each in found if each.status not in ("holds", "skipped")] == []
    assert [each.rule for each in found if each.status == "skipped"] == [
        "each round shows every label once",
        "images can be decoded, in the planned sizes",
    ]


@pytest.mark.parametrize(("name", "expected"), [*BUILDERS.items(), *READERS.items()])
def test_a_mistake_that_builds_is_found(name: str, expected: tuple[str, str, str], checked: Checked) -> None:
    rule, method, said = expected
    (found,) = [each for each in of(checked, name) if each.rule == rule]
    assert (found.status, found.method) == ("fails", method)
    assert said in found.detail
    assert bool(found.row) == (name not in WITHOUT_ROW)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_build_refuses_is_a_finding_and_rules_that_need_the_release_are_not_run(
    name: str, checked: Checked
) -> None:
    method, said = REFUSED[name]
    first, *others = of(checked, name)
    assert (first.rule, first.status, first.method) == ("a small release can be built", "fails", method)
    assert first.row.startswith("note")
    assert first.detail.startswith(said)
    ran = {each.rule for each in others if each.status != "not run"}
    assert ran == (set() if name == "Marker" else {KEPT, ROWS, IDS, DRAFTS})
    reasons = {each.detail for each in others if each.status == "not run"}
    assert reasons <= {"the small release was not built", "no questions were chosen"}


def test_a_mistake_in_one_dataset_does_not_hide_another(checked: Checked) -> None:
    assert {found.dataset for found in checked.failures} == {*REFUSED, *BUILDERS, *READERS}
    assert len(checked.datasets) == len(REFUSED) + len(BUILDERS) + len(READERS) + 1


def test_an_audit_counts_every_reject_of_one_id(checked: Checked) -> None:
    """The task rejects 21 rows as repetitions of three ids; the lock counts 21 rejects."""
    assert [found.status for found in of(checked, "SameIds") if found.rule == AUDIT] == ["holds"]


def test_a_task_that_ends_the_other_process_is_found_alone(installed: None) -> None:
    tasks = (dataset("ends", "EndsProcess", "NoteReader"), dataset("right", "Notes", "NoteReader"))
    found = check(Manifest(datasets=tasks), workers=1)
    said = "the process that builds again ended with exit code 3: it said nothing"
    assert [(each.dataset, each.rule) for each in found.failures] == [("ends", AUDIT), ("ends", BYTES)]
    assert all(said in each.detail for each in found.failures)
