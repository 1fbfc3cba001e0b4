"""Gold summaries as claims: asked once, written when all are there, read as the public scorer reads them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from model_server import QUICK, ModelServer, Request, Said, good, in_turn, judge_of, serving, text_of
from tiny import command

from builders.summarization import Summary
from builders.summarization.options import SummaryOptions
from mmlongbench.cli.claims import claims
from mmlongbench.errors import ReleaseError
from mmlongbench.io.progress import Progress
from mmlongbench.metrics.judge.claims import GoldClaims, Summaries, read_claims, write_claims
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.loading import AuditedDataset, LoadedRelease, PublicFile
from mmlongbench.task.formats import JSON_LINES

pytestmark = pytest.mark.slow

GOLDS = {"a": "It was dredged. It cost a lot.", "b": "It was closed."}
QUIET = Progress(is_shown=False)
SUMMARIES = Summaries("gov", "summ/gov_K8.jsonl", GOLDS)


def one_claim(request: Request) -> Said:
    return good(claims=[text_of(request).splitlines()[1]])


def test_a_file_is_written_when_every_summary_has_claims(tmp_path: Path) -> None:
    with serving(in_turn(good(claims=["It was dredged."]), Said("hm"))) as server:
        with judge_of(server, cache=tmp_path / "c", concurrency=1, attempts=2) as client:
            (done,) = write_claims(client, tmp_path, tmp_path, [SUMMARIES], QUIET)
        assert (done.summaries, done.claims, list(done.failures)) == (2, 1, ["b"])
        assert "no JSON object" in done.failures["b"]
    assert not (tmp_path / "summ").exists()
    with serving(one_claim) as server, judge_of(server, cache=tmp_path / "c") as client:
        (done,) = write_claims(client, tmp_path, tmp_path, [SUMMARIES], QUIET)
        assert (done.file, done.claims, done.failures, len(server.requests)) == ("summ/gov_claims.jsonl", 2, {}, 1)
        (again,) = write_claims(client, tmp_path, tmp_path / "other", [SUMMARIES], QUIET)
        assert (again, len(server.requests)) == (replace(done, known=2), 1)  # read from the file
    written = tmp_path / done.file
    lines = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    assert lines == [{"id": "a", "claims": ["It was dredged."]}, {"id": "b", "claims": ["It was closed."]}]
    assert (tmp_path / "other" / done.file).read_bytes() == written.read_bytes()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"claims": []}, "claims: Tuple should have at least 1 item"),
        ({"claims": ["a", " "]}, "claims: Value error, a claim is empty"),
        ({"claims": "a"}, "claims: Input should be a valid array"),
        ({"claims": ["a"] * 501}, "claims: Tuple should have at most 500 items"),
    ],
)
def test_claims_that_are_none_are_a_failure(said: dict[str, Any], fault: str, tmp_path: Path) -> None:
    with serving(in_turn(good(**said))) as server, judge_of(server, attempts=1) as client:
        (done,) = write_claims(client, tmp_path, tmp_path, [SUMMARIES], QUIET)
    assert all(fault in why for why in done.failures.values())
    assert len(done.failures) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a"}', "line 2: claims: Field required"),
        ('{"id": null, "claims": []}', r"line 2: id\.str: Input should be a valid string"),
        ('{"id": 7.5, "claims": []}', r"line 2: id\.str: Input should be a valid string"),
        ('{"id": "a", "claims": [1]}', r"line 2: claims\.0: Input should be a valid string"),
        ('{"id": "first", "claims": []}', "line 2: id 'first' occurs twice"),
        ("[]", "line 2: expected a JSON object"),
    ],
)
def test_a_released_line_that_is_none_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "gov_claims.jsonl"
    path.write_text(f'{{"id": "first", "claims": ["x"]}}\n{line}\n')
    with pytest.raises(ReleaseError, match=rf"gov_claims\.jsonl, {said}"):
        read_claims(path)


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release of two lengths, of which no more is there than a command about summaries reads."""
    return release_of(GOLDS, tmp_path, monkeypatch)


def release_of(golds: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the first summary for one length, and all for the next one."""
    data = tmp_path / "release" / "mmlb_data"
    dataset = AuditedDataset(cast(Any, Summary("gov", SummaryOptions())), cast(Any, None))
    files = []
    for length, ids in ((8, [*golds][:1]), (16, [*golds])):
        name = f"summ/gov_K{length}.jsonl"
        records = [{"id": id, "summary": [{"section_title": "T", "paragraphs": [golds[id]]}]} for id in ids]
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(b"".join(JSON_LINES.bundle(records)))
        files.append(PublicFile(name, data / name, dataset, length * 1024, JSON_LINES, ImageSizes(tmp_path)))
    monkeypatch.setattr("mmlongbench.release.loading.load_release", lambda _, tasks: LoadedRelease(tuple(files), None))
    return tmp_path / "release"


def test_claims_of_the_public_code_join_by_id_and_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "summ" / "gov_claims.jsonl"
    path.parent.mkdir()
    ids = {"gov_report_gao-18-107": "It was dredged.", "7": "It was closed."}
    public = b'{"claims": ["It is public."],  "id": "gov_report_gao-18-107", "more": 1}\n{"id": 7, "claims": ["So."]}\n'
    path.write_bytes(public + b'{"id": "gov_report_gao-09-288", "claims": ["Another."]}\n')
    before = path.read_bytes()
    with serving(one_claim) as server, judge_of(server) as client:
        (done,) = write_claims(client, tmp_path, tmp_path, [replace(SUMMARIES, golds=ids)], QUIET)
        assert (done.summaries, done.claims, done.known) == (2, 2, 2)
        assert done.others == ("gov_report_gao-09-288",)
        assert (path.read_bytes(), len(server.requests)) == (before, 0)
        (done,) = write_claims(client, tmp_path, tmp_path, [replace(SUMMARIES, golds={**ids, **GOLDS})], QUIET)
        assert (done.known, done.claims, len(server.requests)) == (2, 4, 2)
    assert read_claims(path) == {
        "gov_report_gao-18-107": ("It is public.",),
        "7": ("So.",),
        "gov_report_gao-09-288": ("Another.",),
        "a": ("It was dredged. It cost a lot.",),
        "b": ("It was closed.",),
    }


def run(release: Path, server: ModelServer, *args: str) -> Result:
    return CliRunner().invoke(claims, [str(release), "--judge-url", server.url, "--judge-model", "m", *args])


def test_the_command_writes_claims_beside_the_data(release: Path) -> None:
    with serving(in_turn(good(claims=["x", "y"]))) as server:
        planned = run(release, server, "--dry-run")
        assert (planned.exit_code, len(server.requests)) == (0, 0)
        assert "planned calls: 2" in planned.output
        done = run(release, server)
        assert (done.exit_code, len(server.requests)) == (0, 2)
    assert "summ/gov_claims.jsonl: 2 summaries, 4 claims\ncalls: 2, " in done.output
    assert "input tokens: 20, output tokens: 6" in done.output
    assert read_claims(release / "mmlb_data" / "summ" / "gov_claims.jsonl") == {"a": ("x", "y"), "b": ("x", "y")}
    assert "T:\nIt was closed." in text_of(server.requests[1]) + text_of(server.requests[0])


def test_the_command_prints_json_or_nothing_and_writes_elsewhere(release: Path, tmp_path: Path) -> None:
    with serving(in_turn(good(claims=["x"]))) as server:
        printed = run(release, server, "--json", "--out", str(tmp_path / "a"))
        assert json.loads(printed.output)["datasets"][0]["claims"] == 2
        assert json.loads(printed.output)["usage"]["calls"] == 2
        assert run(release, server, "-q", "--out", str(tmp_path / "b")).output == ""
    assert (tmp_path / "a" / "summ" / "gov_claims.jsonl").is_file()
    assert not (release / "mmlb_data" / "summ" / "gov_claims.jsonl").exists()


def test_the_command_says_which_claims_were_there_and_which_join_nothing(release: Path) -> None:
    path = release / "mmlb_data" / "summ" / "gov_claims.jsonl"
    path.write_text('{"id": "a", "claims": ["x", "z"]}\n{"id": "gov_report_gao-1", "claims": ["y"]}\n')
    with serving(in_turn(good(claims=["x"]))) as server:
        done = run(release, server)
        assert (done.exit_code, len(server.requests)) == (0, 1)
    assert "gov_claims.jsonl: 2 summaries, 3 claims; already there: 1\n" in done.output
    assert (
        "gov_claims.jsonl: claims of ids that the release does not have are kept: 1, first 'gov_report_gao-1'\n"
        in done.output
    )


def test_summaries_without_claims_are_named_and_the_exit_code_is_1(release: Path) -> None:
    with serving(in_turn(Said(status=400))) as server:
        done = run(release, server)
    assert done.exit_code == 1
    assert "gov, a: no claims: m: HTTP 400" in done.stderr
    assert "summ/gov_claims.jsonl: not written; run the same command to try these again" in done.stderr


def test_a_release_without_summaries_is_an_error(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.release.loading.load_release", lambda _, tasks: LoadedRelease((), None))
    with serving(in_turn(Said())) as server:
        refused = run(release, server)
    assert isinstance(refused.exception, ReleaseError)
    assert "no dataset is scored by judge-fluency-f1" in str(refused.exception)


@pytest.mark.parametrize("id", ["gov_report_gao-18-107", "GAO-18-107"], ids=["public", "of the source"])
def test_released_claims_join_by_the_public_id_and_by_the_sources(id: str, tmp_path: Path) -> None:
    (tmp_path / "summ").mkdir()
    (tmp_path / "summ/gov_claims.jsonl").write_text(json.dumps({"id": id, "claims": ["It was dredged."]}) + "\n")
    with serving(lambda _: good(claims=["of the judge"])) as server, judge_of(server) as client:
        known = GoldClaims(client, tmp_path)
        joined = known.of("summ/gov_K8.jsonl", "gov", "gov_report_gao-18-107", GOLDS["a"], "GAO-18-107")
        other = known.of("summ/gov_K8.jsonl", "gov", "gov_report_gao-18-21", GOLDS["a"], "GAO-18-21")
        assert (joined, other, len(server.requests)) == (("It was dredged.",), ("of the judge",), 1)


EVIL = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202ecod\u2066e\r\n\x00\u200b\u2028\ud800z"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "a\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\u202ecod\\u2066e\\r\\n\\x00\\u200b\\u2028\\ud800z: no claims: "),
        (("-q",), ": no claims: "),
        (("--json",), '"a\\\\u001b]0;title'),
    ],
    ids=["text", "quiet", "json"],
)
def test_ids_of_a_release_and_words_of_a_judge_are_shown_and_never_obeyed(
    options: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmlongbench.models.pace.Backoff", lambda: QUICK)
    hostile = release_of({EVIL: "It was dredged.", "b": "It was closed."}, tmp_path, monkeypatch)
    with serving(lambda request: Said(f"no JSON: {EVIL[:-2]}")) as server:
        ran = command("claims", hostile, "--judge-url", server.url, "--judge-model", "m\x1b[2J", *options)
    assert ran.code == 1
    assert words.replace("\\\\", "\\") in ran.out + ran.err
    assert not OBEYED.search(ran.out + ran.err)
