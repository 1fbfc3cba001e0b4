"""What a task says once is all that its record, prompt and needles need; and what only some tasks say."""

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny import command, hashes

import mmlongbench.task as mt
from mmlongbench.errors import PluginError
from mmlongbench.manifest.plugins import builder_type

WORDS = ("amber", "birch", "cedar", "dune", "ember", "fern", "glade", "heath", "inlet", "jetty", "knoll", "lagoon")
TASK = '''
from functools import partial

import mmlongbench.task as mt


class NoteRow(mt.Row):
    """A note; each is asked about."""

    name: str
    text: str
    answer: str


def exactly(prediction: str, record: mt.Record) -> bool:
    """Return whether the output is the answer."""
    return prediction.strip() == record["answer"]


class Notes(mt.Task[NoteRow]):
    """The colour of a note."""

    metric = exactly
    instruction = "Read the notes.\\n\\n"
    placements = mt.Placements(mt.Depth, (0, 1))

    def question(self, row):
        return f"Which colour has {row.name}?"

    def draft(self, row, sources, draws):
        others = draws.order("others", self.others(row, sources), lambda other: other.id)
        hay = mt.InOrder([note(other) for other in others])
        return mt.Draft((note(row, "asked"),), hay)


def note(row, label=""):
    return mt.Unit(row.name, row.text, head=f"{row.name}: ", label=label)
'''
ANSWER = '''
    def answer(self, example: mt.PackedExample) -> int:
        """Return how many letters are shown."""
        if len(example.units) < 3:
            raise mt.Rejected(f"{len(example.units)} letters", everywhere=True)
        return len(example.units)
'''


def written(folder: Path, task: str, lengths: str = "1K, 2K") -> Path:
    rows = [
        {
            "id": f"{word}-{number}",
            "name": f"{word} {number}",
            "text": f"It is the {number}th of its kind, painted {WORDS[(number * 5 + 3) % 12]}. " + f"See {word}. " * 9,
            "answer": WORDS[(number * 5 + 3) % 12],
        }
        for number in range(5)
        for word in WORDS
    ]
    (folder / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "notes.py").write_text(task, "utf-8")
    dataset = f"{{name: notes, builder: 'notes.py:Notes', source: {{rows: notes.jsonl}}, lengths: [{lengths}]}}"
    manifest = folder / "notes.yaml"
    manifest.write_text(f"datasets: [{dataset}]\n", "utf-8")
    return manifest


def built(folder: Path, task: str, limit: int = 3) -> tuple[Path, dict[str, list[dict[str, object]]]]:
    """Build a task, and return the release and its records by file."""
    out = folder / "release"
    ran = command("build", str(written(folder, task)), "--out", str(out), "--limit", str(limit))
    assert ran.code == 0, ran.err
    files = sorted((out / "mmlb_data").rglob("*.jsonl"))
    return out, {path.name: [json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in files}


def test_a_record_has_the_row_and_the_units_with_their_labels(tmp_path: Path) -> None:
    release, files = built(tmp_path, TASK)
    record = files["notes_K1_dep2.jsonl"][0]
    assert list(record)[:6] == ["id", "question", "answer", "name", "text", "units"]
    assert record["question"] == f"Which colour has {record['name']}?"
    units = record["units"]
    assert isinstance(units, list)
    assert units[0] == {"role": "needle", "shown": [f"{record['name']}: {record['text']}"], "label": "asked"}
    assert {unit["role"] for unit in units[1:]} == {"padding"}
    ran = command("audit", str(release), "--task", str(tmp_path / "notes.py"))
    assert ran.code == 0, ran.out


def test_a_metric_of_the_task_file_scores_with_its_parameters(tmp_path: Path) -> None:
    task = TASK.replace("record: mt.Record)", "record: mt.Record, most: int)").replace(
        'record["answer"]\n', 'record["answer"] and len(prediction) < most\n'
    )
    release, files = built(tmp_path, task.replace("metric = exactly", "metric = partial(exactly, most=30)"))
    name = "notes_K1_dep2.jsonl"
    said = ["{answer}", "it is painted in {answer}", "{answer}", "no", "no", "{answer}"]
    lines = [
        {"file": f"tasks/{name}", "id": record["id"], "depth": record["depth"], "prediction": text.format(**record)}
        for record, text in zip(files[name], said, strict=True)
    ]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    own, out = ["--task", str(tmp_path / "notes.py")], tmp_path / "scores"
    given = [
        "score",
        str(release),
        str(tmp_path / "said.jsonl"),
        *own,
        "--model",
        "m",
        "--only-answered",
        "--out",
        str(out),
    ]
    assert "50.0" in command(*given).out
    (file,) = out.glob("*.jsonl")
    scores = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["score"] for line in scores] == [1, 0, 1, 0, 0, 1]
    assert {(line["metric"], *line["choices"]) for line in scores} == {("notes.py:exactly(most=30)", "most=30")}
    report = command("report", str(out))
    assert (report.code, "50.0" in report.out, "notes.py:exactly(most=30)" in report.out) == (0, True, True)
    assert "totals of notes.py:exactly(most=30) are not shown: a report runs no task file" in report.out


def test_a_metric_with_long_parameters_has_scores_in_a_file_of_a_short_name(tmp_path: Path) -> None:
    task = TASK.replace("record: mt.Record)", "record: mt.Record, words: str)")
    release, files = built(
        tmp_path, task.replace("metric = exactly", f"metric = partial(exactly, words={'x' * 300!r})")
    )
    name, record = "notes_K1_dep2.jsonl", files["notes_K1_dep2.jsonl"][0]
    line = {"file": f"tasks/{name}", "id": record["id"], "depth": record["depth"], "prediction": record["answer"]}
    (tmp_path / "said.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    given = ["--task", str(tmp_path / "notes.py"), "--model", "m", "--only-answered", "--out", str(tmp_path / "scores")]
    metric = f"notes.py:exactly(words={'x' * 300!r})"
    ran = command("score", str(release), str(tmp_path / "said.jsonl"), *given, "--metrics", metric)
    assert ran.code == 0, ran.err
    (file,) = (tmp_path / "scores").glob("*.jsonl")
    assert file.name.startswith("m.notes.py:exactly(words='xxx")
    assert len(file.name) < 255
    assert json.loads(file.read_text("utf-8").splitlines()[0])["metric"] == metric


OWN = {
    "exactly": "exactly",
    "partial(exactly, most=30)": "exactly(most=30)",
    "partial(exactly, kind='strict', by=(1, 2))": "exactly(by=(1; 2); kind='strict')",
    "partial(exactly, by=exactly)": "exactly(by=exactly)",
    "Within(0.1)": "Within(0.1)",
    "Within(0.1).__call__": "Within(0.1).__call__",
}
UNNAMED = {
    "lambda said, record: 0.5": "<lambda>",
    "partial(exactly, by=lambda said: said)": "<lambda>",
    "(lambda: (exactly_as := partial(exactly), lambda *given: 1)[1])()": "<lambda>",
    "partial(exactly, words={'a', 'b'})": "{",
    "partial(exactly, words=frozenset({'a', 'b'}))": "{",
    "partial(exactly, by=object())": " at 0x",
}
WITHIN = '''
class Within(tuple):
    """A metric that is an object."""

    def __new__(cls, share):
        return super().__new__(cls, (share,))

    def __repr__(self):
        return f"Within({self[0]})"

    def __call__(self, prediction, record):
        return self[0]

'''


@pytest.mark.parametrize("metric", [*OWN, *UNNAMED])
def test_the_name_of_a_metric_tells_it_from_others_of_its_file(metric: str, tmp_path: Path) -> None:
    code = TASK.replace("\n\nclass Notes", f"\n{WITHIN}\nclass Notes").replace("= exactly", f"= {metric}")
    path = tmp_path / "notes.py"
    path.write_text(code, "utf-8")
    if metric in OWN:
        loaded = builder_type(f"{path}:Notes")("notes", mt.Options())
        assert loaded.spec.metric == f"notes.py:{OWN[metric]}"
        assert [*loaded.own_metrics()] == [loaded.spec.metric]
        return
    with pytest.raises(PluginError, match=r"'metric' has no name that tells it from others \((.*)\); define") as caught:
        builder_type(f"{path}:Notes")
    assert f"({UNNAMED[metric]}" in str(caught.value)


@pytest.mark.parametrize("value", ["100", "-0.5", "float('nan')"])
def test_a_score_outside_0_to_1_is_refused(tmp_path: Path, value: str) -> None:
    task = TASK.replace('prediction.strip() == record["answer"]', value)
    ran = command("build", str(written(tmp_path, task)), "--out", str(tmp_path / "release"), "--limit", "2")
    assert ran.code != 0
    assert "expected a score from 0 to 1" in ran.err
    assert "notes.py:exactly" in ran.err


HAY = "mt.InOrder([note(other) for other in others])"
BUILT = {
    "a draft that is a list": ("return mt.Draft(", "return list, (", ("returned a tuple, expected a Draft",)),
    "a question of the method": ('return f"Which', 'return 3 or f"Which', ("question is an int, expected a text",)),
    "a required unit with a place": (
        '(note(row, "asked"),)',
        '(mt.Unit("x", "text", (0,)),)',
        ("unit 'x' is required and has a place; in a task with placements", "give it the role own, or no place"),
    ),
    "rows as hay": (HAY, "mt.InOrder(others)", ("take_order holds a NoteRow, expected mt.Unit",)),
    "old hay": (HAY, 'mt.InOrder([mt.Unit("b", "padding", "b")])', ("unit 'b': place is a str", "such as (3,)")),
    "hay of another place": (
        HAY,
        'mt.InOrder([note(others[0]), mt.Unit("b", "b", 3)])',
        ("unit 'b': place is an int, expected a tuple of whole numbers such as (3,)",),
    ),
    "hay without a body": (HAY, 'mt.InOrder([mt.Unit("b", None)])', ("unit 'b': body is a NoneType",)),
    "hay of a turn": (HAY, 'mt.InOrder([mt.Unit("b", turns=("Hi",))])', ("unit 'b': turns holds a str",)),
    "labels of hay": (HAY, 'mt.InOrder([mt.Unit("b", "b", label=4)])', ("unit 'b': label is an int",)),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_build_names_a_wrong_field(name: str, tmp_path: Path) -> None:
    old, new, facts = BUILT[name]
    assert old in TASK
    manifest = written(tmp_path, TASK.replace(old, new), "1K")
    ran = command("build", str(manifest), "--out", str(tmp_path / "release"), "--limit", "2")
    assert (ran.code, [fact for fact in ("draft(), row '", *facts) if fact not in ran.err]) == (2, []), ran.err


def test_check_lets_pass_answers_from_needles_and_fields_that_are_no_depths(tmp_path: Path) -> None:
    answer = """
    def answer(self, example):
        return example.needles[0].unit.text.split("painted ")[1].split(".")[0]


def note(row"""
    task = TASK.replace("\n\ndef note(row", answer).replace(
        "    answer: str\n", "    answer: str\n    position: float = 0.3\n"
    )
    task = task.replace('"asked"),), hay)', '"asked"),), hay, fields={"depth_metres": 26.5})')
    ran = command("check", str(written(tmp_path, task, "1K")))
    assert "answer()" not in ran.out
    assert "two placements" not in ran.out
    assert ran.code == 0, ran.out


def test_a_record_of_ones_own_may_use_the_fields_of_a_draft_under_other_names(tmp_path: Path) -> None:
    record = """
    def record(self, example):
        record = super().record(example)
        record["metres"] = record.pop("depth")
        return record


def note(row"""
    changed = TASK.replace('"asked"),), hay)', '"asked"),), hay, fields={"depth": 7})')
    with_record = changed.replace("\n\ndef note(row", record)
    _, files = built(tmp_path, with_record)
    assert {record["metres"] for record in files["notes_K1_dep2.jsonl"]} == {7}
    said = "Draft.fields holds {!r}, which {}"
    replaced = with_record.replace('{"depth": 7}', '{"depth": 7, "text": "another"}')
    for task, message in (
        (changed, said.format("depth", "the engine adds")),
        (replaced, said.format("text", "the record has already")),
    ):
        ran = command("build", str(written(tmp_path, task)), "--out", str(tmp_path / "other"), "--limit", "2")
        assert message in ran.err


def test_an_audit_tells_a_needle_from_padding_that_quotes_it_in_the_same_line(tmp_path: Path) -> None:
    task = TASK.replace("    instruction", "    separator = ' '\n    instruction")
    quoting = """
        hay = [note(other) for other in others]
        hay[2] = mt.Unit("q", "Somebody said: " + row.text)
        return mt.Draft((mt.Unit(row.id, row.text),), mt.InOrder(hay))"""
    task = task.replace("        hay = mt.InOrder([note(other) for other in others])", quoting[1:])
    release, _ = built(tmp_path, task)
    ran = command("audit", str(release), "--task", str(tmp_path / "notes.py"))
    assert ran.code == 0, ran.out


def test_a_question_without_an_answer_at_a_length_is_rejected_there(tmp_path: Path) -> None:
    release, files = built(tmp_path, counting(everywhere=False), limit=8)
    short, long = (files[f"notes_K{length}_dep2.jsonl"] for length in (1, 2))
    rejects = [json.loads(line) for line in (release / "rejects.jsonl").read_text("utf-8").splitlines()]
    gone = {reject["id"] for reject in rejects}
    assert 0 < len(gone) < 8
    assert {(reject["length"], reject["reason"]) for reject in rejects} == {(2048, "refused-by-task")}
    assert {record["id"] for record in short} == {record["id"] for record in long} | gone
    assert all(record["answer"] == len(record["units"]) for record in (*short, *long))  # type: ignore[arg-type]


def test_a_question_may_be_rejected_everywhere(tmp_path: Path) -> None:
    release, files = built(tmp_path, counting(everywhere=True), limit=8)
    short, long = ({record["id"] for record in files[f"notes_K{length}_dep2.jsonl"]} for length in (1, 2))
    rejects = [json.loads(line) for line in (release / "rejects.jsonl").read_text("utf-8").splitlines()]
    assert short == long
    assert {reject["expected"] for reject in rejects} == {"a valid question at 2K"}
    assert {reject["length"] for reject in rejects} == {1024, 2048}
    assert short.isdisjoint(reject["id"] for reject in rejects)


@pytest.mark.parametrize("everywhere", [True, False])
def test_plan_and_check_leave_refused_questions_out_as_a_build_does(everywhere: bool, tmp_path: Path) -> None:
    task = counting(everywhere=everywhere).replace("return len(example.units)", "return str(len(example.units))")
    manifest = written(tmp_path, task)
    planned = command("plan", str(manifest), "--probe", "8", "--limit", "8")
    told = "of 8 probed questions do not fit, or the task refuses them"
    assert (planned.code, planned.out.count(told)) == (0, 2 if everywhere else 1)
    ran = command("check", str(manifest), "--limit", "8", "--json")
    assert ran.code == 0, ran.out
    said = {found["rule"]: found["detail"] for found in json.loads(ran.out)["findings"]}
    assert "of 8 questions are refused at 2K" in said["examples are packed at every length"]


@pytest.mark.parametrize(("everywhere", "method"), [(True, "answer"), (True, "record"), (False, "answer")])
def test_a_length_is_added_only_if_no_question_of_the_release_is_left_out(
    everywhere: bool, method: str, tmp_path: Path
) -> None:
    task = counting(everywhere=everywhere)
    if method == "record":
        task = task.replace("def answer", "def record")
        task = task.replace("return len(example.units)", "return super().record(example)")
    manifest, out = written(tmp_path, task), tmp_path / "release"
    words = ("build", str(manifest), "--limit", "8", "--out")
    assert command(*words, str(out), "--lengths", "1K").code == 0
    before = hashes(out)
    ran = command(*words, str(out))
    assert ran.code == (2 if everywhere else 0), ran.err
    if everywhere:
        assert "cannot be extended: question '" in ran.err
        assert "would be left out (expected a valid question at 2K, found " in ran.err
        assert "put new ones at the end" not in ran.err
        assert hashes(out) == before
    assert command(*words, str(tmp_path / "at-once")).code == 0
    assert (hashes(out) == hashes(tmp_path / "at-once")) is not everywhere


def test_a_task_says_itself_whether_it_rejects_everywhere() -> None:
    def task(*bases: type, **members: object) -> bool:
        return bool(type("Own", (*bases, mt.Task), members).may_reject_everywhere)  # type: ignore[attr-defined]

    class Asked(mt.Task[mt.Row]):
        def answer(self, example: mt.PackedExample) -> object:
            return 0

    class Mixed:
        def record(self, example: mt.PackedExample) -> mt.Record:
            return {}

    assert not task()
    assert (task(Asked), task(Mixed), task(may_reject_everywhere=True)) == (True, True, True)
    assert not task(Asked, may_reject_everywhere=False)


def test_the_lengths_of_a_question_are_tried_once(tmp_path: Path) -> None:
    """Each question has two placements at three lengths: they are tried once, and packed once."""
    log = tmp_path / "asked"
    said = f"with open({str(log)!r}, 'a') as log: log.write(example.id + chr(10))"
    task = counting(everywhere=True).replace("if len(example.units) > 12 and", f"{said}\n        if not")
    manifest = written(tmp_path, task.replace("if not sum", "if 0 and sum"), lengths="1K, 2K, 4K")
    assert command("build", str(manifest), "--out", str(tmp_path / "out"), "--limit", "2").code == 0
    assert {*Counter(log.read_text("utf-8").split()).values()} == {2 * 3 * 2}


SHARED = """
    def contexts(self, rows, sources):
        hay = [mt.Unit(other.id, other.text, (sources.draws.rank("place", other.id),)) for other in self.rows(sources)]
        return [self.shared("all", mt.Draft((), mt.InOrder(hay)), rows)]

    def draft(self, row, sources, draws):
        return self.contexts([row], sources)[0]


def note("""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mt.InOrder(hay))", "mt.InOrder(hay), one_of=hay[:1])", "contexts(): the context 'all' has one_of, which is"),
        ("SHARED", "", "record(), row 'ember-0' (notes.jsonl, line 5): questions that share contexts are left out at"),
    ],
    ids=["one-of", "everywhere"],
)
def test_shared_contexts_refuse_what_is_for_one_question(old: str, new: str, said: str, tmp_path: Path) -> None:
    answer = ANSWER.replace("len(example.units) < 3", str(old == "SHARED"))
    task = TASK.replace("mt.Task[NoteRow]", "mt.Task[NoteRow], mt.advanced.SharedContextBuilder[NoteRow]")
    head = task[: task.index("    def draft")].replace("placements = mt.Placements(mt.Depth, (0, 1))", "")
    task = head + (answer + SHARED + task.partition("def note(")[2]).replace(old, new)
    ran = command("build", str(written(tmp_path, task)), "--out", str(tmp_path / "out"), "--limit", "4")
    assert (ran.code, said in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("verb", ["build", "check"])
def test_a_metric_that_cannot_be_made_is_named(verb: str, tmp_path: Path) -> None:
    code = "class Broken(mt.metrics.Metric):\n    def __init__(self, settings):\n        raise KeyError('words')\n\n"
    code += "    def score(self, asked):\n        return mt.Score(1.0)\n\n\n"
    task = TASK.replace("class Notes", f"{code}class Notes").replace("metric = exactly", "metric = Broken")
    given = ("--out", str(tmp_path / "out")) if verb == "build" else ()
    ran = command(verb, str(written(tmp_path, task)), *given, "--limit", "2")
    assert ran.code != 0
    assert (
        "metric 'notes.py:Broken': __init__(): " if verb == "build" else "fails\n  in __init__()"
    ) in ran.err + ran.out
    assert "KeyError: 'words' (notes.py, line 22)" in ran.err + ran.out


def counting(*, everywhere: bool) -> str:
    """Return the task with an answer that depends on the context, and that some questions lack at 2K."""
    refused = "len(example.units) > 12 and sum(map(ord, example.id)) % 2"
    method = ANSWER.replace("len(example.units) < 3", refused).replace("everywhere=True", f"everywhere={everywhere}")
    return TASK.replace("\n\ndef note(row", f"{method}\n\ndef note(row")


def test_at_least_one_of_some_units_must_be_shown(tmp_path: Path) -> None:
    task = TASK.replace(
        'return mt.Draft((note(row, "asked"),), hay)',
        "return mt.Draft((note(row),), hay, one_of=hay.order[20:] if row.name < 'd' else hay.order[:3])",
    )
    release, files = built(tmp_path, task, limit=12)
    rejects = [json.loads(line) for line in (release / "rejects.jsonl").read_text("utf-8").splitlines()]
    assert rejects
    assert {(reject["reason"], reject["id"] < "d") for reject in rejects} == {("not-shown", True)}
    assert all(str(record["id"]) > "d" for record in files["notes_K1_dep2.jsonl"])


def test_an_export_scores_the_examples_of_a_task_file(tmp_path: Path) -> None:
    release, files = built(tmp_path, TASK)
    out = tmp_path / "exported"
    ran = command("export", str(release), "--to", "lmms-eval", "--task", str(tmp_path / "notes.py"), "--out", str(out))
    assert ran.code == 0, ran.err
    (written,) = out.glob("*/utils.py")
    scorer = runpy.run_path(str(written))["scorer"]()
    record = files["notes_K1_dep2.jsonl"][0]
    key = {"file": "tasks/notes_K1_dep2.jsonl", "id": record["id"], "depth": record["depth"]}
    assert scorer.score(key, record["answer"]).score == 1
    assert scorer.score(key, "none of them").score == 0


DRAFT = 'return mt.Draft((note(row, "asked"),), hay)'
PLACEMENTS = "placements = mt.Placements(mt.Depth, (0, 1))"
CHAT = """
def exchange(note, further=""):
    return mt.Unit(note.name, turns=(mt.Turn("user", (note.text + further,)), mt.Turn("assistant", ("I see.",))))
"""


def changed(*pairs: tuple[str, str]) -> str:
    """Return the task with other pieces."""
    task = TASK
    for piece, instead in pairs:
        assert piece in task
        task = task.replace(piece, instead)
    return task


@pytest.mark.parametrize(
    ("draft", "roles"),
    [
        ("(exchange(row),), mt.InOrder(talk)", {"user", "assistant"}),
        ("(note(row),), mt.Chain((lambda: talk,))", {"user", "assistant"}),
        ("(note(row),), mt.InOrder({unit.id: unit for unit in talk}.values())", {"user", "assistant"}),
        ("(note(row),), mt.InOrder([note(other) for other in others])", {"user"}),
        ("(note(row),), mt.InOrder([exchange(other, ' word' * 3000) for other in others])", {"user"}),
        ("(exchange(row),), mt.InOrder([note(other) for other in others])", {"user", "assistant"}),
    ],
    ids=("turns", "a chain of turns", "turns that are no list", "no turns", "turns that never fit", "one with turns"),
)
def test_a_conversation_is_one_whichever_units_are_shown(tmp_path: Path, draft: str, roles: set[str]) -> None:
    talk = f"talk = [exchange(other) for other in others]\n        return mt.Draft({draft})"
    release, files = built(tmp_path, changed((DRAFT, talk), (PLACEMENTS, f"{PLACEMENTS}\n    in_turns = True")) + CHAT)
    shown = [unit for record in files["notes_K1_dep2.jsonl"] for unit in record["units"]]  # type: ignore[attr-defined]
    assert {turn["role"] for unit in shown for turn in unit["turns"]} == roles
    ran = command("audit", str(release), "--task", str(tmp_path / "notes.py"), "--json")
    assert [json.loads(line)["problems"] for line in ran.out.splitlines()] == [[], []]


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        ("(), mt.InOrder([mt.Unit('long', 'word ' * 3000)])", "none of its units fits"),
        ("(), mt.InOrder([]), one_of=()", "the draft has no units"),
        ("(), mt.Chain((lambda: [],))", "the draft has no units"),
        ("(), hay, one_of=()", "expected units in Draft.one_of, found none"),
    ],
)
def test_a_context_without_any_unit_or_any_that_it_must_show_is_a_reject(tmp_path: Path, draft: str, said: str) -> None:
    task = changed((DRAFT, f"return mt.Draft({draft})"), (PLACEMENTS, ""))
    ran = command("build", str(written(tmp_path, task)), "--out", str(tmp_path / "release"), "--limit", "3")
    assert said in ran.err + (tmp_path / "release/rejects.jsonl").read_text("utf-8")


WORDED = """asked = draws.choice("asked", others[:3])

        def choose(units):
            return [unit.id for unit in units].index(asked.name) % 2

        around = lambda text: ("Look closely. ", "Is the number of notes before ", f"{asked.name} {text}?")
        wording = mt.Wording(("even", "odd"), choose, around)
        return mt.Draft((), hay, wording, one_of=[note(asked)] if row.name < "d" else [note(others[40])])"""


def test_words_are_chosen_among_the_units_of_a_context_that_shows_what_it_must(tmp_path: Path) -> None:
    release, files = built(tmp_path, changed((DRAFT, WORDED), (PLACEMENTS, "")), limit=8)
    rejects = [json.loads(line) for line in (release / "rejects.jsonl").read_text("utf-8").splitlines()]
    assert {reject["reason"] for reject in rejects} == {"not-shown"}
    questions: list[Any] = [record["question"] for record in files["notes_K2.jsonl"]]
    assert questions
    assert all(said.startswith("Look closely. Is the number") for (said,) in questions)
    ran = command("audit", str(release), "--task", str(tmp_path / "notes.py"))
    assert ran.code == 0, ran.out


INSTRUCTION = '"Read the notes.\\n\\n"'
REFUSED = [
    *(
        (DRAFT, f"{DRAFT[:-1]}, fields={{{name!r}: 3}})", f"Draft.fields holds {name!r}, which the record has already")
        for name in ("id", "question", "answer", "instruction", "units", "text")
    ),
    *(
        (DRAFT, f"{DRAFT[:-1]}, fields={{{name!r}: 3}})", f"Draft.fields holds {name!r}, which the engine adds")
        for name in ("length", "depth", "canary")
    ),
    *(
        (
            "    name: str\n",
            f"    name: str\n    {name}: str = ''\n",
            f"has the field {name!r}, which belongs to the en",
        )
        for name in ("units", "instruction", "length", "needle_start", "place", "file")
    ),
    (INSTRUCTION, "''", "`instruction` of the task does not end with a newline"),
    (
        INSTRUCTION,
        f"{INSTRUCTION}\n    in_turns = True\n    separator = ' '",
        "expected one with a newline at both ends",
    ),
    (INSTRUCTION, "'Read.\\n\\n'\n    question_format = '{question}'", "did you mean 'question_form'?"),
    (DRAFT, DRAFT.replace("mt.", "mt.advanced.Context"), "found none; return an mt.Draft, to which the task adds it"),
    (DRAFT, f"{DRAFT[:-1]}, instruction=('Read.',))", "Draft.instruction does not end with a newline"),
    (INSTRUCTION, "'Read:'", "'instruction' is 'Read:', expected a text that ends with a newline"),
    ("row.text,", "turns=(mt.Turn('user', (row.text,)),),", "has turns; a task with such units sets `in_turns = True`"),
]
"""A piece of the task, what stands there in its place, and the message."""


@pytest.mark.parametrize(("piece", "instead", "message"), REFUSED)
def test_what_would_spoil_a_record_is_refused_by_name(tmp_path: Path, piece: str, instead: str, message: str) -> None:
    task = changed((piece, instead))
    ran = command("build", str(written(tmp_path, task)), "--out", str(tmp_path / "release"), "--limit", "1")
    assert ran.code != 0
    assert message in ran.err
