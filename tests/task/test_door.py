"""What a task says once is all that its record, prompt and needles need; and what only some tasks say."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from tiny import command

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
    assert {(line["metric"], *line["choices"]) for line in scores} == {("notes.py:exactly", "most=30")}
    report = command("report", str(out))
    assert (report.code, "50.0" in report.out, "notes.py:exactly" in report.out) == (0, True, True)


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
        ("unit 'b': place is an int, expected a tuple such as (3,)",),
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
    assert {reject["length"] for reject in rejects} == {1024, 2048}
    assert short.isdisjoint(reject["id"] for reject in rejects)


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


def test_a_context_without_any_unit_is_a_reject(tmp_path: Path) -> None:
    task = changed((DRAFT, "return mt.Draft((), mt.InOrder([mt.Unit('long', 'word ' * 3000)]))"), (PLACEMENTS, ""))
    ran = command("build", str(written(tmp_path, task)), "--out", str(tmp_path / "release"), "--limit", "3")
    assert "none of its units fits" in ran.err + (tmp_path / "release/rejects.jsonl").read_text("utf-8")


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
            f"has the field {name!r}, which the record has for",
        )
        for name in ("units", "instruction", "length", "needle_start")
    ),
    (DRAFT, f"{DRAFT[:-1]}, separator=' ')", "a draft of a task has no separator of its own; set `separator` of"),
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
