"""Judges from the command line: profiles, prompts, figures and notes, in the lines and on the terminal."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from invented_checkout import draw_checkout
from model_server import QUICK, ModelServer, Request, Said, question_of, serving, text_of
from tiny import Ran, command

from mmlongbench.scoring.scores import ScoreLine, read_scores
from mmlongbench.task.formats import to_json

pytestmark = pytest.mark.slow

Line = dict[str, Any]
SUMMARY = 'So. {"recall": 1}'
WORDS = {
    "fluency": '{"fluency": 1}',
    "recall": SUMMARY,
    "precision": '{"precision": 1, "sentence_count": 2}',
    "answer": '[Score]: 1 points\n[JSON]: {"answer_score": 1}',
    "list": '[JSON]: {"student_answer_count": 2, "covered_count": 1}',
    "Grade": '{"reason": "as the pages say", "score": 2}',
}


def script(request: Request) -> Said:
    if "Reply with the grade alone" in text_of(request):
        return Said("4")
    return Said(WORDS[question_of(request)])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(script) as opened:
        yield opened


@pytest.fixture
def release(public: Path, tmp_path: Path) -> Path:
    """The public files of summaries and documents, and claims of the summaries."""
    root = tmp_path / "release" / "mmlb_data"
    for name in ("summ/gov_K8.jsonl", "documentQA/mmlongdoc_K8.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((public / name).read_bytes())
    (root / "summ" / "gov_claims.jsonl").write_bytes(to_json({"id": "gao-1", "claims": ["Twelve.", "Three."]}))
    return tmp_path / "release"


def run(release: Path, golds: list[Line], folder: Path, server: ModelServer, *options: str) -> Ran:
    lines = [line for line in golds if line["file"].startswith(("summ", "documentQA/mmlongdoc_K8"))]
    (folder / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    judge = ("--judge-url", server.url, "--judge-model", "j")
    named = judge[:2] if "--judge-prompts" in options and "--unnamed" in options else judge
    rest = [option for option in options if option != "--unnamed"]
    return command("score", release, folder / "m.jsonl", "--out", folder / "scores", *named, *rest)


def kept(folder: Path, metric: str) -> list[ScoreLine]:
    return [line for line in read_scores(folder / "scores") if line.metric == metric]


def test_without_the_public_prompts_scores_of_summaries_and_answers_are_ours(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    found = run(release, golds, tmp_path, server, "--metrics", "judge-fluency-f1,judge-answers")
    assert (found.code, found.err) == (0, "")
    assert "scores of 100 (examples), ours" in found.out
    assert "official" not in found.out
    for metric in ("judge-fluency-f1", "judge-answers"):
        assert {(line.profile, line.follows, *line.choices[:2]) for line in kept(tmp_path, metric)} == {
            ("ours", "EdinburghNLP/MMLongBench@22b9f27", "own wording", "judge j")
        }


def test_with_the_public_prompts_they_are_official_with_the_digest_of_the_file(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    checkout = draw_checkout(tmp_path / "checkout")
    metrics = ("--metrics", "judge-fluency-f1,judge-answers", "--judge-prompts", str(checkout))
    found = run(release, golds, tmp_path, server, *metrics)
    assert (found.code, found.err) == (0, "")
    assert "scores of 100 (examples), official" in found.out
    assert "ours" not in found.out
    (summary,), answers = kept(tmp_path, "judge-fluency-f1"), kept(tmp_path, "judge-answers")
    assert summary.profile == "official"
    assert summary.follows.startswith("EdinburghNLP/MMLongBench@22b9f27, prompts eval_gpt4_summ.py sha256:")
    assert {line.follows.partition(" sha256:")[0] for line in answers} == {
        "EdinburghNLP/MMLongBench@22b9f27, prompts utils_prompt.py"
    }
    asked = [text_of(request) for request in server.requests if question_of(request) == "fluency"]
    assert [text.partition(" well?")[0] for text in asked] == ["Reads report"]
    assert "judge-answers: the public code asks Doubao-Seed-1.8, this run j; scores of other judges may" in found.out
    (tmp_path / "checkout" / "utils_prompt.py").unlink()
    refused = run(release, golds, tmp_path, server, *metrics)
    assert refused.code == 2
    assert "no DOC_QA_JUDGE_PROMPT, which judge-answers needs" in refused.err


def test_the_figures_of_the_public_code_stand_beside_the_score_of_100(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    checkout = draw_checkout(tmp_path / "checkout")
    found = run(release, golds, tmp_path, server, "--metrics", "judge-fluency-f1", "--judge-prompts", str(checkout))
    rows = {tuple(line.split()) for line in found.out.splitlines()}
    figures = {("recall", "50.0"), ("precision", "50.0"), ("fluency", "100.0"), ("f1", "50.0"), ("flu-f1", "50.0")}
    assert {("gov", "judge-fluency-f1", "50.0", "(1)")} | figures <= rows
    printed = command("report", tmp_path / "scores", "--json")
    totals = json.loads(printed.out)["totals"]
    assert "flu-f1" in json.dumps(totals)


def test_an_example_without_a_usable_reply_is_left_out_of_the_mean_and_counted(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmlongbench.metrics.judge.judged.Backoff", lambda: QUICK)

    def mute_once(request: Request) -> Said:
        return Said("It is right.") if "\n18.29%\n" in text_of(request) else script(request)

    server.script = mute_once
    found = run(release, golds, tmp_path, server, "--metrics", "judge-answers")
    assert found.code == 1
    assert "mmlongdoc  judge-answers  87.5 (5)" in found.out  # 1, 1, 1 and the half of a list, over four
    assert found.err.startswith(
        "failed: judge-answers: 1 examples have no score, first documentQA/mmlongdoc_K8.jsonl: mml"
    )
    failed = [line for line in kept(tmp_path, "judge-answers") if line.status == "failed"]
    assert [(line.id, line.score) for line in failed] == [("mmlongdoc_1", None)]
    assert "no JSON object in 'It is right.'" in failed[0].failure


def test_official_is_refused_without_prompts_and_other_profiles_with_them(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    for options, said in (
        (("--profile", "official"), "--profile official: judge-fluency-f1 needs the prompts of the public code"),
        (("--compat",), "--profile official: judge-fluency-f1 needs the prompts of the public code"),
        (("--profile", "paper"), "the metric 'judge-fluency-f1' does not offer it; it offers ours"),
        (("--profile", "ours", "--judge-prompts", str(release)), "--judge-prompts gives the public code's prompts"),
        (("--judge-prompts", str(tmp_path)), "has none of scripts/eval_gpt4_summ.py, utils_prompt.py"),
    ):
        found = run(release, golds, tmp_path, server, "--metrics", "judge-fluency-f1", *options)
        assert found.code == 2, options
        assert said in " ".join(found.err.split())
    assert not server.requests
    assert not (tmp_path / "scores").exists()


def test_the_public_codes_judge_is_asked_where_none_is_named(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    options = ("--metrics", "judge-fluency-f1", "--judge-prompts", str(draw_checkout(tmp_path / "c")), "--unnamed")
    assert run(release, golds, tmp_path, server, *options).code == 0
    assert {request["model"] for request in server.requests} == {"gpt-4o-2024-11-20"}


def test_a_committee_is_official_by_default_and_says_how_it_differs(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    texts = [f"printed on page {number}" for number in range(3)]
    path = release / "mmlb_data" / "documentQA" / "mmlongdoc_K8.jsonl"
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    pages = [f"mmlongbench-doc/harbour/harbour_page{number}.jpg" for number in range(3)]
    path.write_bytes(b"".join(to_json({**each, "page_list": pages, "page_text_list": texts}) for each in records))
    found = run(release, golds, tmp_path, server, "--metrics", "judge-committee")
    assert "judge-committee: 1 judge instead of 3, which official has" in found.out
    assert "judge-committee: 1 examples left out: no page holds the answer" in found.out
    lines = kept(tmp_path, "judge-committee")
    assert {(line.profile, line.follows, tuple(line.choices)) for line in lines} == {
        (
            "official",
            "chiayewken/multimodal-docs@ce48d6a",
            ("own wording", "judge j", "each asked once at temperature 0", "no reference"),
        )
    }
    assert [line.score for line in lines if line.status == "scored"] == [0.75] * 4
    assert {line.details["mean"] for line in lines if line.status == "scored"} == {4.0}
    for profile, calls, mean in (("paper", 4 * 5, 4.0), ("ours", 5, 2.0)):  # ours also asks where no page answers
        before = len(server.requests)
        run(release, golds, tmp_path, server, "--metrics", "judge-committee", "--profile", profile)
        assert len(server.requests) - before == calls
        lines = [line for line in kept(tmp_path, "judge-committee") if line.profile == profile and not line.failure]
        assert {(line.details["mean"], line.score) for line in lines} == {(mean, (mean - 1) / 4)}


def test_an_extracted_answer_is_ours_and_follows_its_protocol(
    release: Path, golds: list[Line], tmp_path: Path, server: ModelServer
) -> None:
    server.script = lambda _: Said(json.dumps({"format": "Integer", "answer": ["12"]}))
    run(release, golds, tmp_path, server, "--metrics", "judge-mmlongbench-doc")
    assert {(line.profile, line.follows) for line in kept(tmp_path, "judge-mmlongbench-doc")} == {
        ("ours", "mayubo2333/MMLongBench-Doc@d73f0dc")
    }
