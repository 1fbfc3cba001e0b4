"""Predictions are read once and joined with their examples: each line has its place, others are counted by reason."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from score_lines import Line, first, means, problems, score, scored, write
from tiny import Ran, command

from mmlongbench.metrics.benchmark import TotalCount
from mmlongbench.task import Score
from mmlongbench.task.metrics import ScoringInput

DOCS = "documentQA/mmlongdoc_K8.jsonl"
VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
VIQUAE = "vrag/viquae_K8_dep6.jsonl"
COUNTS = "NIAH/counting-text_test_K8_dep3.jsonl"
ICL = "ICL/food101_K8.frozen.jsonl"
LINE: Line = {"file": VH, "id": "vh_multi-0", "permutation": 0, "prediction": "Yes"}


def run(release: Path, lines: Sequence[object], folder: Path, *options: str) -> Ran:
    """Score lines: JSON's values, or bytes as they are."""
    made = (each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines)
    (folder / "m.jsonl").write_bytes(b"\n".join(made))
    return command("score", release, folder / "m.jsonl", "--out", folder / "scores", "--partial", "--json", *options)


def test_a_line_is_told_by_file_id_and_placement_however_they_are_written(public: Path, tmp_path: Path) -> None:
    of = {"file": f"./mmlb_data/{VIQUAE}", "id": "viquae-1", "permutation": None}
    lines = [
        {**of, "depth": 0.4, "prediction": "No\n"},
        b"",
        {**of, "depth": 0.2000000001, "prediction": "Answer: Mott"},
        {**of, "depth": 0, "prediction": "Mott"},
        {"file": "mmlb_data/ICL/food101_K8.json", "id": "test-1", "prediction": "label: 0"},
    ]
    found = run(public, lines, tmp_path)
    made = {(each.id, each.depth): each.score for each in scored(tmp_path / "scores") if each.status == "scored"}
    assert made == {("viquae-1", 0.4): 0.0, ("viquae-1", 0.2): 1.0, ("viquae-1", 0.0): 1.0, ("test-1", None): 1.0}
    assert set(problems(found)) == {"absent", "no-predictions"}
    wrong = {**of, "permutation": 1, "depth": None, "prediction": "Mott"}
    assert problems(run(public, [wrong], tmp_path))["wrong-placement"] == 1


NO_SAMPLES: tuple[object, ...] = (-1, 1_000_000, 10**400, True, False, 1.0, "1", [0], {})
UNREAD: dict[str, tuple[object, str, str]] = {
    "no JSON": (b"{not json", "unreadable-line", ""),
    "no UTF-8": (b'{"id": "\xff"}', "unreadable-line", ""),
    "brackets": (b"[" * 100_000, "unreadable-line", ""),
    "a list": ([1], "unreadable-line", ""),
    "no file": ({"id": "vh_multi-1", "prediction": "Yes"}, "missing-field", ": file"),
    "ids": ({**LINE, "id": ["vh"]}, "mistyped-field", ": id is ['vh'], expected a text"),
    "a depth in words": ({**LINE, "depth": "0.2"}, "mistyped-field", ": depth is '0.2', expected a number"),
    "no number": (b'{"file": "a", "id": "b", "depth": NaN, "prediction": ""}', "mistyped-field", ": depth is nan"),
    "a long number": (
        b'{"file": "a", "id": "b", "depth": ' + b"9" * 400 + b', "prediction": ""}',
        "mistyped-field",
        f": depth is {'9' * 80}, expected a number",
    ),
    "a number for a file": ({**LINE, "file": 3}, "mistyped-field", ": file is 3, expected a path below mmlb_data/"),
    "a number": ({**LINE, "prediction": 3}, "not-a-text", ": int"),
    "several": ({**LINE, "prediction": ["Yes"]}, "not-a-text", ": list"),
    "nothing": ({**LINE, "prediction": None}, "not-a-text", ": NoneType"),
    **{
        f"sample {n!r:.9}": (
            {**LINE, "sample": n},
            "mistyped-field",
            f": sample is {n!r:.80}, expected a whole number from 0 to 999,999",
        )
        for n in NO_SAMPLES
    },
    **{
        f"digest {n!r:.9}": ({**LINE, "digest": n}, "mistyped-field", f": digest is {n!r:.80}, expected 64")
        for n in (5, True, "", "abc", "AB" * 32, "g" * 64, ["ab" * 32], "ab" * 33, "ab" * 31 + "é")
    },
    **{
        f"context {n!r:.9}": ({**LINE, "context": n}, "mistyped-field", ": context")
        for n in (5, ["none"], "a\nb", "x" * 81)
    },
    "another reason": (
        {**LINE, "skipped": "too hard", "prediction": None},
        "unknown-skip",
        ": 'too hard', expected one of",
    ),
    "reasons": ({**LINE, "skipped": ["context-length"], "prediction": None}, "unknown-skip", ": ['context-length']"),
    "a flag": ({**LINE, "skipped": True}, "skipped-and-predicted", ""),
    "both": ({**LINE, "skipped": "context-length"}, "skipped-and-predicted", ""),
}


def test_what_cannot_be_used_is_named_and_the_rest_is_read(public: Path, tmp_path: Path) -> None:
    cases = list(UNREAD.values())
    while cases:
        few: dict[str, list[tuple[object, str]]] = {}  # no more than are named of a reason
        for case in cases[:]:
            line, reason, what = case
            if len(few.setdefault(reason, [])) < 3:
                few[reason].append((line, what))
                cases.remove(case)
        lines = [line for each in few.values() for line, _ in each]
        found = run(public / VH, [{**LINE, "permutation": 1}, *lines], tmp_path)
        assert found.code == 1
        assert problems(found) == {**{reason: len(each) for reason, each in few.items()}, "absent": 5}
        told = [said for reason in few for said in first(found, reason)]
        whats = [what for each in few.values() for _, what in each]
        for number, (said, what) in enumerate(zip(told, whats, strict=True), 2):
            assert said.startswith(f"m.jsonl, line {number}{what}")
        assert [(each.status, each.score) for each in scored(tmp_path / "scores")][:3] == [
            ("absent", 0),
            ("scored", 1),
            ("absent", 0),
        ]


def test_a_problem_is_counted_and_its_first_three_places_are_named(public: Path, tmp_path: Path) -> None:
    found = run(public / VH, [{**LINE, "prediction": n} for n in range(5)], tmp_path)
    assert problems(found)["not-a-text"] == 5
    assert first(found, "not-a-text") == [f"m.jsonl, line {n}: int" for n in (1, 2, 3)]


def test_fields_that_scoring_does_not_need_may_be_anything(public: Path, tmp_path: Path) -> None:
    more = {"digest": None, "lock": 7, "usage": [1], "colour": "red"}
    assert problems(run(public / VH, [{**LINE, **more}], tmp_path)) == {"absent": 5}


def test_a_line_beyond_the_bound_is_passed_over_and_a_long_one_is_read(public: Path, tmp_path: Path) -> None:
    long = {**LINE, "file": VIQUAE, "id": "viquae-1", "depth": 0.2, "prediction": "word " * 1_000_000 + "Mott"}
    beyond = json.dumps({**LINE, "prediction": "x" * (64 << 20)}).encode()
    found = run(public, [LINE, beyond, {**long, "permutation": None}], tmp_path)
    assert first(found, "line-too-long") == ["m.jsonl, line 2"]
    made = {(each.dataset, each.score) for each in scored(tmp_path / "scores") if each.status == "scored"}
    assert made == {("vh_multi", 1.0), ("viquae", 1.0)}


def output(path: Path, rows: Sequence[object], file: str = DOCS, sample: int | None = None, dataset: str = "") -> Path:
    """An output of the public code."""
    args: Line = {"test_files": file, "max_test_samples": sample, **({"datasets": dataset} if dataset else {})}
    path.write_text(json.dumps({"args": args, "data": rows, "metrics": {"acc": [1]}}), "utf-8")
    return path


def scored_output(public: Path, path: Path, folder: Path, *options: str) -> Ran:
    return command("score", public, path, "--partial", "--json", "--out", folder / "scores", *options)


def test_outputs_of_the_public_code_are_read_without_the_prefix_it_put_there(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    question = [{"id": record["id"]} for record in records[DOCS]]
    rows = [
        {**question[0], "output": "Answer: 12", "question": "Is it?"},
        {**question[1], "output": "18.29%"},
        {**question[2], "output": None},
        {"output": "Answer: whose?"},
        "no row",
        {**question[3], "output": "Answer:\nred, light blue"},
    ]
    found = scored_output(public / DOCS, output(tmp_path / "out.json", rows), tmp_path)
    assert problems(found) == {"mistyped-field": 2, "not-a-text": 1, "absent": 2}
    assert [(each.status, each.score) for each in scored(tmp_path / "scores")] == [
        *(("scored", 1.0), ("scored", 1.0), ("absent", 0.0), ("scored", 1.0), ("absent", 0.0))
    ]
    of_class = {"domain": "food101", "example": {"id": "test-1", "answer": 3}, "output": "label:label: 0"}
    found = scored_output(public, output(tmp_path / "icl.json", [of_class], ICL), tmp_path)
    assert [each.score for each in scored(tmp_path / "scores/icl.default.jsonl")] == [1.0, 0.0]


@pytest.mark.parametrize("text", ["{", "[]", '{"data": []}', '{"data": [], "args": {}}', '{"data": {}, "args": {}}'])
def test_another_json_file_is_said_to_be_no_output(text: str, public: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    found = scored_output(public, tmp_path, tmp_path)
    assert first(found, "unreadable-file")[0].startswith("a.json: expected ")


def test_an_output_too_large_to_be_read_whole_is_named(public: Path, tmp_path: Path) -> None:
    with (tmp_path / "out.json").open("wb") as file:
        file.truncate(2 * 1024**3 + 1)
    (said,) = first(scored_output(public, tmp_path, tmp_path), "unreadable-file")
    assert said.startswith("out.json: ")
    assert "at most 2147483648 bytes" in said


def test_a_folder_is_read_file_after_file_without_judged_copies(public: Path, tmp_path: Path) -> None:
    folder = tmp_path / "said"
    folder.mkdir()
    empty = command("score", public, folder, "--out", tmp_path / "scores")
    assert empty.code == 2
    assert [word for word in ("no predictions there", "*.jsonl", "*.json") if word not in empty.err] == []
    output(folder / "b.json", [{"id": "mmlongdoc_0", "output": "12"}])
    output(folder / "b-gpt4eval_o.json", [{"id": "mmlongdoc_0", "output": "13"}])
    (folder / "b.json.score").write_text("{}")
    write(folder, [{"file": DOCS, "id": "mmlongdoc_1", "prediction": "18.29%"}], "a.jsonl")
    found = scored_output(public / DOCS, folder, tmp_path)
    assert problems(found) == {"absent": 3}
    assert [each.score for each in scored(tmp_path / "scores")] == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_an_output_of_the_public_code_is_scored_over_its_sample(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    rows = [{**row, "output": f"Answer: {row['answer']}"} for row in records[DOCS][:2]]
    counts = []
    for sample in (2, 3, 5, 100, None):
        found = scored_output(public, output(tmp_path / "out.json", rows, sample=sample), tmp_path)
        (cell,) = json.loads(found.out)["scores"]["doc_qa"]["mmlongdoc"].values()
        counts.append((cell["examples"], *(problems(found).get(reason, 0) for reason in ("lost-output", "absent"))))
    assert counts == [(2, 0, 0), (2, 1, 0), (5, 0, 3), (5, 0, 3), (5, 0, 3)]


def test_outputs_of_ablations_are_left_out_of_the_file_that_they_read(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    folder = tmp_path / "Qwen2.5-VL-7B"
    folder.mkdir()
    for dataset, said in (("occ_vrag", "?"), ("triviaqa", "?"), ("viquae", "Answer: Mott")):
        rows = [{**row, "output": said} for row in records[VIQUAE]]
        output(folder / f"{dataset}.json", rows, VIQUAE, None if dataset == "viquae" else 1, dataset)
    found = scored_output(public, folder, tmp_path)
    assert means(found) == {("sub_em", "viquae", "8192"): 1.0}
    ablations = [f"occ_vrag.json: occ_vrag on {VIQUAE}", f"triviaqa.json: triviaqa on {VIQUAE}"]
    assert (problems(found)["other-dataset"], first(found, "other-dataset")) == (2, ablations)
    assert {line.model for line in scored(tmp_path / "scores")} == {folder.name}
    for dataset in ("my_mmlongdoc", "mmlongdoc-again"):
        output(tmp_path / f"{dataset}.json", [{**records[DOCS][0], "output": "12"}], dataset=dataset)
    refused = command("score", public, tmp_path, "--out", tmp_path / "scores")
    assert refused.code == 2
    assert f"mmlongdoc-again.json: mmlongdoc-again on {DOCS} and my_mmlongdoc.json: my_mmlongdoc on" in refused.err


@pytest.mark.parametrize(
    ("dataset", "file"),
    [("gov-report", "summ/gov_K8.jsonl"), ("mm_niah_retrieval-image", "NIAH/retrieval-image_test_K8_dep6.jsonl")],
)
def test_outputs_may_call_a_dataset_as_the_public_code_does(
    dataset: str, file: str, public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    made = output(tmp_path / "m.json", [{**row, "output": "A"} for row in records[file]], file, dataset=dataset)
    assert problems(scored_output(public, made, tmp_path)) == {"no-predictions": 7}


def test_reasoning_in_outputs_of_the_public_code_is_stripped_behind_its_prefix(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    outputs = ["Answer:<think>18</think>12", "Answer: 12, or 1?</think>18.3", "Answer:\n<think>Tern Rock"]
    rows = [{**row, "output": said} for row, said in zip(records[DOCS], outputs, strict=False)]
    made = output(tmp_path / "m.json", rows)
    for options, scores in ((), [1, 1, 0]), (("--compat",), [1, 1, 0.5]):
        scored_output(public, made, tmp_path / f"{len(options)}", *options)
        assert [line.score for line in scored(tmp_path / f"{len(options)}/scores")][:3] == scores


def test_a_many_shot_file_of_others_asks_each_question_once(public: Path, golds: list[Line], tmp_path: Path) -> None:
    named = [line for line in golds if line["file"] == ICL]
    found = score(public / "ICL/food101_K8.json", named, tmp_path, "--json")
    assert (found.code, means(found)) == (0, {("cls_acc", "food101", "8192"): 1.0})
    assert len(scored(tmp_path / "scores")) == 2
    either = [{**line, "file": "mmlb_data/ICL/food101_K8.json"} for line in named]
    assert means(run(public, either, tmp_path)) == {("cls_acc", "food101", "8192"): 1.0}
    assert {line.file for line in scored(tmp_path / "scores")} == {ICL}


ROWS = [
    ("abc", "---", "012", 0, 0),
    ("abc", "----", "012", 0, 1),
    ("abc", "--", "...", 1, 0),
    ("abc", "bc", ".01", 0, 0),
    ("abc", "cba", "210", 0, 0),
    ("aab", "aab", "012", 0, 0),
    ("aab", "ab", "..1", 1, 0),
    ("aab", "abb", "..1", 1, 1),
    ("abc", "b-c", "102", 0, 0),
    ("abcd", "b-", ".0..", 1, 0),
    ("abc", "xyz", "012", 0, 0),
    ("a", "-", "0", 0, 0),
    ("a", "-a", "1", 0, 1),
]
"""Rows of one id and predictions for them: a letter says which row it is, `-` says nothing. Then what each row takes,
and how often predictions are ambiguous and duplicate."""


@pytest.mark.parametrize(("rows", "predictions", "taken", "ambiguous", "duplicate"), ROWS)
def test_a_row_that_shares_its_id_takes_what_is_for_it(
    rows: str,
    predictions: str,
    taken: str,
    ambiguous: int,
    duplicate: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said(metric: TotalCount, asked: ScoringInput) -> Score:
        return Score(1.0, {"said": asked.prediction.strip()})

    monkeypatch.setattr(TotalCount, "score", said)
    about = {"id": "q", "question": "How many?", "ctxs": [], "image_list": []}
    file = tmp_path / "mmlb_data" / COUNTS
    file.parent.mkdir(parents=True)
    write(file.parent, [{**about, "answer": [ord(letter)]} for letter in rows], file.name)
    told = [{"answer": [ord(letter)]} if letter != "-" else {} for letter in predictions]
    made = output(tmp_path / "m.json", [{"id": "q", "output": f"{n}", **each} for n, each in enumerate(told)], COUNTS)
    found = problems(scored_output(file, made, tmp_path))
    written = "".join(each.details.get("said", ".") for each in scored(tmp_path / "scores"))
    assert written == ("" if taken == "..." else taken)  # no scores are written if no prediction fits
    assert [found.get(reason, 0) for reason in ("ambiguous", "duplicate")] == [ambiguous, duplicate]


TOLD: dict[str, tuple[str, Line, Mapping[str, Any]]] = {
    "a picture of the question": (
        VIQUAE,
        {"answer": ["Mott"], "image": "viquae/a.jpg", "ctxs": [{"text": "x"}]},
        {"image_list": ["/r/viquae/a.jpg"]},
    ),
    "pictures of the context": (
        VH,
        {"answer": "Yes", "ctxs": ["vh/a.jpg", "vh/b.jpg"]},
        {"image_list": ["/r/vh/a.jpg", "/r/vh/b.jpg"]},
    ),
    "pictures to choose from": (
        "NIAH/retrieval-image_test_K8_dep6.jsonl",
        {"answer": 1, "ctxs": [{"text": "x"}], "image_list": ["o/a.png"], "choices_image": ["n/c.png", "n/d.png"]},
        {"image_list": ["/r/o/a.png", "/r/n/c.png", "/r/n/d.png"]},
    ),
    "pictures to find": (
        "NIAH/counting-image_test_K8_dep3.jsonl",
        {"answer": [1, 2], "image_list": ["o/a.png", "o/b.png"], "needle_image_list": ["n/c.png"]},
        {"image_list": ["/r/o/a.png", "/r/o/b.png", "/r/n/c.png"]},
    ),
}


@pytest.mark.parametrize("other", ["answer", "images"])
@pytest.mark.parametrize("case", TOLD)
def test_an_output_is_for_the_row_with_its_answer_and_its_images(case: str, other: str, tmp_path: Path) -> None:
    name, record, shown = TOLD[case]
    key = next(key for key in ("image_list", "image", "ctxs") if key in record)
    different: Line = {"answer": "another"} if other == "answer" else {key: "z.jpg" if key == "image" else ["z.jpg"]}
    about = {"id": "q", "question": "Which?"}
    file = tmp_path / "mmlb_data" / name
    file.parent.mkdir(parents=True)
    write(file.parent, [{**about, **record, **different}, {**about, **record}], file.name)
    row = {**about, **{key: value for key, value in record.items() if key != "ctxs"}, **shown, "output": "x"}
    scored_output(file, output(tmp_path / "m.json", [row], name), tmp_path)
    assert [each.status for each in scored(tmp_path / "scores")] == ["absent", "scored"]


def test_rows_that_only_their_order_tells_apart_take_predictions_in_order(public: Path, tmp_path: Path) -> None:
    lines = [{"file": COUNTS, "id": "mm-niah-1", "prediction": said} for said in ("3", "no idea", "[5]", "[6]")]
    found = run(public, lines, tmp_path)
    made = scored(tmp_path / "scores")
    assert [(line.permutation, line.score) for line in made] == [(0, 1.0), (1, 0.0), (2, 1.0)]
    assert problems(found)["duplicate"] == 1
    few = run(public, lines[1:3], tmp_path)
    assert scored(tmp_path / "scores") == made  # no prediction fits, so nothing is written
    (tmp_path / "new").mkdir()
    run(public, lines[1:3], tmp_path / "new")
    assert not (tmp_path / "new/scores").exists()
    assert first(few, "ambiguous") == [f"{COUNTS}: mm-niah-1: 2 predictions for 3 rows"]
    assert (problems(few)["absent"], len(problems(few))) == (3, 3)
