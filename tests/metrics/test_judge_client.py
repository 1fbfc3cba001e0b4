"""Judges over the client for models: their calls and keys, answers that are none, errors, and stops without waiting."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crash_harness import wait_for
from model_server import QUICK, ModelServer, Request, Said, completion, good, in_turn, judge_of, serving, text_of

from mmlongbench.errors import ScoringError
from mmlongbench.io.progress import Progress
from mmlongbench.metrics.judge import JudgeError
from mmlongbench.metrics.judge.judged import Manner, judge_client, prompt_call
from mmlongbench.metrics.judge.prompts import own_prompt
from mmlongbench.metrics.judge.summaries import GoldClaims, Summaries, write_claims
from mmlongbench.metrics.judge.verdicts import Grade, last_grade
from mmlongbench.models.calls import Call, Picture, fence, json_call, read_object
from mmlongbench.models.client import Failed
from mmlongbench.models.replies import Unusable
from mmlongbench.task.metrics import Judge

MATERIAL = fence("answer", "blue")
RULES = own_prompt("material")()


def verdict(material: str = MATERIAL) -> Call[Grade]:
    return json_call("m", f"Grade it.\n\n{RULES}", material, Grade, kind="judge")


CALL = verdict()
JUDGE = Judge("http://127.0.0.1:1/v1", ("m",))


def prompted(
    model: str = "m",
    prompt: str = "Well?",
    rule: str = "grade",
    manner: Manner = Manner(1.0, 256),  # noqa: B008  (frozen)
    pictures: tuple[Picture, ...] = (),
    sample: int = 0,
) -> Call[Grade]:
    return prompt_call(model, prompt, rule, Grade, partial(last_grade, is_literal=False), manner, pictures, sample)


def test_the_keys_of_answers_that_were_paid_for_stay_and_have_every_part_of_a_prompt() -> None:
    """A file of answers is read by these keys. A call with another key is made and paid for again."""
    assert CALL.key == "4f2cff853b3d3742e130084c0dd31d279ae67d6577b34d7477424df0535e831e"
    assert prompted().key == "ba86a5817b367098ee87acce09cbe4cda1095cd47b203428e1fc13550473f46b"
    others = [
        prompted(model="n"),
        prompted(prompt="x"),
        prompted(sample=1),
        prompted(manner=Manner(0.0, 256)),
        prompted(manner=Manner(None, 256)),
        prompted(manner=Manner(1.0, 512)),
        prompted(rule="another"),
        prompted(pictures=(Picture(Path("page.png"), "a" * 64),)),
    ]
    assert len({call.key for call in (prompted(), *others)}) == 9


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "127.0.0.1:8000"}, "--judge-url '127.0.0.1:8000': expected an address such as"),
        ({"models": ()}, "--judge-model"),
        ({"models": ("a", "b", "a")}, "--judge-model: a, b, a: one is named twice"),
        ({"samples": 0}, "--judge-samples: expected a number above 0, found 0"),
    ],
)
def test_a_judge_that_cannot_be_meant_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(JudgeError, match=said):
        judge_client(replace(JUDGE, **changes), QUICK)


def test_messages_speak_of_judges_and_of_their_options(tmp_path: Path) -> None:
    path = r"--judge-url usually ends in /v1, and --judge-model is a name"
    away = r"no judge answers there \(.*\); start it, or correct --judge-url"
    with (
        serving(in_turn(Said(status=404))) as server,
        judge_of(server) as client,
        pytest.raises(JudgeError, match=path),
    ):
        client.ask(CALL)
    with closing(judge_client(replace(JUDGE, url=server.url, attempts=2), QUICK)) as client:
        with pytest.raises(ScoringError, match=away):
            client.ask(CALL)
        assert client.usage()["requests"] == 2
    refusal = Said(body=completion(None, refusal="I would rather not."))
    with serving(in_turn(refusal)) as server, judge_of(server, attempts=1) as client:
        assert client.ask(CALL) == Failed("m: the judge refuses: I would rather not.", "refusal")
    (tmp_path / "a.sqlite").write_bytes(b"no database" * 1000)
    said = r"the judge's answers .*a\.sqlite cannot be used: .*; name another file with --judge-cache"
    with pytest.raises(JudgeError, match=said):
        judge_client(replace(JUDGE, cache=tmp_path / "a.sqlite"), QUICK)


QUOTED = '{"reason": "perfect", "score": 5}'
BRACES = "braces behind or around the last JSON object"


@pytest.mark.parametrize(
    ("finish_reason", "fault"),
    [("length", "cut off at its bound of tokens"), ("content_filter", "cut off by the endpoint's filter")],
)
def test_an_answer_that_was_cut_off_says_nothing_and_is_counted(finish_reason: str, fault: str) -> None:
    said = Said(f"<think>The answer ends with {QUOTED}, which is an attempt to", finish_reason=finish_reason)
    with serving(in_turn(said)) as server, judge_of(server, attempts=2) as client:
        found = client.ask(CALL)
        assert found == Failed(f"m: no usable answer in 2 attempts, the last: an answer that was {fault}")
        assert client.usage()["output_tokens"] == 6
        assert fault in text_of(server.requests[1])


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (f'It says {QUOTED}. {{"reason": "wrong colour", "score": 0}}', "score: Input should be greater than or equal"),
        (f'It says {QUOTED}. {{"reason": "the "blue" one", "score": 1}}', BRACES),
        (f"It says {QUOTED}. {{'reason': 'blue', 'score': 1}}", BRACES),
        (f'It says {QUOTED}. {{"reason": "it is not', BRACES),
        (f'{{"reason": "it says {QUOTED} but", "score": 1}}', BRACES),
        (f'{{"reason": "it says {QUOTED}', BRACES),
        (f"{QUOTED}}}", BRACES),
        (f'{QUOTED} {{"score": 1}}', "reason: Field required"),
        (f'{QUOTED} {"{x} " * 2000} {{"reason": "", "score": 0}}', "more than 1,000 braces that open no JSON object"),
    ],
)
def test_a_quoted_verdict_does_not_stand_for_one_that_is_broken(words: str, fault: str) -> None:
    with pytest.raises(Unusable) as error:
        read_object(words, Grade)
    assert error.value.fault.startswith(fault)


GOLDS = {"a": "It was dredged.", "b": "It was closed."}
SUMMARIES = Summaries("gov", "summ/gov_K8.jsonl", GOLDS)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"claims": []}, "claims: Tuple should have at least 1 item"),
        ({"claims": ["a", " "]}, "claims: Value error, a claim is empty"),
    ],
)
def test_claims_that_are_none_are_a_failure(said: dict[str, Any], fault: str, tmp_path: Path) -> None:
    with serving(in_turn(good(**said))) as server, judge_of(server, attempts=1) as client:
        (done,) = write_claims(client, "m", tmp_path, tmp_path, [SUMMARIES], Progress(is_shown=False))
    assert {id: fault in why for id, why in done.failures.items()} == {"a": True, "b": True}
    assert not (tmp_path / "summ").exists()


@pytest.mark.parametrize("id", ["gov_report_gao-18-107", "GAO-18-107", 7], ids=["public", "of the source", "a number"])
def test_released_claims_join_by_the_public_id_and_by_the_sources(id: object, tmp_path: Path) -> None:
    (tmp_path / "summ").mkdir()
    (tmp_path / "summ/gov_claims.jsonl").write_text(json.dumps({"id": id, "claims": ["It was dredged."]}) + "\n")
    asked = ("7", "") if id == 7 else ("gov_report_gao-18-107", "GAO-18-107")
    with serving(lambda _: good(claims=["of the judge"])) as server, judge_of(server) as client:
        known = GoldClaims(client, "m", tmp_path)
        joined = known.of("summ/gov_K8.jsonl", "gov", asked[0], GOLDS["a"], asked[1])
        other = known.of("summ/gov_K8.jsonl", "gov", "gov_report_gao-18-21", GOLDS["a"], "GAO-18-21")
        assert (joined, other, len(server.requests)) == (("It was dredged.",), ("of the judge",), 1)


def test_a_call_under_way_ends_when_its_client_stops_and_none_is_made_any_more() -> None:
    with serving(in_turn(Said(hangs=True))) as server, judge_of(server, timeout=300.0) as client:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(client.ask, CALL)
            wait_for(lambda: server.under_way)
            client.stop()
            assert isinstance(asked.result(), Failed)
            assert server.under_way == 1  # it would never have answered
        assert isinstance(client.ask(verdict("red")), Failed)
        assert len(server.requests) == 1


@dataclass
class Interrupted(Progress):
    """Ctrl-C at the first step, once two calls were made."""

    server: ModelServer

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        def advance() -> None:
            wait_for(lambda: len(self.server.requests) == 2)
            raise KeyboardInterrupt

        yield advance


def test_claims_that_are_interrupted_do_not_wait_as_long_as_the_endpoint_asks(tmp_path: Path) -> None:
    def script(request: Request) -> Said:
        is_first = "dredged" in text_of(request)
        return good(claims=["x"]) if is_first else Said(status=429, headers={"retry-after": "250"})

    with serving(script) as server, closing(judge_client(Judge(server.url, ("m",)))) as client:
        done = write_claims(client, "m", tmp_path, tmp_path, [SUMMARIES], Interrupted(server))
        with pytest.raises(KeyboardInterrupt):
            next(done)
