"""What a task says once is all that its record, prompt and needles need; and what only some tasks say."""

import json
import runpy
from pathlib import Path

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
