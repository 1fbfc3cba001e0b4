"""`mmlongbench score`: predictions against public files and a release, from the command line to the scores file."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar

import pytest
from tiny import Ran, command, records

from builders.docvqa import DocVQA
from mmlongbench.cli import score as commands
from mmlongbench.cli.score import PROFILES as command_profiles
from mmlongbench.errors import ScoringError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.registry import builder_type
from mmlongbench.scoring import running
from mmlongbench.scoring.joining import open_scorable
from mmlongbench.scoring.predictions import read_predictions
from mmlongbench.scoring.problems import Problems
from mmlongbench.scoring.report import report
from mmlongbench.scoring.running import Run, score
from mmlongbench.scoring.scores import ScoreLine, read_scores
from mmlongbench.scoring.staleness import ExampleDigests
from mmlongbench.task.metric import PROFILES, Metric, Score, ScoringInput, Settings

pytestmark = pytest.mark.slow

Line = dict[str, Any]
VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
COUNTS = "NIAH/counting-text_test_K8_dep3.jsonl"
ICL = "ICL/food101_K8.frozen.jsonl"
DOCS = "documentQA/mmlongdoc_K8.jsonl"


def write(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def run(public: Path, lines: list[Line], folder: Path, *options: str) -> Ran:
    return command("score", public, write(folder / "m.jsonl", lines), "--out", folder / "scores", *options)


def means(found: Ran) -> dict[tuple[str, str, str], float]:
    """(metric, dataset, length) → score, of what --json printed."""
    scores: Mapping[str, Any] = json.loads(found.out)["scores"]
    return {
        (metric, dataset, length): cell["score"]
        for metric, datasets in scores.items()
        for dataset, lengths in datasets.items()
        for length, cell in lengths.items()
    }


def test_gold_answers_score_full_on_every_task(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, golds, tmp_path, "--json")
    assert (found.code, found.err) == (0, "")
    assert set(means(found).values()) == {1.0}
    assert len({dataset for _, dataset, _ in means(found)}) == 7
    lines = list(read_scores(tmp_path / "scores"))
    assert {line.dataset: line.averaged_metric for line in lines if line.averaged_metric} == {"gov": "judge-fluency-f1"}
    assert len(lines) == len(golds)
    assert {line.status for line in lines} == {"scored"}
    assert {(line.dataset, line.metric, line.category, line.counted_with) for line in lines} == {
        ("viquae", "sub_em", "VRAG", ""),
        ("vh_multi", "binary_acc", "NIAH", ""),
        ("counting-text", "soft_acc", "NIAH", "MM-NIAH counting"),
        ("retrieval-image", "mc_acc", "NIAH", "MM-NIAH retrieval"),
        ("food101", "cls_acc", "ICL", ""),
        ("gov", "rouge", "Summ", ""),
        ("mmlongdoc", "doc_qa", "DocVQA", ""),
    }


@pytest.mark.parametrize("said", ["", "Not answerable"])
def test_refusals_do_not_score_full(said: str, public: Path, golds: list[Line], tmp_path: Path) -> None:
    lines = [{**line, "prediction": said} for line in golds]
    found = run(public, lines, tmp_path, "--profile", "ours", "--json")
    assert found.code == 0
    assert {key: mean for key, mean in means(found).items() if mean > 0.2} == {}
    official = means(run(public, lines, tmp_path, "--json"))
    in_turn = [a == b for a, b in zip((0, 1, 1, 0, 0, 1), (1, 1, 1, 0, 0, 0), strict=True)]  # as the public code does
    assert official == {**means(found), ("binary_acc", "vh_multi", "8192"): sum(in_turn) / 6}


def test_scores_have_placements_facets_and_details(public: Path, golds: list[Line], tmp_path: Path) -> None:
    run(public, golds, tmp_path, "--model", "A/B: C")
    lines = list(read_scores(tmp_path / "scores/A_B: C.default.jsonl"))
    assert {line.model for line in lines} == {"A/B: C"}
    assert [line.permutation for line in lines if line.file == VH] == [0, 1, 2, 0, 1, 2]
    assert [line.depth for line in lines if line.dataset == "retrieval-image"] == [0.0, 0.2, 0.4]
    facets = {line.id: dict(line.facets) for line in lines if line.file == DOCS}
    assert facets["mmlongdoc_0"] == {
        "answer format": ["Integer"],
        "evidence source": ["Chart"],
        "evidence": ["vision needed"],
        "evidence pages": ["single-page"],
        "pages shown": ["1-4"],
    }
    assert facets["mmlongdoc_1"]["evidence"] == ["text only"]
    assert [facets[f"mmlongdoc_{n}"]["evidence pages"] for n in (2, 4)] == [["cross-page"], ["unanswerable"]]
    assert next(line.details for line in lines if line.dataset == "vh_multi") == {"refused": False}


def test_lines_say_what_their_question_is_about_as_far_as_the_record_tells(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    run(public, golds, tmp_path)
    found = {(line.dataset, line.cluster) for line in read_scores(tmp_path / "scores")}
    assert found == {
        ("viquae", ""),
        ("vh_multi", ""),
        ("counting-text", ""),
        ("retrieval-image", ""),
        ("food101", "food101: red ring"),
        ("food101", "food101: blue ring"),
        ("gov", "gao-1"),
        ("mmlongdoc", "harbour"),
    }


@pytest.mark.parametrize(
    ("builder", "record", "cluster"),
    [
        ("vrag", {"entity_id": "Q7", "positive_ctxs": [{"title": "Peru"}]}, "Q7"),
        ("vrag", {"entity_id": "", "positive_ctxs": [{"title": "Peru"}, {"title": "Lima"}]}, "Peru"),
        ("visual_haystack", {"needles": ["vh/b.jpg", "vh/a.jpg"]}, "vh/a.jpg"),
        ("mm_niah", {"positive_ctxs": [{"image": "n/b.png"}, {"image": "n/a.png"}]}, "n/a.png"),
        ("visual_haystack", {"needles": ["vh/a.jpg", "vh/c.jpg"]}, "vh/a.jpg"),
        ("mm_niah", {"positive_ctxs": [{"text": "a sentence"}]}, ""),
        ("docvqa", {"doc_name": "harbour"}, "harbour"),
        ("many_shot", {"name": "red ring", "domain": "Birds"}, "Birds: red ring"),
        ("many_shot", {}, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cluster_is_the_document_entity_picture_or_class(builder: str, record: Line, cluster: str) -> None:
    kind = builder_type(builder)
    made = kind("x", kind.options_type())
    assert made.cluster(record) == cluster


@pytest.mark.parametrize(("option", "warns"), [("--ignore-reading-order", False), ("--walk", True)])
def test_an_option_works_under_its_old_name_too(
    option: str, warns: bool, public: Path, golds: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Settings]()
    make = commands._settings  # the settings that the command makes from its options

    def kept(*args: Any) -> Settings:
        made.append(make(*args))
        return made[0]

    monkeypatch.setattr(commands, "_settings", kept)
    found = run(public, golds, tmp_path, option)
    assert (found.code, made[0].ignores_reading_order) == (0, True)
    assert ("Use --ignore-reading-order." in found.err) == warns


def test_every_kind_of_bad_prediction_is_named_and_counted(public: Path, golds: list[Line], tmp_path: Path) -> None:
    vh = [line for line in golds if line["file"] == VH]
    bad = [
        *(line for line in golds if line["file"] not in (VH, ICL)),
        {**vh[0], "prediction": 1},
        vh[1],
        {**vh[1], "prediction": "No"},
        {key: value for key, value in vh[2].items() if key != "permutation"},
        {**vh[3], "permutation": 7},
        {**vh[4], "depth": 0.2},
        {**vh[5], "id": "vh_multi-99"},
        {**vh[5], "file": "NIAH/vh_multi_test_2_K64_dep3.jsonl"},
    ]
    found = run(public, bad, tmp_path, "--json")
    assert found.code == 1
    problems = json.loads(found.out)["problems"]
    assert {reason: each["count"] for reason, each in problems.items()} == {
        "not-a-text": 1,
        "duplicate": 1,
        "wrong-placement": 3,
        "unknown-id": 1,
        "unknown-file": 1,
        "absent": 5 + 2,
    }
    start = len(golds) - len(vh) - 2
    assert problems["duplicate"]["first"] == [f"m.jsonl, line {start + 3}: {VH}: vh_multi-0, permutation 1"]
    assert problems["wrong-placement"]["first"][0] == f"m.jsonl, line {start + 4}: {VH}: vh_multi-0"
    assert problems["absent"]["first"][0] == f"{ICL}: test-1"
    lines = [line for line in read_scores(tmp_path / "scores") if line.file == VH]
    assert [(line.status, line.score) for line in lines] == [("absent", 0.0), ("scored", 1.0), *[("absent", 0.0)] * 4]


def test_what_is_wrong_is_said_in_words(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, [golds[0], golds[0], *golds[2:]], tmp_path)
    assert found.code == 1
    assert "duplicate: 1 predictions for an example that has one; the first counts: m.jsonl, line 2: vrag/" in found.err
    assert (
        "absent: 1 examples without a prediction; they score 0: vrag/viquae_K8_dep6.jsonl: viquae-1, depth 0.2\n"
        in (found.err)
    )
    assert "vh_multi         binary_acc  100.0 (6)" in found.out
    assert run(public, golds[1:], tmp_path, "-q").out == ""


def test_files_without_any_prediction_score_0_or_are_left_out(public: Path, golds: list[Line], tmp_path: Path) -> None:
    vh = [line for line in golds if line["file"] == VH]
    whole = run(public, vh, tmp_path, "--json")
    assert Counter(means(whole).values()) == {1.0: 1, 0.0: 7}
    partial = run(public, vh, tmp_path, "--json", "--partial")
    assert means(partial) == {("binary_acc", "vh_multi", "8192"): 1.0}
    assert json.loads(partial.out)["problems"]["no-predictions"]["count"] == 7
    assert partial.code == 1


def test_rows_that_only_their_order_tells_apart_take_predictions_in_order(public: Path, tmp_path: Path) -> None:
    lines = [{"file": COUNTS, "id": "mm-niah-1", "prediction": said} for said in ("3", "no idea", "[5]", "[6]")]
    found = run(public, lines, tmp_path, "--partial", "--json")
    scored = read_scores(tmp_path / "scores")
    assert [(line.permutation, line.score) for line in scored] == [(0, 1.0), (1, 0.0), (2, 1.0)]
    assert json.loads(found.out)["problems"]["duplicate"]["count"] == 1


def test_many_shot_predictions_may_name_either_file(public: Path, golds: list[Line], tmp_path: Path) -> None:
    named = [{**line, "file": "mmlb_data/ICL/food101_K8.json"} for line in golds if line["file"] == ICL]
    found = run(public, named, tmp_path, "--partial", "--json")
    assert means(found) == {("cls_acc", "food101", "8192"): 1.0}
    assert {line.file for line in read_scores(tmp_path / "scores")} == {ICL}


def test_a_many_shot_file_of_others_asks_each_question_once(public: Path, golds: list[Line], tmp_path: Path) -> None:
    named = [line for line in golds if line["file"] == ICL]
    found = run(public / "ICL/food101_K8.json", named, tmp_path, "--json")
    assert (found.code, means(found)) == (0, {("cls_acc", "food101", "8192"): 1.0})
    assert len(list(read_scores(tmp_path / "scores"))) == 2


def output(path: Path, file: str, rows: list[Line], sample: int | None, dataset: str | None = None) -> Path:
    args = {"test_files": file, "max_test_samples": sample, "datasets": dataset}
    path.write_text(json.dumps({"args": args, "data": rows}), "utf-8")
    return path


def test_an_output_of_the_public_code_is_scored_over_its_sample(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    rows = [{**row, "output": f"Answer: {row['answer']}"} for row in records[DOCS][:2]]
    counts = []
    for sample in (2, 3, 5, 100, None):
        made = output(tmp_path / "out.json", DOCS, rows, sample)
        found = command("score", public, made, "--partial", "--json", "--out", tmp_path / "scores")
        cells, problems = json.loads(found.out)["scores"]["doc_qa"]["mmlongdoc"], json.loads(found.out)["problems"]
        of_each = (problems.get(reason, {"count": 0})["count"] for reason in ("lost-output", "absent"))
        counts.append((cells["8192"]["examples"], *of_each))
    assert counts == [(2, 0, 0), (2, 1, 0), (5, 0, 3), (5, 0, 3), (5, 0, 3)]


def test_rows_that_share_a_key_take_outputs_by_what_these_say_of_them(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    rows = [{**row, "output": f"Answer: {sum(row['answer'])}"} for row in records[COUNTS]]
    made = output(tmp_path / "m.json", COUNTS, rows[1:], None)  # the model returned nothing for the first row
    found = command("score", public, made, "--partial", "--json", "--out", tmp_path / "scores")
    assert [line.score for line in read_scores(tmp_path / "scores")] == [0.0, 1.0, 1.0]
    assert json.loads(found.out)["problems"]["absent"]["count"] == 1
    assert "ambiguous" not in found.out


def test_fewer_predictions_than_rows_that_nothing_tells_apart_count_for_none(public: Path, tmp_path: Path) -> None:
    lines = [{"file": COUNTS, "id": "mm-niah-1", "prediction": said} for said in ("[4]", "[5]")]
    found = run(public, lines, tmp_path, "--partial", "--json")
    problems = json.loads(found.out)["problems"]
    assert [line.status for line in read_scores(tmp_path / "scores")] == ["absent"] * 3
    assert problems["ambiguous"]["first"] == [f"{COUNTS}: mm-niah-1: 2 predictions for 3 rows"]
    assert (problems["absent"]["count"], len(problems)) == (3, 3)


def test_outputs_of_ablations_are_left_out_of_the_file_that_they_read(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    folder, file = tmp_path / "Qwen2.5-VL-7B", "vrag/viquae_K8_dep6.jsonl"
    folder.mkdir()
    for dataset, said in (("occ_vrag", "?"), ("triviaqa", "?"), ("viquae", "Answer: Mott")):
        rows = [{**row, "output": said} for row in records[file]]
        output(folder / f"{dataset}.json", file, rows, None if dataset == "viquae" else 1, dataset)
    found = command("score", public, folder, "--partial", "--json", "--out", tmp_path / "scores")
    problems = json.loads(found.out)["problems"]
    assert means(found) == {("sub_em", "viquae", "8192"): 1.0}
    assert problems["other-dataset"] == {
        "count": 2,
        "first": [f"occ_vrag.json: occ_vrag on {file}", f"triviaqa.json: triviaqa on {file}"],
    }
    assert {line.model for line in read_scores(tmp_path / "scores")} == {folder.name}


@pytest.mark.parametrize(
    ("dataset", "file"),
    [("gov-report", "summ/gov_K8.jsonl"), ("mm_niah_retrieval-image", "NIAH/retrieval-image_test_K8_dep6.jsonl")],
)
def test_outputs_may_call_a_dataset_as_the_public_code_does(
    dataset: str, file: str, public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    made = output(tmp_path / "m.json", file, [{**row, "output": "A"} for row in records[file]], None, dataset)
    assert command("score", public, made, "--partial", "-q", "--out", tmp_path / "s").err.startswith("no-predictions")


def test_two_outputs_that_both_may_be_a_file_s_own_are_an_error(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    for dataset in ("my_mmlongdoc", "mmlongdoc-again"):
        output(tmp_path / f"{dataset}.json", DOCS, [{**records[DOCS][0], "output": "12"}], None, dataset)
    found = command("score", public, tmp_path, "--out", tmp_path / "scores")
    assert found.code == 2
    assert f"mmlongdoc-again.json: mmlongdoc-again on {DOCS} and my_mmlongdoc.json: my_mmlongdoc on" in found.err


def test_scores_of_another_model_are_not_replaced(public: Path, golds: list[Line], tmp_path: Path) -> None:
    run(public, golds, tmp_path, "--model", "A/B", "-q")
    before = (tmp_path / "scores/A_B.default.jsonl").read_bytes()
    found = run(public, golds[:1], tmp_path, "--model", "A_B", "--partial")
    assert found.code == 2
    assert "A_B.default.jsonl: holds scores of 'A/B', not of 'A_B'; give --model another name" in found.err
    assert (tmp_path / "scores/A_B.default.jsonl").read_bytes() == before
    assert run(public, golds, tmp_path, "--model", "A/B", "-q").code == 0


def test_scores_with_other_choices_are_not_replaced_and_a_report_shows_both(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    lines = [{**line, "prediction": f"<think>{line['prediction']}</think>no"} for line in golds]
    for options in ([], ["--reasoning", "keep"], ["--profile", "official"], ["--compat"]):
        assert run(public, lines, tmp_path, "-q", *options).code == 0
    folder = tmp_path / "scores"
    assert sorted(path.name for path in folder.iterdir()) == [
        "m.default.jsonl",
        "m.default.kept.jsonl",
        "m.default.official.jsonl",
        "m.default.official.kept.jsonl",
    ]
    for name in ("m.default.official.jsonl", "m.default.official.kept.jsonl"):
        (folder / name).unlink()
    found = report(folder)
    shown = {(row.profile, row.name, row.metric): row for row in found.scores.rows}
    stripped, kept = (
        found.scores.cells["m", shown[profile, "viquae", "sub_em"], "8K"].mean
        for profile in ("official", "official, reasoning kept")
    )
    assert (stripped, kept) == (0.0, 1.0)
    averages = {row.profile for row in found.averages.rows}
    assert averages == {"official", "official, reasoning kept"}
    before = (folder / "m.default.jsonl").read_bytes()
    (folder / "m.default.kept.jsonl").write_bytes(before)
    refused = run(public, lines, tmp_path, "-q", "--reasoning", "keep")
    assert refused.code == 2
    assert "m.default.kept.jsonl: holds scores by cls_acc (official), not (official, reasoning kept); " in refused.err
    assert "give another --out, or delete the file" in refused.err
    assert (folder / "m.default.kept.jsonl").read_bytes() == before


@pytest.mark.parametrize("metrics", ["", " , "])
def test_metrics_that_name_none_are_an_error(metrics: str, public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, golds, tmp_path, "--metrics", metrics)
    assert found.code == 2
    assert "names no metric" in found.err
    assert not (tmp_path / "scores").exists()


def test_refusals_follow_the_order_of_what_was_answered(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    rows = [{**row, "output": "Answer: I cannot tell"} for row in records[VH]]
    made = output(tmp_path / "out.json", VH, rows, None)
    command("score", public, made, "--partial", "--out", tmp_path / "scores")
    defaults, golds = (0, 1, 1, 0, 0, 1), (1, 1, 1, 0, 0, 0)
    assert [line.score for line in read_scores(tmp_path / "scores")] == [
        a == b for a, b in zip(defaults, golds, strict=True)
    ]


def test_several_metrics_make_one_file_and_f1_is_no_mean(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, golds, tmp_path, "--metrics", "mmlongbench-doc,anls,default", "--json")
    cells = json.loads(found.out)["scores"]
    assert cells["mmlongbench-doc"]["mmlongdoc"]["8192"] == {
        "score": 1.0,
        "examples": 5,
        "absent": 0,
        "failed": 0,
        "skipped": 0,
        "accuracy": 1.0,
        "f1": 1.0,
    }
    assert set(cells["anls"]) == {"mmlongdoc"}
    assert (tmp_path / "scores/m.mmlongbench-doc+anls+default.jsonl").is_file()
    assert "f1" in run(public, golds, tmp_path, "--metrics", "mmlongbench-doc").out


def test_a_metric_that_no_dataset_declares_is_an_error_that_names_those(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    found = run(public, golds, tmp_path, "--metrics", "anl")
    assert found.code == 2
    assert found.err.startswith(
        "error: --metrics anl: no dataset here declares it; did you mean 'anls'?; declared are "
    )
    assert "doc_qa: mmlongdoc; " in found.err
    assert not (tmp_path / "scores").exists()


def test_every_line_has_its_profile_and_the_command_says_which(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, golds, tmp_path, "--metrics", "default,mmlongbench-doc,anls")
    kept = {(each.metric, each.profile, each.follows, *each.choices) for each in read_scores(tmp_path / "scores")}
    public_code, protocol = "EdinburghNLP/MMLongBench@22b9f27", "mayubo2333/MMLongBench-Doc@d73f0dc"
    assert ("doc_qa", "official", public_code, "docqa_llm_judge off") in kept
    assert ("binary_acc", "official", public_code) in kept
    assert ("mmlongbench-doc", "ours", protocol, "rule-extracted") in kept
    assert ("anls", "paper", "arXiv:1905.13648") in kept
    assert len(kept) == 9
    titles = [text.rstrip() for text in found.out.splitlines() if text.startswith("scores of 100")]
    assert titles == [f"scores of 100 (examples), {profile}" for profile in ("official", "paper", "ours")]
    assert f"mmlongbench-doc: follows {protocol}; rule-extracted\n" in found.out
    assert f"binary_acc, cls_acc, mc_acc, rouge, soft_acc, sub_em: follows {public_code}\n" in found.out
    assert f"doc_qa: follows {public_code}; docqa_llm_judge off\n" in found.out


def test_a_profile_is_asked_of_all_metrics_and_has_a_file_of_its_own(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    for options in ([], ["--profile", "ours"], ["--compat"]):
        assert run(public, golds, tmp_path, *options, "-q").code == 0
    files = {path.name: {line.profile for line in read_scores(path)} for path in (tmp_path / "scores").iterdir()}
    assert files == {
        "m.default.jsonl": {"official"},
        "m.default.ours.jsonl": {"ours"},
        "m.default.official.kept.jsonl": {"official"},
    }
    found = run(public, golds, tmp_path, "--metrics", "default,anls", "--profile", "official")
    assert found.code == 2
    assert "--profile official: the metric 'anls' does not offer it; it offers paper" in found.err
    assert len(list((tmp_path / "scores").iterdir())) == 3
    found = run(public, golds, tmp_path, "--compat", "--profile", "ours")
    assert (found.code, "--compat scores as the public code does; it excludes --profile ours" in found.err) == (2, True)


def test_a_metric_that_says_no_profile_is_ours(
    public: Path, golds: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, problems = InThreads(Settings()), Problems()
    metric.barrier = Barrier(1)
    monkeypatch.setattr(running, "metric_type", lambda name: lambda settings: metric)
    digests = ExampleDigests(open_scorable(public / "documentQA/mmlongdoc_K16.jsonl", None, None))
    with read_predictions([write(tmp_path / "m.jsonl", golds)], problems) as read:
        score(
            Run("m", ("default",), Settings()), digests, read, tmp_path / "s.jsonl", problems, Progress(is_shown=False)
        )
        assert {line.profile for line in read_scores(tmp_path / "s.jsonl")} == {"ours"}
        asked = Run("m", ("default",), Settings(profile="official"))
        with pytest.raises(ScoringError, match="'doc_qa' does not offer it; it offers ours"):
            score(asked, digests, read, tmp_path / "t.jsonl", problems, Progress(is_shown=False))
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize(
    "thought", ["<think>It is {gold}, or not.</think>", "It is {gold}, or not.</think>", "<think>{gold}"]
)
def test_a_thought_that_names_the_gold_scores_nothing_under_any_profile(
    thought: str, public: Path, golds: list[Line], tmp_path: Path
) -> None:
    said = [thought.format(gold=line["prediction"]) for line in golds]
    lines = [{**line, "prediction": f"{text} I am not sure"} for line, text in zip(golds, said, strict=True)]
    for profile in ("official", "ours"):
        found = run(public, lines, tmp_path, "--profile", profile, "--json")
        assert found.code == 0
        guessed = (
            4 / 6 if profile == "official" else 0
        )  # the public code answers a refused yes/no question by its place
        assert means(found)["binary_acc", "vh_multi", "8192"] == pytest.approx(guessed)
        assert [metric for (metric, _, _), mean in means(found).items() if mean > 0.2 and metric != "binary_acc"] == []
    kept = run(public, lines, tmp_path, "--profile", "ours", "--reasoning", "keep", "--json")
    assert {metric for (metric, _, _), mean in means(kept).items() if mean == 1} >= {"sub_em", "binary_acc", "soft_acc"}


def test_what_became_of_reasoning_is_counted_and_stands_in_the_line(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    docs = [line for line in golds if line["file"] == DOCS]
    said = ["<think>x</think>12", "18.29%", "<think>Tern Rock", "x</think>red", "Not answerable"]
    lines = [{**line, "prediction": text} for line, text in zip(docs, said, strict=True)]
    found = run(public, lines, tmp_path, "--partial", "--metrics", "default,anls", "--json")
    assert json.loads(found.out)["reasoning"] == {"stripped": 2, "unclosed": 1}
    scored = [line for line in read_scores(tmp_path / "scores") if line.metric == "doc_qa"]
    assert [line.reasoning for line in scored] == ["stripped", "", "unclosed", "stripped", ""]
    assert [(line.status, line.score) for line in scored][:3] == [("scored", 1), ("scored", 1), ("scored", 0)]
    assert "reasoning: 2 predictions have reasoning, which is left out of what is scored\n" in (
        run(public, lines, tmp_path, "--partial").out
    )
    assert json.loads(command("report", tmp_path / "scores/m.default+anls.jsonl", "--json").out)["reasoning"] == {
        "m": {"stripped": 2, "unclosed": 1}
    }
    one = run(public, lines[:1], tmp_path, "--partial").out
    assert "reasoning: 1 prediction has reasoning, which is left out of what is scored\n" in one
    lines[4] = {**lines[4], "prediction": "<think></think>Not answerable"}
    run(public, lines, tmp_path, "--partial", "--compat", "--metrics", "default", "-q")
    kept = list(read_scores(tmp_path / "scores/m.default.official.kept.jsonl"))
    assert [line.reasoning for line in kept] == ["kept", "", "kept", "kept", ""]
    assert kept[4].score == 0.5  # markers are kept too: "thinkthinknot answerable"
    assert {tuple(line.choices) for line in kept} == {("docqa_llm_judge off", "reasoning kept")}
    found = run(public, lines, tmp_path, "--compat", "--reasoning", "strip")
    assert (found.code, "it excludes --reasoning strip" in found.err) == (2, True)


def test_reasoning_in_outputs_of_the_public_code_is_stripped_behind_its_prefix(
    public: Path, records: dict[str, list[Line]], tmp_path: Path
) -> None:
    outputs = ["Answer:<think>18</think>12", "Answer: 12, or 1?</think>18.3", "Answer:\n<think>Tern Rock"]
    rows = [{**row, "output": said} for row, said in zip(records[DOCS], outputs, strict=False)]
    made = output(tmp_path / "m.json", DOCS, rows, None)
    found = []
    for options in ([], ["--compat"]):
        command("score", public, made, "--partial", *options, "-q", "--out", tmp_path / f"{len(options)}")
        found.append([line.score for line in read_scores(tmp_path / f"{len(options)}")][:3])
    assert found == [[1, 1, 0], [1, 1, 0.5]]


def test_the_command_knows_every_profile() -> None:
    assert command_profiles == PROFILES


def test_a_dry_run_writes_nothing(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, golds, tmp_path, "--dry-run")
    assert (found.code, found.out) == (0, "nothing is written\n")
    assert not (tmp_path / "scores").exists()


def test_a_judge_needs_an_address_and_a_name(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = run(public, golds, tmp_path, "--judge-model", "m")
    assert found.code == 2
    assert "--judge-url and --judge-model go together" in found.err


def test_a_release_is_scored_by_its_lock(finished: Path, tmp_path: Path) -> None:
    lines = [
        {"file": f"documentQA/mmlongdoc_K{k}.jsonl", "id": record["id"], "prediction": record["answer"]}
        for k in (1, 2)
        for record in records(finished, f"{k}K")
    ]
    found = run(finished, lines, tmp_path, "--json")
    assert (found.code, set(means(found).values())) == (0, {1.0})
    assert {line.length for line in read_scores(tmp_path / "scores")} == {1024, 2048}


class InThreads(Metric):
    """A metric that scores only if three threads score at the same time."""

    name: ClassVar[str] = "doc_qa"
    concurrency = 3

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.barrier = Barrier(3, timeout=60)
        self.closed = 0

    def score(self, asked: ScoringInput) -> Score:
        if asked.id == "mmlongdoc_4":
            return Score(None, {}, "it was asked too much")
        if asked.id != "mmlongdoc_3":
            self.barrier.wait()
        return Score(0.5, {"said": asked.prediction})

    def usage(self) -> Mapping[str, float]:
        return {"calls": 3}

    def close(self) -> None:
        self.closed += 1


def test_a_metric_may_score_in_threads_and_fail_and_lines_keep_their_order(
    public: Path, golds: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, problems, out = InThreads(Settings()), Problems(), tmp_path / "s.jsonl"
    monkeypatch.setattr(running, "metric_type", lambda name: lambda settings: metric)
    said = write(tmp_path / "m.jsonl", [line for line in golds if line["file"] == DOCS])
    with read_predictions([said], problems) as read:
        digests = ExampleDigests(open_scorable(public / "documentQA/mmlongdoc_K8.jsonl", None, None))
        outcome = score(Run("m", ("default",), Settings()), digests, read, out, problems, Progress(is_shown=False))
    lines = list(read_scores(out))
    assert [line.id for line in lines] == [f"mmlongdoc_{n}" for n in range(5)]
    assert (lines[4].status, lines[4].score, lines[4].failure) == ("failed", None, "it was asked too much")
    (tally,) = outcome.tallies.cells.values()
    assert (tally.mean, tally.failed, outcome.usage) == (0.5, 1, {"doc_qa": {"calls": 3}})
    assert metric.closed == 1
    assert not problems


def test_the_builder_is_asked_once_for_each_example_whichever_metrics_score_it(
    public: Path, golds: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Counter[str]()
    for method in ("gold", "question", "answer_format", "evidence", "source_id", "cluster", "facets"):
        told: Callable[..., object] = getattr(DocVQA, method)

        def counted(builder: DocVQA, record: Line, method: str = method, told: Callable[..., object] = told) -> object:
            asked[method] += 1
            return told(builder, record)

        monkeypatch.setattr(DocVQA, method, counted)
    examples = [line for line in golds if line["file"] == DOCS]
    written = write(tmp_path / "m.jsonl", examples)
    run_on = (public / DOCS, written, "--out", tmp_path / "scores")
    assert command("score", *run_on, "--metrics", "doc_qa,mmlongbench-doc,anls").code == 0
    assert len(list(read_scores(tmp_path / "scores"))) == 3 * len(examples)
    assert set(asked.values()) == {len(examples)}
    assert len(asked) == 7


def test_scores_lines_hold_what_a_report_needs(public: Path, golds: list[Line], tmp_path: Path) -> None:
    run(public, [{**line, "prediction": "\ud800"} for line in golds], tmp_path)
    lines = (tmp_path / "scores/m.default.jsonl").read_text("utf-8").splitlines()
    assert {ScoreLine.model_validate(json.loads(line)).id for line in lines} == {line["id"] for line in golds}
