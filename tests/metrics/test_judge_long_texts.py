"""A long text is shown to a judge completely, or the example has no score; only uncounted texts are shortened."""

from contextlib import closing
from pathlib import Path

import pytest
from asked import document_question
from model_server import QUICK, ModelServer, Request, Said, good, question_of, serving, text_of

from mmlongbench.metrics.judge import Answers, FluencyF1
from mmlongbench.metrics.judge.judged import MAX_CHARACTERS
from mmlongbench.task.formats import to_json
from mmlongbench.task.metric import Judge, Score, ScoringInput, Settings

GOLD = "It was dredged."


def settings(server: ModelServer, data: Path | None = None) -> Settings:
    return Settings(judge=Judge(server.url, ("m",), timeout=30.0), data=data)


def scored(
    prediction: str, claims: list[str], gold: str = GOLD, data: Path | None = None
) -> tuple[Score, dict[str, str]]:
    """A summary's score, and the prompts by what they ask."""

    def script(request: Request) -> Said:
        if question_of(request) == "Claims":
            return good(claims=claims)
        words = {"fluency": '{"fluency": 1}', "recall": f'{{"recall": {len(claims)}}}'}
        return Said(words.get(question_of(request), '{"precision": 7, "sentence_count": 7}'))

    with serving(script) as server, closing(FluencyF1(settings(server, data), QUICK)) as metric:
        found = metric.score(ScoringInput("summ/gov_K8.jsonl", "gov", "s", gold, prediction))
        return found, {question_of(request): text_of(request) for request in server.requests}


def test_a_long_summary_and_many_claims_are_shown_whole_in_one_prompt_each() -> None:
    prediction = " ".join(f"Dug in {year}." for year in range(10_000))
    claims = [f"It was dug in {year}" + " so" * 100 for year in range(500)]
    found, prompts = scored(prediction, claims)
    assert found.score == 1.0
    assert all(prediction in prompts[name] for name in ("fluency", "recall", "precision"))
    assert f"\n500. {claims[-1]}\n</key-points-" in prompts["recall"]


@pytest.mark.parametrize(
    ("prediction", "gold", "said"),
    [
        ("so " * 70_000, GOLD, "1 summary, 209,999 characters"),
        ("It was so.", "so " * 70_000, "1 summary, 210,000 characters"),
        ("so " * 70_000, "so " * 70_000, "2 summaries, 419,999 characters"),
    ],
    ids=["the prediction", "the gold summary", "both"],
)
def test_a_summary_that_no_judge_can_be_shown_is_a_failure_and_nothing_is_asked(
    prediction: str, gold: str, said: str
) -> None:
    found, prompts = scored(prediction, ["x"], gold)
    assert (found.score, found.failure, prompts) == (None, f"too long to be judged: {said}", {})


def test_claims_that_no_judge_can_be_shown_are_a_failure(tmp_path: Path) -> None:
    (tmp_path / "summ").mkdir()
    (tmp_path / "summ" / "gov_claims.jsonl").write_bytes(to_json({"id": "s", "claims": ["x" * 110_000] * 2}))
    found, prompts = scored("It was so.", [], data=tmp_path)
    assert found.failure == "too long to be judged: 2 claims, 220,000 characters"
    assert set(prompts) == {"fluency", "precision"}


def test_a_gold_list_that_no_judge_can_be_shown_is_a_failure() -> None:
    record = {"id": "q", "question": "Which?", "answer_format": "List"}
    with serving(lambda _: Said("")) as server, closing(Answers(settings(server), QUICK)) as metric:
        found = metric.score(document_question(record, ["x" * 30_000] * 2, "red"))
        assert (found.score, found.failure) == (None, "too long to be judged: 2 items, 60,000 characters")
        assert not server.requests


def test_a_long_response_to_a_question_is_shown_by_its_beginning_and_end() -> None:
    record = {"id": "q", "question": "Which?", "answer_format": "String"}
    with serving(lambda _: Said('{"answer_score": 1}')) as server, closing(Answers(settings(server), QUICK)) as metric:
        said = f"first {'x' * MAX_CHARACTERS} last"
        assert metric.score(document_question(record, "red", said)).score == 1.0
        (request,) = server.requests
    assert "first xxx" in text_of(request)
    assert "characters are left out here]" in text_of(request)
    assert "xxx last\n</response-" in text_of(request)
    assert len(text_of(request)) < 50_000
