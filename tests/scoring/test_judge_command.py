"""Judges from the command line: profiles, prompts, figures and notes of scores, and claims of gold summaries."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pymupdf
import pytest
from invented_checkout import draw_checkout
from model_server import QUICK, ModelServer, Request, Said, good, in_turn, question_of, serving, text_of
from once import linked, once
from score_lines import Line, score, scored, told, write
from tiny import Ran, command

import mmlongbench as mm
from mmlongbench.metrics.judge import Answers
from mmlongbench.models import client
from mmlongbench.task.metrics import Judge, Settings

SUMM, DOCS = "summ/gov_K8.jsonl", "documentQA/mmlongdoc_K8.jsonl"
WORDS = {
    "fluency": '{"fluency": 1}',
    "recall": 'So. {"recall": 1}',
    "precision": '{"precision": 1, "sentence_count": 2}',
    "answer": '[Score]: 1 points\n[JSON]: {"answer_score": 1}',
    "list": '[JSON]: {"student_answer_count": 2, "covered_count": 1}',
    "Grade": '{"reason": "as the pages say", "score": 2}',
    "Extracted": '{"format": "Integer", "answer": ["12"]}',
}


def script(request: Request) -> Said:
    if "Reply with the grade alone" in text_of(request):
        return Said("4")
    if "response_format" in request and question_of(request) not in WORDS:
        return Said(WORDS["Extracted"])
    return Said(WORDS[question_of(request)])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(script) as opened:
        yield opened


@pytest.fixture
def release(public: Path, tmp_path: Path) -> Path:
    """The public files of summaries and documents, and claims of the summaries."""
    root = tmp_path / "release" / "mmlb_data"
    for name in (SUMM, DOCS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((public / name).read_bytes())
    (root / "summ/gov_claims.jsonl").write_text('{"id": "gao-1", "claims": ["Twelve.", "Three."]}\n')
    return tmp_path / "release"


Run = Callable[..., Ran]


@pytest.fixture
def run(release: Path, golds: list[Line], tmp_path: Path, server: ModelServer) -> Run:
    """Scores the gold answers by some metrics."""
    lines = [line for line in golds if line["file"] in (SUMM, DOCS)]

    def made(metrics: str, *options: object, judge: str = "j") -> Ran:
        named = ("--judge-model", judge) if judge else ()
        asked = ("--metrics", metrics, "--judge-url", server.url, *named, *options)
        return score(release, lines, tmp_path, *asked)

    return made


def kept(folder: Path, metric: str) -> list[SimpleNamespace]:
    return [line for line in scored(folder / "scores") if line.metric == metric]


def test_without_the_public_prompts_scores_of_summaries_and_answers_are_ours(run: Run, tmp_path: Path) -> None:
    found = run("judge-fluency-f1,judge-answers,judge-mmlongbench-doc")
    assert (found.code, found.err) == (0, "")
    assert "scores of 100 (examples), ours" in found.out
    assert "official" not in found.out
    for metric in ("judge-fluency-f1", "judge-answers"):
        assert {(line.profile, line.follows, *line.choices[:2]) for line in kept(tmp_path, metric)} == {
            ("ours", "EdinburghNLP/MMLongBench@22b9f27", "own wording", "judge j")
        }
    assert {(line.profile, line.follows) for line in kept(tmp_path, "judge-mmlongbench-doc")} == {
        ("ours", "mayubo2333/MMLongBench-Doc@d73f0dc")
    }


def test_with_the_public_prompts_they_are_official_with_the_digest_of_the_file(
    run: Run, tmp_path: Path, server: ModelServer
) -> None:
    checkout = draw_checkout(tmp_path / "checkout")
    metrics = ("judge-fluency-f1,judge-answers", "--judge-prompts", checkout)
    found = run(*metrics)
    assert (found.code, found.err) == (0, "")
    assert "scores of 100 (examples), official" in found.out
    assert "ours" not in found.out
    (summary,), answers = kept(tmp_path, "judge-fluency-f1"), kept(tmp_path, "judge-answers")
    code = "EdinburghNLP/MMLongBench@22b9f27"
    assert summary.profile == "official"
    assert re.fullmatch(rf"{code}, prompts eval_gpt4_summ\.py sha256:\w{{16}}", summary.follows)
    assert {line.follows.partition(" sha256:")[0] for line in answers} == {f"{code}, prompts utils_prompt.py"}
    asked = [text_of(request) for request in server.requests if question_of(request) == "fluency"]
    assert [text.partition(" well?")[0] for text in asked] == ["Reads report"]
    assert "judge-answers: the public code asks Doubao-Seed-1.8, this run j" in found.out
    rows = {tuple(row.split()) for row in found.out.splitlines()}
    figures = {("recall", "50.0"), ("precision", "50.0"), ("fluency", "100.0"), ("f1", "50.0"), ("flu-f1", "50.0")}
    assert {("gov", "judge-fluency-f1", "50.0", "(1)")} | figures <= rows
    totals = told(tmp_path / "scores")["totals"]["cells"]
    assert {each["row"]: each["mean"] for each in totals}["flu-f1"] == pytest.approx(0.5)
    (checkout / "utils_prompt.py").unlink()
    refused = run(*metrics)
    assert refused.code == 2
    assert "no DOC_QA_JUDGE_PROMPT, which judge-answers needs" in refused.err


def test_an_example_without_a_usable_reply_is_left_out_of_the_mean_and_counted(
    run: Run, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "Backoff", lambda: QUICK)
    server.script = lambda request: Said("It is right.") if "\n18.29%\n" in text_of(request) else script(request)
    found = run("judge-answers")
    assert found.code == 1
    assert "mmlongdoc  judge-answers  87.5 (5)" in found.out  # 1, 1, 1 and the half of a list, over four
    assert found.err.startswith(f"failed: judge-answers: 1 examples have no score, first {DOCS}: mml")
    failed = [line for line in kept(tmp_path, "judge-answers") if line.status == "failed"]
    assert [(line.id, line.score) for line in failed] == [("mmlongdoc_1", None)]
    assert "no JSON object in 'It is right.'" in failed[0].failure


def test_official_is_refused_without_prompts_and_other_profiles_with_them(
    run: Run, release: Path, tmp_path: Path, server: ModelServer
) -> None:
    for options, said in (
        (("--profile", "official"), "--profile official: judge-fluency-f1 needs the prompts of the public code"),
        (("--compat",), "--profile official: judge-fluency-f1 needs the prompts of the public code"),
        (("--profile", "paper"), "the metric 'judge-fluency-f1' does not offer it; it offers ours"),
        (("--profile", "ours", "--judge-prompts", release), "--judge-prompts gives the public code's prompts"),
        (("--judge-prompts", tmp_path), "has none of scripts/eval_gpt4_summ.py, utils_prompt.py"),
    ):
        found = run("judge-fluency-f1", *options)
        assert found.code == 2, options
        assert said in " ".join(found.err.split())
    assert not server.requests
    assert not (tmp_path / "scores").exists()


def test_the_public_codes_judge_is_asked_where_none_is_named(run: Run, tmp_path: Path, server: ModelServer) -> None:
    assert run("judge-fluency-f1", "--judge-prompts", draw_checkout(tmp_path / "c"), judge="").code == 0
    assert {request["model"] for request in server.requests} == {"gpt-4o-2024-11-20"}


def test_a_dry_run_counts_the_calls_and_makes_none(run: Run, tmp_path: Path, server: ModelServer) -> None:
    found = run("judge-fluency-f1,judge-answers", "--dry-run", "--json")
    usage = json.loads(found.out)["usage"]
    assert {name: each["planned_calls"] for name, each in usage.items()} == {"judge-fluency-f1": 3, "judge-answers": 5}
    assert not server.requests
    assert not (tmp_path / "scores").exists()


def test_every_option_of_judges_reaches_them(
    run: Run, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Settings]()
    make = Answers.__init__

    def kept_settings(metric: Answers, settings: Settings) -> None:
        made.append(settings)
        make(metric, settings)

    monkeypatch.setattr(Answers, "__init__", kept_settings)
    options = ("--judge-cache", tmp_path / "c", "--judge-concurrency", 3, "--judge-timeout", 7, "--judge-samples", 2)
    assert run("judge-answers", *options, "--judge-prices", 1, 2, "--dry-run").code == 0
    numbers: Line = {"concurrency": 3, "timeout": 7.0, "samples": 2, "prices": (1.0, 2.0), "is_dry": True}
    assert made[0].judge == Judge(server.url, ("j",), tmp_path / "c", **numbers)


def test_a_committee_is_official_by_default_and_says_how_it_differs(
    run: Run, release: Path, tmp_path: Path, server: ModelServer
) -> None:
    path = release / "mmlb_data" / DOCS
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    more = {
        "page_list": [f"mmlongbench-doc/harbour/harbour_page{number}.jpg" for number in range(3)],
        "page_text_list": [f"printed on page {number}" for number in range(3)],
    }
    write(path.parent, [{**each, **more} for each in records], path.name)
    found = run("judge-committee")
    assert "judge-committee: 1 judge instead of 3, which official has" in found.out
    assert "judge-committee: 1 examples left out: no page holds the answer" in found.out
    lines = kept(tmp_path, "judge-committee")
    choices = ("own wording", "judge j", "each asked once at temperature 0", "no reference")
    made = {(line.profile, line.follows, tuple(line.choices)) for line in lines}
    assert made == {("official", "chiayewken/multimodal-docs@ce48d6a", choices)}
    assert [(line.score, line.details["mean"]) for line in lines if line.status == "scored"] == [(0.75, 4.0)] * 4
    for profile, calls, mean in (("paper", 4 * 5, 4.0), ("ours", 5, 2.0)):  # ours also asks where no page answers
        before = len(server.requests)
        run("judge-committee", "--profile", profile)
        assert len(server.requests) - before == calls
        lines = [line for line in kept(tmp_path, "judge-committee") if line.profile == profile and not line.failure]
        assert {(line.details["mean"], line.score) for line in lines} == {(mean, (mean - 1) / 4)}


GOLDS = {"GAO-18-107": "It was dredged. It cost a lot.", "GAO-18-21": "It was closed."}
IDS = ("gov_report_gao-18-107", "gov_report_gao-18-21")
CLAIMS = "summ/gov_claims.jsonl"


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of two reports at two lengths; not to be changed."""

    def make(folder: Path) -> None:
        (folder / "documents").mkdir()
        rows = []
        for id, gold in GOLDS.items():
            with pymupdf.open() as document:
                for page in range(4):
                    lines = [f"{page}.{n} The quay is told of" for n in range(12)]
                    document.new_page(width=200, height=200).insert_text((9, 19), "\n".join(lines))
                document.save(folder / "documents" / f"{id}.pdf")
            rows.append({"id": id, "highlight": [{"section_title": "T", "paragraphs": [gold], "subsections": []}]})
        write(folder, rows, "reports.jsonl")
        source = {"reports": str(folder / "reports.jsonl"), "documents": str(folder / "documents")}
        about = {"name": "gov", "builder": "summary", "reader": "govreport", "source": source, "reserve": 64}
        about |= {"lengths": ["1K", "2K"], "reference_length": "1K", "options": {"without_summary_page": "keep"}}
        (folder / "m.yaml").write_text(json.dumps({"datasets": [about]}), "utf-8")
        mm.build(folder / "m.yaml", folder / "release")

    return once(tmp_path_factory, "two-reports", make) / "release"


def claims(release: Path, server: ModelServer, *options: object) -> Ran:
    return command("claims", release, "--judge-url", server.url, "--judge-model", "m", *options)


def one_claim(request: Request) -> Said:
    return good(claims=[text_of(request).splitlines()[-2]])


def read(path: Path) -> dict[str, list[str]]:
    return {line["id"]: line["claims"] for line in map(json.loads, path.read_text("utf-8").splitlines())}


def test_claims_are_written_beside_the_data_or_elsewhere(reports: Path, tmp_path: Path) -> None:
    release = linked(reports, tmp_path / "release")
    with serving(one_claim) as server:
        planned = claims(release, server, "--dry-run")
        assert (planned.code, len(server.requests)) == (0, 0)
        assert "planned calls: 2" in planned.out
        done = claims(release, server)
        assert (done.code, done.err, len(server.requests)) == (0, "", 2)
        assert f"{CLAIMS}: 2 summaries, 2 claims\ncalls: 2, " in done.out
        assert "input tokens: 20, output tokens: 6" in done.out
        written = release / "mmlb_data" / CLAIMS
        assert read(written) == dict(zip(IDS, [[gold] for gold in GOLDS.values()], strict=True))
        assert any("T:\nIt was closed." in text_of(request) for request in server.requests)
        again = claims(release, server, "--json", "--out", tmp_path / "a")
        (dataset,) = json.loads(again.out)["datasets"]
        assert (dataset["claims"], dataset["known"], json.loads(again.out)["usage"]["calls"]) == (2, 2, 0)
        assert (tmp_path / "a" / CLAIMS).read_bytes() == written.read_bytes()
        assert claims(release, server, "-q", "--out", tmp_path / "b").out == ""


def test_claims_that_are_there_stay_as_they_are_and_the_others_are_made(reports: Path, tmp_path: Path) -> None:
    release = linked(reports, tmp_path / "release")
    path = release / "mmlb_data" / CLAIMS
    other = '{"id": "gov_report_gao-09-288", "claims": ["Another."]}\n'
    path.write_text(f'{{"claims": ["It is public."],  "id": "{IDS[0]}", "more": 1}}\n{other}')
    with serving(one_claim) as server:
        done = claims(release, server)
        assert (done.code, len(server.requests)) == (0, 1)
        assert "gov_claims.jsonl: 2 summaries, 2 claims; already there: 1\n" in done.out
        kept_ids = "claims of ids that the release does not have are kept: 1, first 'gov_report_gao-09-288'\n"
        assert kept_ids in done.out
        made = {IDS[0]: ["It is public."], "gov_report_gao-09-288": ["Another."], IDS[1]: ["It was closed."]}
        assert read(path) == made
        before = path.read_bytes()
        assert (claims(release, server).code, len(server.requests), path.read_bytes()) == (0, 1, before)


def test_summaries_without_claims_are_named_and_asked_again_by_the_next_run(reports: Path, tmp_path: Path) -> None:
    options = ("--judge-cache", tmp_path / "c.sqlite", "--out", tmp_path / "out")
    with serving(in_turn(good(claims=["x", "y"]), Said(status=400))) as server:
        done = claims(reports, server, "--judge-concurrency", 1, *options)
        assert done.code == 1
        assert f"gov, {IDS[1]}: no claims: m: HTTP 400" in done.err
        assert f"{CLAIMS}: not written; run the same command" in done.err
        assert not (tmp_path / "out").exists()
        server.script, before = one_claim, len(server.requests)
        assert (claims(reports, server, *options).code, len(server.requests) - before) == (0, 1)
    assert read(tmp_path / "out" / CLAIMS) == {IDS[0]: ["x", "y"], IDS[1]: ["It was closed."]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a"}', "line 2: claims: Field required"),
        ('{"id": null, "claims": []}', "line 2: id.str: Input should be a valid string"),
        ('{"id": 7.5, "claims": []}', "line 2: id.str: Input should be a valid string"),
        ('{"id": "a", "claims": [1]}', "line 2: claims.0: Input should be a valid string"),
        ('{"id": "first", "claims": []}', "line 2: id 'first' occurs twice"),
        ("[]", "line 2: expected a JSON object"),
    ],
)
def test_a_released_line_of_claims_that_is_none_is_named(line: str, said: str, reports: Path, tmp_path: Path) -> None:
    release = linked(reports, tmp_path / "release")
    (release / "mmlb_data" / CLAIMS).write_text(f'{{"id": "first", "claims": ["x"]}}\n{line}\n')
    with serving(one_claim) as server:
        refused = claims(release, server)
        assert (refused.code, server.requests) == (2, [])
    assert f"gov_claims.jsonl, {said}" in refused.err


def test_a_release_without_summaries_is_an_error(finished: Path) -> None:
    with serving(one_claim) as server:
        refused = claims(finished, server)
    assert refused.code == 2
    assert "no dataset is scored by judge-fluency-f1" in refused.err


EVIL = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202ecod\u2066e\r\n\x00\u200b\u2028\ud800z"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "a\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\u202ecod\\u2066e\\r\\n\\x00\\u200b\\u2028\\ud800z: no claims: "),
        (("-q",), ": no claims: "),
        (("--json",), '"a\\u001b]0;title'),
    ],
    ids=["text", "quiet", "json"],
)
def test_ids_of_a_release_and_words_of_a_judge_are_shown_and_never_obeyed(
    options: tuple[str, ...], words: str, reports: Path, tmp_path: Path
) -> None:
    release = linked(reports, tmp_path / "release")
    for path in (release / "mmlb_data/summ").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        write(path.parent, [{**line, "id": EVIL} for line in lines[:1]], path.name)
    said = json.dumps({"error": {"message": f"no: {EVIL[:-2]}"}}).encode()
    with serving(lambda request: Said(status=400, body=said)) as server:
        ran = command("claims", release, "--judge-url", server.url, "--judge-model", "m\x1b[2J", *options)
    assert ran.code == 1
    assert words in ran.out + ran.err
    assert not OBEYED.search(ran.out + ran.err)
