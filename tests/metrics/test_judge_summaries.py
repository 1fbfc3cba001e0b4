"""Fluency-F1: three calls for each summary, the judge's own counts, and the score under each profile."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from invented_checkout import FLUENCY, PRECISION, RECALL, draw_checkout
from model_server import QUICK, ModelServer, Request, Said, Script, good, question_of, replies, serving, text_of
from score_lines import write

from mmlongbench.metrics.judge import FluencyF1, JudgeError
from mmlongbench.task import Score
from mmlongbench.task.metrics import Judge, Profile, ScoringInput, Settings

GOLD = "The port was dredged in 1999. It cost {3} million."
CLAIMS = ["The port was dredged in 1999.", "Dredging cost 3 million.", "The port is deep.", "It is\nold."]
GOOD = {
    "fluency": '{"fluency": 1}',
    "recall": 'Points 1 and 2. {"supported_key_points": [1, 2], "recall": 2}',
    "precision": 'Three of four. {"precision": 3, "sentence_count": 4}',
}
NOWHERE = Judge("http://127.0.0.1:1/v1", ("m",))
CODE = "EdinburghNLP/MMLongBench@22b9f27"


def claim(data: Path, id: str, claims: list[str], dataset: str = "gov") -> None:
    (data / "summ").mkdir(parents=True, exist_ok=True)
    write(data / "summ", [{"id": id, "claims": claims}], f"{dataset}_claims.jsonl")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Public files with claims of a report and of a case."""
    claim(tmp_path / "mmlb_data", "gov_report_gao-18-107", CLAIMS)
    claim(tmp_path / "mmlb_data", "case-7", CLAIMS, "lexsum")
    return tmp_path / "mmlb_data"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return draw_checkout(tmp_path / "checkout")


@contextmanager
def metric(
    script: Script, data: Path | None, prompts: Path | None = None, profile: Profile | None = None, **judge: Any
) -> Iterator[tuple[FluencyF1, ModelServer]]:
    with serving(script) as server:
        asked = Judge(server.url, **{"models": ("m",), "timeout": 30.0, "attempts": 2, **judge})
        paths = (prompts,) if prompts else ()
        settings = Settings(judge=asked, data=data, judge_prompts=paths, profile=profile)
        with closing(FluencyF1(settings, QUICK)) as opened:
            yield opened, server


def report(prediction: str = "In 1999 it was {dredged}.", id: str = "gov_report_gao-18-107") -> ScoringInput:
    return ScoringInput("summ/gov_K8.jsonl", "gov", id, GOLD, prediction, kind="report")


def case(prediction: str = "They sued.") -> ScoringInput:
    return ScoringInput("summ/lexsum_K8.jsonl", "lexsum", "case-7", GOLD, prediction, kind="case")


def questions(server: ModelServer) -> list[str]:
    return [question_of(request) for request in server.requests]


def test_official_asks_with_the_public_prompts_and_nothing_else(data: Path, checkout: Path) -> None:
    with metric(replies(GOOD), data, checkout) as (fluency, server):
        assert fluency.profile == "official"
        found = fluency.score(report("Summary:  In 1999 it was {dredged}. "))
        fluency.score(case())
    said = "In 1999 it was {dredged}."
    points = "1. The port was dredged in 1999.\n2. Dredging cost 3 million.\n3. The port is deep.\n4. It is\nold."
    texts = [
        FLUENCY.format(kind="report").format(text=said),
        RECALL.format(kind="report").format(keypoints=points, summary=said),
        PRECISION.format(kind="report").format(expert_summary=GOLD, summary=said),
    ]
    for request, text in zip(server.requests, texts, strict=False):
        request.pop("path")
        messages = [{"role": "user", "content": text}]
        assert request == {"messages": messages, "model": "m", "max_completion_tokens": 4096, "temperature": 0.1}
    heads = [text_of(request).split(" ")[:3] for request in server.requests[3:]]
    assert heads == [["Reads", "lawsuit", "well?"], ["Points", "of", "a"], ["Sentences", "of", "a"]]
    recall, precision = 2 / 4, 3 / 4
    assert found.score == pytest.approx(2 * recall * precision / (recall + precision)) == 0.6
    assert found.details == {
        **{"fluency": 1.0, "recall": 0.5, "precision": 0.75, "f1": pytest.approx(0.6), "flu_f1": pytest.approx(0.6)},
        **{"claims": 4, "claims_found": 2.0, "sentences": 4.0, "sentences_supported": 3.0},
        **{"supported_key_points": [1, 2], "recall_reason": GOOD["recall"], "precision_reason": GOOD["precision"]},
    }


def test_a_score_says_whose_prompts_and_claims_and_which_judge_it_has(data: Path, checkout: Path) -> None:
    with metric(replies(GOOD), data, checkout) as (fluency, _):
        assert re.fullmatch(rf"{CODE}, prompts eval_gpt4_summ\.py sha256:\w{{16}}", fluency.follows)
        judge, files = fluency.choices
        assert judge == "judge m"
        digests = r"claims of gov_claims\.jsonl sha256:\w{16}, lexsum_claims\.jsonl sha256:\w{16}"
        assert re.fullmatch(digests, files)
        note = "the public code asks gpt-4o-2024-11-20, this run m; scores of other judges may differ"
        assert fluency.notes == (note,)
    with metric(replies(GOOD), data / "none") as (fluency, _):
        assert (fluency.profile, fluency.follows, fluency.notes) == ("ours", CODE, ())
        assert fluency.choices == ("own wording", "judge m", "claims by the judge")


def test_official_asks_the_public_codes_judge_where_none_is_named_and_needs_its_prompts(
    data: Path, checkout: Path
) -> None:
    with metric(replies(GOOD), data, checkout, models=()) as (fluency, server):
        assert fluency.score(report()).score == pytest.approx(0.6)
        assert {request["model"] for request in server.requests} == {"gpt-4o-2024-11-20"}
        assert fluency.notes == ()
    with pytest.raises(JudgeError, match="--judge-model: expected the name of a model"):
        FluencyF1(Settings(judge=replace(NOWHERE, models=())))
    with pytest.raises(JudgeError) as raised:
        FluencyF1(Settings(judge=NOWHERE, data=data, profile="official"))
    facts = ("--profile official: judge-fluency-f1", "--judge-prompts", "scripts/eval_gpt4_summ.py", "`ours`")
    assert [fact for fact in facts if fact not in str(raised.value)] == []


def test_ours_has_the_same_structure_in_words_of_its_own(data: Path, checkout: Path) -> None:
    with metric(replies(GOOD), data, checkout, "ours") as (fluency, server):
        assert fluency.profile == "ours"
        assert fluency.score(report()).score == pytest.approx(0.6)
        assert questions(server) == ["fluency", "recall", "precision"]
        for request in server.requests:
            assert [message["role"] for message in request["messages"]] == ["user"]
            assert (request["temperature"], request["max_completion_tokens"]) == (0.1, 4096)
            assert "response_format" not in request
            assert re.search(r"\n<(text|summary)-(\w{12})>\nIn 1999 it was \{dredged\}\.\n</\1-\2>\n", text_of(request))
    _, recall, precision = map(text_of, server.requests)
    assert re.search(r"<key-points-\w{12}>\n1\. The port .*\n4\. It is old\.\n</key-", recall, re.S)
    assert re.search(r"<expert-\w{12}>\nThe port was .* cost \{3\} million\.\n</expert-", precision)


@pytest.mark.parametrize(
    ("words", "official", "ours"),
    [
        ({"fluency": '{"fluency": 0}'}, 0.0, 0.0),
        ({"precision": '{"precision": 0, "sentence_count": 0}'}, 0.0, 0.0),
        ({"precision": '{"precision": 3, "sentence_count": 2}'}, 2 * 0.5 * 1.5 / 2.0, None),
        ({"recall": '{"recall": 8}', "precision": '{"precision": 4, "sentence_count": 4}'}, 1.0, None),
        ({"fluency": '{"fluency": 0.5}'}, 0.3, None),
        ({"recall": '{"recall": "2"}'}, None, None),
        ({"recall": "Two of four."}, None, None),
        ({"fluency": '```json\n{"fluency": 1, "why": {}}\n```'}, 0.6, 0.6),
    ],
)
def test_each_profile_takes_the_replies_that_it_takes(
    words: dict[str, str], official: float | None, ours: float | None, data: Path, checkout: Path
) -> None:
    for prompts, expected in ((checkout, official), (None, ours)):
        with metric(replies(GOOD | words), data, prompts) as (fluency, _):
            found = fluency.score(report())
        assert found.score == (None if expected is None else pytest.approx(expected))
        assert bool(found.failure) == (expected is None)


def test_official_shares_are_not_capped_while_the_line_keeps_to_its_scale(data: Path, checkout: Path) -> None:
    words = {"recall": '{"recall": 8}', "precision": '{"precision": 6, "sentence_count": 4}'}
    with metric(replies(GOOD | words), data, checkout) as (fluency, _):
        found = fluency.score(report())
        f1 = 2 * 2.0 * 1.5 / 3.5
        assert (found.score, found.details["recall"], found.details["precision"]) == (1.0, 2.0, 1.5)
        assert found.details["flu_f1"] == pytest.approx(f1)
        assert fluency.totals([found])["flu-f1"] == pytest.approx(f1)


def test_a_call_is_tried_ten_times_and_one_without_json_is_not_made_again_under_official(
    data: Path, checkout: Path
) -> None:
    ten = "m: no usable answer in 10 attempts, the last: "
    for words, prompts, times, failure in (
        ("Two of four.", checkout, 1, "m: no JSON object in 'Two of four.'"),
        ('{"recall": "2"}', checkout, 10, f"{ten}recall is no number"),
        ("Two of four.", None, 10, f"{ten}no JSON object"),
    ):
        with metric(replies(GOOD | {"recall": words}), data, prompts) as (fluency, server):
            assert fluency.score(report()).failure.startswith(failure)
            assert questions(server).count("recall") == times


def test_a_second_attempt_of_official_is_the_same_request_and_that_of_ours_says_what_was_wrong(
    data: Path, checkout: Path
) -> None:
    for prompts in (checkout, None):
        left = [Said("{x}"), Said(status=500)]

        def script(request: Request, left: list[Said] = left) -> Said:
            return left.pop(0) if left else Said(GOOD[question_of(request)])

        with metric(script, data, prompts) as (fluency, server):
            assert fluency.score(report()).score == pytest.approx(0.6)
        first, second, third = (text_of(request) for request in server.requests[:3])
        note = second.removeprefix(first).strip()
        assert second == third
        assert note.startswith("" if prompts else "Your last answer could not be used: the last braces hold no JSON")
        assert bool(note) == (prompts is None)


def test_official_reads_what_was_cut_off_and_ours_asks_again(data: Path, checkout: Path) -> None:
    def script(request: Request) -> Said:
        is_recall = question_of(request) == "recall"
        return Said(GOOD[question_of(request)], finish_reason="length" if is_recall else "stop")

    with metric(script, data, checkout) as (fluency, _):
        assert fluency.score(report()).score == pytest.approx(0.6)
    with metric(script, data) as (fluency, _):
        assert "cut off at its bound of tokens" in fluency.score(report()).failure


def test_rows_without_a_usable_reply_are_left_out_of_the_means_and_absent_ones_count_as_0(
    data: Path, checkout: Path
) -> None:
    def script(request: Request) -> Said:
        is_broken = "broken" in text_of(request) and question_of(request) == "precision"
        is_dull = "dull" in text_of(request) and question_of(request) == "fluency"
        return Said("hm" if is_broken else '{"fluency": 0}' if is_dull else GOOD[question_of(request)])

    with metric(script, data, checkout) as (fluency, _):
        scored = [fluency.score(report(f"It was {word}.")) for word in ("dredged", "broken", "dull")]
        absent = Score(0.0, fluency.absent(report("")))
        assert [each.score for each in scored] == [pytest.approx(0.6), None, 0.0]
        means = fluency.totals([each for each in scored if each.score is not None])
        assert means == pytest.approx({"recall": 0.5, "precision": 0.75, "fluency": 0.5, "f1": 0.6, "flu-f1": 0.3})
        assert fluency.totals([scored[0], absent])["recall"] == 0.25
        assert fluency.totals([Score(None)]) == {}


def test_an_empty_prediction_scores_0_without_asking(data: Path, checkout: Path) -> None:
    for prompts in (checkout, None):
        with metric(replies(GOOD), data, prompts) as (fluency, server):
            for prediction in ("", " \n", "Summary:", " Summary: \n"):
                found = fluency.score(report(prediction))
                assert (found.score, found.details["is_empty"], found.details["recall"]) == (0.0, True, 0.0)
            assert not server.requests


def test_claims_join_by_id_or_by_the_id_of_the_source_and_official_asks_no_judge_for_them(
    data: Path, checkout: Path
) -> None:
    with metric(replies(GOOD), data, checkout) as (fluency, server):
        failure = fluency.score(report(id="GAO-18-107")).failure
        facts = ("summ/gov_claims.jsonl", "'gov_report_gao-18-107', not 'GAO-18-107'", "`mmlongbench claims`")
        assert [fact for fact in facts if fact not in failure] == []
        assert questions(server) == ["fluency", "precision"]
    with metric(replies(GOOD), data / "none", checkout) as (fluency, _):
        assert fluency.score(report()).failure.startswith("no claims: summ/gov_claims.jsonl is not there")
    claim(data, "GAO-18-107", CLAIMS)
    for prompts in (checkout, None):
        with metric(replies(GOOD), data, prompts) as (fluency, server):
            found = fluency.score(replace(report(), source_id="GAO-18-107"))
            assert found.details["claims"] == len(CLAIMS)
            assert questions(server) == ["fluency", "recall", "precision"]
    claim(data, "gov_report_gao-18-107", [])  # without claims, recall is 0, as in the public code
    with metric(replies(GOOD), data, checkout) as (fluency, _):
        found = fluency.score(report())
        assert (found.score, found.details["recall"], found.details["claims"]) == (0.0, 0.0, 0)


def test_one_failed_call_fails_a_summary_and_the_others_are_kept(data: Path, checkout: Path, tmp_path: Path) -> None:
    for prompts in (checkout, None):
        cache = tmp_path / f"{prompts is None}.sqlite"
        with metric(replies(GOOD | {"fluency": "hm"}), data, prompts, cache=cache) as (fluency, _):
            assert fluency.score(report()).score is None
        with metric(replies(GOOD), data, prompts, cache=cache) as (fluency, server):
            before = fluency.score(report())
            assert before.score == pytest.approx(0.6)
            assert questions(server) == ["fluency"]
            assert fluency.score(report()) == before
            assert len(server.requests) == 1


def test_a_long_summary_and_many_claims_of_the_judge_are_shown_whole_in_one_prompt_each() -> None:
    prediction = " ".join(f"Dug in {year}." for year in range(10_000))
    claims = [f"It was dug in {year}" + " so" * 100 for year in range(500)]
    words = {**GOOD, "recall": '{"recall": 500}', "precision": '{"precision": 7, "sentence_count": 7}'}

    def script(request: Request) -> Said:
        asked = question_of(request)
        return good(claims=claims) if asked == "Claims" else Said(words[asked])

    with metric(script, None) as (fluency, server):
        assert fluency.score(report(prediction)).score == 1.0
    assert Counter(questions(server)) == Counter(("Claims", *GOOD))
    assert all(prediction in text_of(request) for request in server.requests if question_of(request) != "Claims")
    assert any(f"\n500. {claims[-1]}\n</key-points-" in text_of(request) for request in server.requests)


@pytest.mark.parametrize(
    ("prediction", "gold", "said"),
    [
        ("so " * 70_000, "so " * 70_000, "2 summaries, 419,999 characters"),
    ],
)
def test_a_summary_that_no_judge_can_be_shown_is_a_failure_and_nothing_is_asked(
    prediction: str, gold: str, said: str
) -> None:
    with metric(replies(GOOD), None) as (fluency, server):
        found = fluency.score(replace(report(prediction), answer=gold))
        assert (found.score, found.failure) == (None, f"too long to be judged: {said}")
        assert not server.requests


def test_claims_that_no_judge_can_be_shown_are_a_failure(data: Path) -> None:
    claim(data, "gov_report_gao-18-107", ["x" * 110_000] * 2)
    with metric(replies(GOOD), data) as (fluency, server):
        assert fluency.score(report()).failure == "too long to be judged: 2 claims, 220,000 characters"
        assert set(questions(server)) == {"fluency", "precision"}
