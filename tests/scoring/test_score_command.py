"""`mmlongbench score`: predictions against public files and a release, from the command line to the scores file."""

import json
from collections import Counter
from pathlib import Path

import pytest
from score_lines import DEFAULTS, Line, cells, first, means, problems, score, scored, told, write
from tiny import Ran, command

import mmlongbench as mm
from mmlongbench.metrics.smudge import SMuDGE
from mmlongbench.task.metrics import Settings

VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
ICL = "ICL/food101_K8.frozen.jsonl"
DOCS = "documentQA/mmlongdoc_K8.jsonl"
CODE, PROTOCOL = "EdinburghNLP/MMLongBench@22b9f27", "mayubo2333/MMLongBench-Doc@d73f0dc"
GUESSES, VH_GOLDS = (0, 1, 1, 0, 0, 1), (1, 1, 1, 0, 0, 0)
IN_TURN = [guess == gold for guess, gold in zip(GUESSES, VH_GOLDS, strict=True)]
"""The scores of refused yes/no questions: the public code answers them by their place."""


def of_file(golds: list[Line], file: str) -> list[Line]:
    return [each for each in golds if each["file"] == file]


def refusal(ran: Ran) -> str:
    assert (ran.code, ran.out) == (2, "")
    return " ".join(ran.err.split())


def test_gold_answers_score_full_on_every_task(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = score(public, golds, tmp_path, "--json")
    assert (found.code, found.err) == (0, "")
    assert set(means(found).values()) == {1.0}
    lines = scored(tmp_path / "scores")
    assert (len(lines), {each.status for each in lines}) == (len(golds), {"scored"})
    assert {each.dataset: each.averaged_metric for each in lines if each.averaged_metric} == {"gov": "judge-fluency-f1"}
    assert {(each.dataset, each.metric, each.category, each.counted_with) for each in lines} == {
        ("viquae", "sub_em", "VRAG", ""),
        ("vh_multi", "binary_acc", "NIAH", ""),
        ("counting-text", "soft_acc", "NIAH", "MM-NIAH counting"),
        ("retrieval-image", "mc_acc", "NIAH", "MM-NIAH retrieval"),
        ("food101", "cls_acc", "ICL", ""),
        ("gov", "rouge", "Summ", ""),
        ("mmlongdoc", "doc_qa", "DocVQA", ""),
    }
    assert {(each.dataset, each.cluster) for each in lines} == {
        *((name, "") for name in ("viquae", "vh_multi", "counting-text", "retrieval-image")),
        *(("food101", "food101: red ring"), ("food101", "food101: blue ring")),
        *(("gov", "gao-1"), ("mmlongdoc", "harbour")),
    }
    needed = {"model", "metric", "file", "dataset", "length", "id", "status", "score"}
    assert {name for each in lines for name in vars(each)} - set(DEFAULTS) == needed


@pytest.mark.parametrize("said", ["", "Not answerable", "\ud800"])
def test_refusals_do_not_score_full(said: str, public: Path, golds: list[Line], tmp_path: Path) -> None:
    lines = [{**line, "prediction": said} for line in golds]
    ours = means(score(public, lines, tmp_path, "--profile", "ours", "--json"))
    assert {key: mean for key, mean in ours.items() if (mean or 0) > 0.2} == {}
    official = means(score(public, lines, tmp_path, "--json"))
    assert official == {**ours, ("binary_acc", "vh_multi", "8192"): sum(IN_TURN) / 6}


def test_scores_have_placements_facets_and_details(public: Path, golds: list[Line], tmp_path: Path) -> None:
    score(public, golds, tmp_path, "--model", "A/B: C")
    lines = scored(tmp_path / "scores/A_B: C.default.jsonl")
    assert {line.model for line in lines} == {"A/B: C"}
    assert [line.permutation for line in lines if line.file == VH] == [0, 1, 2, 0, 1, 2]
    assert [line.depth for line in lines if line.dataset == "retrieval-image"] == [0.0, 0.2, 0.4]
    facets = {line.id: line.facets for line in lines if line.file == DOCS}
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


CLUSTERS: tuple[tuple[str, Line, str], ...] = (
    ("vrag/viquae_K8_dep6.jsonl", {"entity_id": "Q7", "positive_ctxs": [{"title": "Peru"}]}, "Q7"),
    ("vrag/viquae_K8_dep6.jsonl", {"entity_id": "", "positive_ctxs": [{"title": "Peru"}, {"title": "Lima"}]}, "Peru"),
    (VH, {"needles": ["vh/b.jpg", "vh/a.jpg"]}, "vh/a.jpg"),
    (VH, {"needles": ["vh/a.jpg", "vh/c.jpg"]}, "vh/a.jpg"),
    ("NIAH/retrieval-image_test_K8_dep6.jsonl", {"positive_ctxs": [{"image": "n/b"}, {"image": "n/a"}]}, "n/a"),
    ("NIAH/retrieval-image_test_K8_dep6.jsonl", {"positive_ctxs": [{"text": "a sentence"}]}, ""),
    (DOCS, {"doc_name": "quay"}, "quay"),
    (ICL, {"name": "red ring", "domain": "Birds"}, "Birds: red ring"),
    (ICL, {"name": "", "domain": ""}, ""),
)


def test_a_cluster_is_the_document_entity_picture_or_class(records: dict[str, list[Line]], tmp_path: Path) -> None:
    made: dict[str, list[Line]] = {}
    for file, fields, _ in CLUSTERS:
        made.setdefault(file, []).append({**records[file][0], **fields, "id": f"q{len(made.get(file, []))}"})
    for file, several in made.items():
        (tmp_path / "mmlb_data" / file).parent.mkdir(parents=True, exist_ok=True)
        write((tmp_path / "mmlb_data" / file).parent, several, Path(file).name)
    score(tmp_path, [{"file": DOCS, "id": "q0", "prediction": "x"}], tmp_path)
    found = {file: [each.cluster for each in scored(tmp_path / "scores") if each.file == file] for file in made}
    assert found == {file: [cluster for name, _, cluster in CLUSTERS if name == file] for file in made}


def test_a_release_that_comes_after_the_predictions_is_named(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("{}")
    ran = command("score", tmp_path / "m.jsonl", finished, "--out", tmp_path / "scores")
    assert (ran.code, "RELEASE comes first" in ran.err) == (2, True)


def test_options_of_a_metric_reach_it(
    public: Path, golds: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Settings]()
    make = SMuDGE.__init__

    def kept(metric: SMuDGE, settings: Settings) -> None:
        made.append(settings)
        make(metric, settings)

    monkeypatch.setattr(SMuDGE, "__init__", kept)
    asked = ("--metrics", "smudge", "--documents", tmp_path, "--alpha", 0.5, "--alpha", 1)
    score(public, of_file(golds, DOCS), tmp_path, "--partial", *asked)
    (settings,) = made
    assert (settings.alphas, settings.documents) == ((0.5, 1.0), tmp_path)


def test_every_kind_of_bad_prediction_is_named_and_counted(public: Path, golds: list[Line], tmp_path: Path) -> None:
    vh = of_file(golds, VH)
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
    found = score(public, bad, tmp_path, "--json")
    assert found.code == 1
    names = ("not-a-text", "duplicate", "wrong-placement", "unknown-id", "unknown-file", "absent")
    assert problems(found) == dict(zip(names, (1, 1, 3, 1, 1, 5 + 2), strict=True))
    start = len(golds) - len(vh) - 2
    assert first(found, "duplicate") == [f"m.jsonl, line {start + 3}: {VH}: vh_multi-0, permutation 1"]
    assert first(found, "wrong-placement")[0] == f"m.jsonl, line {start + 4}: {VH}: vh_multi-0"
    assert first(found, "absent")[0] == f"{ICL}: test-1"
    lines = [line for line in scored(tmp_path / "scores") if line.file == VH]
    assert [(line.status, line.score) for line in lines] == [("absent", 0.0), ("scored", 1.0), *[("absent", 0.0)] * 4]


def test_what_is_wrong_is_said_in_words(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = score(public, [golds[0], golds[0], *golds[2:]], tmp_path)
    assert found.code == 1
    assert [text.partition(":")[0] for text in found.err.splitlines()] == ["duplicate", "absent"]
    assert "m.jsonl, line 2: vrag/" in found.err
    assert "they score 0: vrag/viquae_K8_dep6.jsonl: viquae-1, depth 0.2\n" in found.err
    assert ["vh_multi", "binary_acc", "100.0", "(6)"] in [text.split() for text in found.out.splitlines()]
    assert score(public, golds[1:], tmp_path, "-q").out == ""


def test_files_without_any_prediction_score_0_or_are_left_out(public: Path, golds: list[Line], tmp_path: Path) -> None:
    whole = score(public, of_file(golds, VH), tmp_path, "--json")
    assert Counter(means(whole).values()) == {1.0: 1, 0.0: 7}
    partial = score(public, of_file(golds, VH), tmp_path, "--json", "--partial")
    assert means(partial) == {("binary_acc", "vh_multi", "8192"): 1.0}
    assert (problems(partial), partial.code) == ({"no-predictions": 7}, 1)


def test_only_what_was_answered_is_scored_and_damaged_answers_are_counted(finished: Path, tmp_path: Path) -> None:
    examples = list(mm.open_release(finished).examples("mmlongdoc", "2K"))[:3]
    parts: tuple[Line, ...] = ({}, {"receipt": "image-lost"}, {"receipt": "no-such-fault"})
    lines = [
        {**example.key, "digest": example.digest, "prediction": f"Answer: {example.answer}", **more}
        for example, more in zip(examples, parts, strict=True)
    ]
    path = write(tmp_path, lines, "m.jsonl") / "m.jsonl"
    some = mm.score(finished, path, only_answered=True)
    assert [(cell.length, cell.examples, cell.absent) for cell in some.cells] == [(2048, 3, 0)]
    assert some.problems == ()
    assert "left out by --only-answered: 3 examples of the files, 1 whole files" in some.notes
    damaged = "1 of 3 answers were given to prompts whose tokens were not as expected: image-lost 1"
    assert damaged in some.notes
    whole = mm.score(finished, path)
    assert [(cell.examples, cell.absent) for cell in whole.cells] == [(6, 6), (6, 3)]
    assert [problem.reason for problem in whole.problems] == ["absent"]


def test_scores_of_another_model_are_not_replaced(public: Path, golds: list[Line], tmp_path: Path) -> None:
    score(public, golds, tmp_path, "--model", "A/B", "-q")
    before = (tmp_path / "scores/A_B.default.jsonl").read_bytes()
    said = refusal(score(public, golds[:1], tmp_path, "--model", "A_B", "--partial"))
    assert "A_B.default.jsonl: holds scores of 'A/B', not of 'A_B'; give --model another name" in said
    assert (tmp_path / "scores/A_B.default.jsonl").read_bytes() == before
    assert score(public, golds, tmp_path, "--model", "A/B", "-q").code == 0


def test_scores_with_other_choices_are_not_replaced_and_a_report_shows_both(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    lines = [{**line, "prediction": f"<think>{line['prediction']}</think>no"} for line in golds]
    for options in ([], ["--reasoning", "keep"], ["--profile", "ours"], ["--profile", "official"], ["--compat"]):
        assert score(public, lines, tmp_path, "-q", *options).code == 0
    folder = tmp_path / "scores"
    files = {path.name: {line.profile for line in scored(path)} for path in folder.iterdir()}
    assert files == {
        "m.default.jsonl": {"official"},
        "m.default.kept.jsonl": {"official"},
        "m.default.ours.jsonl": {"ours"},
        "m.default.official.jsonl": {"official"},
        "m.default.official.kept.jsonl": {"official"},
    }
    for name in ("ours", "official", "official.kept"):
        (folder / f"m.default.{name}.jsonl").unlink()
    found = told(folder)
    shown = {each["profile"]: each["mean"] for each in found["scores"]["cells"] if each["row"] == "viquae"}
    assert shown == {"official": 0.0, "official, reasoning kept": 1.0}
    assert {each["profile"] for each in found["averages"]["cells"]} == set(shown)
    before = (folder / "m.default.jsonl").read_bytes()
    (folder / "m.default.kept.jsonl").write_bytes(before)
    said = refusal(score(public, lines, tmp_path, "-q", "--reasoning", "keep"))
    assert "m.default.kept.jsonl: holds scores by cls_acc (official), not (official, reasoning kept)" in said
    assert "--out" in said
    assert (folder / "m.default.kept.jsonl").read_bytes() == before


REFUSED = {
    "no metric": (("--metrics", " , "), ("metrics: expected at least one name",)),
    "no name": (("--metrics", ""), ("metrics: expected at least one name",)),
    "another metric": (
        ("--metrics", "anl"),
        ("--metrics anl: no dataset here declares it", "did you mean 'anls'", "doc_qa: mmlongdoc; "),
    ),
    "a profile of no metric": (
        ("--metrics", "default,anls", "--profile", "official"),
        ("--profile official: the metric 'anls' does not offer it; it offers paper",),
    ),
    "compat of ours": (("--compat", "--profile", "ours"), ("--compat", "excludes --profile ours")),
    "compat without reasoning": (("--compat", "--reasoning", "strip"), ("--compat", "excludes --reasoning strip")),
    "a judge without an address": (("--judge-model", "m"), ("--judge-url and --judge-model go together",)),
    "an address without a judge": (
        ("--judge-url", "http://127.0.0.1:9/v1"),
        ("--judge-url and --judge-model go together",),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_options_that_cannot_be_meant_are_refused_and_nothing_is_written(
    case: str, public: Path, golds: list[Line], tmp_path: Path
) -> None:
    options, facts = REFUSED[case]
    said = refusal(score(public, golds, tmp_path, *options))
    assert [fact for fact in facts if fact not in said] == []
    assert not (tmp_path / "scores").exists()


def test_several_metrics_make_one_file_and_each_is_told_with_its_profile(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    found = score(public, golds, tmp_path, "--metrics", "mmlongbench-doc,anls,default", "--json")
    counts = {"examples": 5, "absent": 0, "failed": 0, "skipped": 0}
    of_rules = {"score": 1.0, **counts, "accuracy": 1.0, "f1": 1.0}
    assert cells(found)["mmlongbench-doc", "mmlongdoc", "8192"] == of_rules
    assert {dataset for metric, dataset, _ in means(found) if metric == "anls"} == {"mmlongdoc"}
    (file,) = (tmp_path / "scores").iterdir()
    assert file.name == "m.mmlongbench-doc+anls+default.jsonl"
    kept = {(each.metric, each.profile, each.follows, *each.choices) for each in scored(file)}
    assert kept == {
        ("doc_qa", "official", CODE, "docqa_llm_judge off"),
        *((name, "official", CODE) for name in ("binary_acc", "cls_acc", "mc_acc", "rouge", "soft_acc", "sub_em")),
        ("mmlongbench-doc", "ours", PROTOCOL, "rule-extracted"),
        ("anls", "paper", "arXiv:1905.13648"),
    }
    text = score(public, golds, tmp_path, "--metrics", "default,mmlongbench-doc,anls").out
    titles = [row.rstrip() for row in text.splitlines() if row.startswith("scores of 100")]
    assert titles == [f"scores of 100 (examples), {profile}" for profile in ("official", "paper", "ours")]
    assert f"mmlongbench-doc: follows {PROTOCOL}; rule-extracted\n" in text
    assert f"binary_acc, cls_acc, mc_acc, rouge, soft_acc, sub_em: follows {CODE}\n" in text
    assert f"doc_qa: follows {CODE}; docqa_llm_judge off\n" in text
    assert ["f1", "100.0"] in [row.split()[:2] for row in text.splitlines()]


@pytest.mark.parametrize(
    "thought", ["<think>It is {gold}, or not.</think>", "It is {gold}, or not.</think>", "<think>{gold}"]
)
def test_a_thought_that_names_the_gold_scores_nothing_under_any_profile(
    thought: str, public: Path, golds: list[Line], tmp_path: Path
) -> None:
    lines = [{**each, "prediction": f"{thought.format(gold=each['prediction'])} I am not sure"} for each in golds]
    vh = ("binary_acc", "vh_multi", "8192")
    for profile, guessed in (("official", sum(IN_TURN) / 6), ("ours", 0)):
        found = means(score(public, lines, tmp_path, "--profile", profile, "--json"))
        assert found.pop(vh) == pytest.approx(guessed)
        assert {key: mean for key, mean in found.items() if (mean or 0) > 0.2} == {}
    kept = means(score(public, lines, tmp_path, "--profile", "ours", "--reasoning", "keep", "--json"))
    assert {metric for (metric, _, _), mean in kept.items() if mean == 1} >= {"sub_em", "binary_acc", "soft_acc"}


def test_what_became_of_reasoning_is_counted_and_stands_in_the_line(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    said = ["<think>x</think>12", "18.29%", "<think>Tern Rock", "x</think>red", "Not answerable"]
    lines = [{**line, "prediction": text} for line, text in zip(of_file(golds, DOCS), said, strict=True)]
    found = score(public, lines, tmp_path, "--partial", "--metrics", "default,anls", "--json")
    assert json.loads(found.out)["reasoning"] == {"stripped": 2, "unclosed": 1}
    kept = [line for line in scored(tmp_path / "scores") if line.metric == "doc_qa"]
    assert [line.reasoning for line in kept] == ["stripped", "", "unclosed", "stripped", ""]
    assert [(line.status, line.score) for line in kept][:3] == [("scored", 1), ("scored", 1), ("scored", 0)]
    text = score(public, lines, tmp_path, "--partial").out
    assert "reasoning: 2 predictions have reasoning, which is left out of what is scored\n" in text
    report = told(tmp_path / "scores/m.default+anls.jsonl")
    assert report["reasoning"] == {"m": {"stripped": 2, "unclosed": 1}}
    one = score(public, lines[:1], tmp_path, "--partial").out
    assert "reasoning: 1 prediction has reasoning, which is left out of what is scored\n" in one
    lines[4] = {**lines[4], "prediction": "<think></think>Not answerable"}
    score(public, lines, tmp_path, "--partial", "--compat", "--metrics", "default", "-q")
    kept = scored(tmp_path / "scores/m.default.official.kept.jsonl")
    assert [line.reasoning for line in kept] == ["kept", "", "kept", "kept", ""]
    assert kept[4].score == 0.5  # markers are kept too: "thinkthinknot answerable"
    assert {tuple(line.choices) for line in kept} == {("docqa_llm_judge off", "reasoning kept")}


def test_a_dry_run_writes_nothing(public: Path, golds: list[Line], tmp_path: Path) -> None:
    found = score(public, golds, tmp_path, "--dry-run")
    assert (found.code, found.out) == (0, "nothing is written\n")
    assert not (tmp_path / "scores").exists()


CUT = {"prediction": "", "reasoning": "It says 12, so", "finish_reason": "length"}
NOT_CUT: tuple[Line, ...] = (
    *({**CUT, "finish_reason": reason} for reason in ("stop", None, ["length"])),
    *({**CUT, "reasoning": said} for said in ("", " \n", None, ["It says"])),
    {**CUT, "prediction": "12"},
    {"prediction": "12", "reasoning": "Answer: 13", "finish_reason": "stop"},  # returned apart, and not scored
    {"prediction": "13", "reasoning": "Answer: 12", "finish_reason": "stop"},
)


def test_an_empty_answer_cut_off_while_reasoning_is_counted_like_an_unclosed_tag(public: Path, tmp_path: Path) -> None:
    lines = [{"file": DOCS, "id": "mmlongdoc_0", "sample": n, **fields} for n, fields in enumerate((CUT, *NOT_CUT))]
    for options in ((), ("--reasoning", "keep")):
        found = score(public / DOCS, lines, tmp_path, "--json", *options)
        kept = [line for line in scored(tmp_path / "scores") if line.id == "mmlongdoc_0"][: len(lines)]
        assert [line.reasoning for line in kept] == ["unclosed", *[""] * len(NOT_CUT)]
        assert [line.score for line in kept] == [*[0.0] * 8, 1.0, 1.0, 0.0]
        assert json.loads(found.out)["reasoning"] == {"unclosed": 1}
    assert told(tmp_path / "scores/m.default.jsonl")["reasoning"] == {"m": {"unclosed": 1}}
    text = command("score", public / DOCS, tmp_path / "m.jsonl", "--out", tmp_path / "scores").out
    assert "reasoning: 1 prediction has reasoning that was cut off; only the text before it is scored\n" in text


def test_judge_stands_for_every_metric_that_asks_a_judge(public: Path, tmp_path: Path) -> None:
    judge = ("--metrics", "judge", "--judge-url", "http://127.0.0.1:9/v1", "--judge-model", "j", "--dry-run", "--json")
    found = json.loads(score(public, [], tmp_path, *judge).out)
    names = {"judge-answers", "judge-committee", "judge-fluency-f1", "judge-mmlongbench-doc"}
    assert set(found["profiles"]) == names
