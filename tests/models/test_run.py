"""Runs over real HTTP: what is sent and written, what is repeated, what receipts find, and the word of each fault."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from counting_server import RULE, counting, is_probe, parts_of, sizes_in, text_in, tokens_of
from model_server import Request, Said, Script, serving
from runs import NUMBER, OPTIONS, TINY, asked, lines

import mmlongbench as mm

NO_RULE = mm.RunOptions("m", count_as="none")
ONE_K = replace(TINY, lengths=("1K",))
ASKED = "Which two colours"
"""The question of one example."""


def always(said: Said) -> Script:
    return lambda request: said


def test_a_run_sends_every_prompt_in_order_and_writes_what_score_reads(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "predictions" / "m.jsonl"
    result, requests, _ = asked(finished, out, counting("Answer: hard"))
    examples = list(mm.open_release(finished).examples("mmlongdoc", "2K"))
    assert (result.examples, result.answers, result.failures) == (NUMBER, NUMBER, ())
    assert sorted(json.dumps(each["messages"]) for each in requests) == sorted(
        json.dumps(example.messages("data-uri")) for example in examples
    )
    for example, line in zip(examples, lines(out), strict=True):
        assert {key: line[key] for key in example.key} == example.key
        assert (line["prediction"], line["digest"]) == ("Answer: hard", example.digest)
        assert (line["lock"], line["model"]) == (mm.open_release(finished).lock_id, "m")
        assert abs(line["usage"]["prompt_tokens"] - line["expected_tokens"]) <= 2
        assert "receipt" not in line
    scores = mm.score(finished, out, partial=True)
    assert [(cell.examples, cell.absent) for cell in scores.cells] == [(NUMBER, 0)]
    assert scores.cells[0].score is not None
    assert scores.cells[0].score > 0


def test_a_second_run_repeats_no_call_and_writes_the_same_bytes_even_without_the_server(
    finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.jsonl"
    asked(finished, out, counting())
    before = out.read_bytes()
    out.unlink()
    result, requests, _ = asked(finished, out, counting("something else"))
    assert (requests, out.read_bytes()) == ([], before)
    assert (result.usage["calls"], result.usage["failed_calls"]) == (0, 0)
    out.unlink()
    nowhere = mm.EndpointSettings("http://127.0.0.1:1/v1", out.with_suffix(".sqlite"), timeout=5.0, attempts=1)
    mm.run(finished, nowhere, OPTIONS, out=out, lengths="2K")
    assert out.read_bytes() == before


def test_predictions_of_another_model_or_form_are_not_overwritten(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.jsonl"
    for line, said in (
        (
            {"file": "f", "id": "1", "prediction": "x", "model": "other"},
            "line 1: was made with model 'other', this run",
        ),
        (
            {"file": "f", "id": "1", "prediction": "x", "model": "m", "settings": {"temperature": 0.7}},
            "line 1: was made with settings {'temperature': 0.7}, this run has none; use another --out",
        ),
        ({"file": "f", "id": "1", "prediction": "x", "model": "m", "lock": "abc"}, "was made with release 'abc', this"),
        ({"file": "f", "prediction": "x"}, "line 1: id: Field required; use another --out"),
    ):
        out.write_text(json.dumps(line) + "\n", "utf-8")
        with pytest.raises(mm.ReleaseError, match=said):
            asked(finished, out, counting())
        assert lines(out) == [line]


def is_it(request: Request) -> bool:
    """Whether this is the one example that a fault befalls."""
    return ASKED in text_in(request) and not is_probe(request)


def lost(request: Request, tokens: int) -> int:
    """One image of one example is lost."""
    return tokens_of(request, sizes_in(request)[1:]) if is_it(request) else tokens


def shrunk(request: Request, tokens: int) -> int:
    """The images of one example are halved."""
    smaller = [(width // 2, height // 2) for width, height in sizes_in(request)]
    return tokens_of(request, smaller) if is_it(request) else tokens


def cut(request: Request, tokens: int) -> int:
    """Every prompt ends at a bound."""
    return min(tokens, 1_000)


def more(request: Request, tokens: int) -> int:
    return tokens + 500 if is_it(request) else tokens


@pytest.mark.parametrize(
    ("fault", "name", "number"),
    [(lost, "image-lost", 1), (shrunk, "image-shrunk", 1), (cut, "prompt-cut", None), (more, "more-tokens", 1)],
)
def test_a_receipt_names_what_happened(
    finished: Path, tmp_path: Path, fault: Any, name: str, number: int | None
) -> None:
    result, _, _ = asked(finished, tmp_path / "m.jsonl", counting(fault=fault))
    (receipts,) = result.receipts
    assert {each.fault for each in receipts.off} == {name}
    marked = [line["id"] for line in lines(tmp_path / "m.jsonl") if line.get("receipt") == name]
    assert len(marked) == len(receipts.off)
    if number:
        assert len(marked) == number
        assert receipts.off[0].name.endswith(f"2.jsonl, {marked[0]}")


def test_a_server_that_shrinks_all_images_is_found_by_the_probes(finished: Path, tmp_path: Path) -> None:
    def small(request: Request, tokens: int) -> int:
        return tokens_of(request, [(width // 4, height // 4) for width, height in sizes_in(request)])

    result, _, _ = asked(finished, tmp_path / "m.jsonl", counting(fault=small))
    assert any("tokens for an image of 400 × 400 pixels, the rule of qwen2.5-vl 198" in note for note in result.notes)
    assert {each.fault for each in result.receipts[0].off} == {"image-shrunk"}


def test_a_server_without_usage_gives_no_receipts_and_that_is_said_once(finished: Path, tmp_path: Path) -> None:
    result, _, _ = asked(finished, tmp_path / "m.jsonl", lambda request: Said("x", prompt_tokens=None))
    assert (result.receipts, result.answers) == ((), NUMBER)
    assert result.notes == ("the endpoint does not say how many tokens a prompt has: there are no receipts",)


def test_examples_over_the_window_are_named_first_and_skipped_only_on_request(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.jsonl"
    result, requests, prepared = asked(finished, out, counting(), window=1_500)
    assert prepared.window == 1_500
    assert result.oversized
    assert len(requests) == NUMBER
    reasons = {(each.reason, each.most) for each in result.oversized}
    assert reasons == {("context-length", 1_500)}
    skipping = replace(OPTIONS, skip_oversized=True)
    result, requests, _ = asked(finished, tmp_path / "other.jsonl", counting(), skipping, window=1_500)
    assert result.skipped == {"context-length": len(result.oversized)}
    assert len(requests) == NUMBER - len(result.oversized)
    scores = mm.score(finished, tmp_path / "other.jsonl", partial=True)
    assert scores.skipped == result.skipped
    few, _, _ = asked(finished, tmp_path / "few.jsonl", counting(), replace(OPTIONS, max_images=3))
    assert {(each.reason, each.most) for each in few.oversized} == {("image-limit", 3)}


def test_a_refused_example_is_an_error_and_never_an_answer(finished: Path, tmp_path: Path) -> None:
    message = json.dumps({"error": {"message": "This model's maximum context length is 900 tokens."}}).encode()

    def script(request: Request) -> Said:
        return Said(status=400, body=message) if is_it(request) else counting()(request)

    result, requests, _ = asked(finished, tmp_path / "m.jsonl", script)
    (failure,) = result.failures
    assert (failure.kind, failure.count) == ("context-length", 1)
    assert "mmlongdoc_2: m: HTTP 400" in failure.first
    assert "--skip-oversized" in failure.advice
    assert len(requests) == NUMBER
    assert all("maximum context" not in line["prediction"] for line in lines(tmp_path / "m.jsonl"))
    skipping = replace(OPTIONS, skip_oversized=True)
    result, _, _ = asked(finished, tmp_path / "other.jsonl", script, skipping)
    assert (result.failures, result.skipped) == ((), {"context-length": 1})


def test_what_the_server_returns_apart_is_kept_apart_and_a_refusal_is_an_answer(finished: Path, tmp_path: Path) -> None:
    said = Said("<think>no</think> Answer: hard", finish_reason="length", message={"reasoning_content": "hm"})
    asked(finished, tmp_path / "m.jsonl", always(said), NO_RULE)
    line = lines(tmp_path / "m.jsonl")[0]
    assert (line["prediction"], line["reasoning"]) == ("<think>no</think> Answer: hard", "hm")
    assert line["finish_reason"] == "length"
    body = {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "I will not."}}]}
    result, _, _ = asked(finished, tmp_path / "n.jsonl", always(Said(body=json.dumps(body).encode())), NO_RULE)
    assert (result.answers, result.failures) == (NUMBER, ())
    assert {line["prediction"] for line in lines(tmp_path / "n.jsonl")} == {"I will not."}


def test_cached_tokens_that_a_server_leaves_out_are_added_and_hide_no_image(finished: Path, tmp_path: Path) -> None:
    def cached(request: Request) -> Said:
        tokens = tokens_of(request)
        kept = 0 if is_probe(request) else tokens // 3
        usage = {"prompt_tokens": tokens - kept, "prompt_tokens_details": {"cached_tokens": kept}}
        body = {"choices": [{"message": {"content": "hard"}, "finish_reason": "stop"}], "usage": usage}
        return Said(body=json.dumps(body).encode())

    result, _, _ = asked(finished, tmp_path / "m.jsonl", cached)
    assert [each.off for each in result.receipts] == [()]
    result, _, _ = asked(finished, tmp_path / "n.jsonl", counting(fault=lost))
    assert result.receipts[0].off


def test_answers_without_text_are_said_and_reasoning_that_never_ended_is_no_answer(
    finished: Path, tmp_path: Path
) -> None:
    apart = {"content": None, "reasoning_content": "It is hard."}
    copied = {"content": "It is hard.", "reasoning_content": "It is hard."}
    for name, message, reason in (("m", apart, "stop"), ("n", copied, "length")):
        body = {"choices": [{"message": message, "finish_reason": reason}]}
        out = tmp_path / f"{name}.jsonl"
        result, _, _ = asked(finished, out, always(Said(body=json.dumps(body).encode())), NO_RULE)
        assert {line["prediction"] for line in lines(out)} == {""}
        said = " ".join(result.notes)
        assert f"{NUMBER} answers are empty" in said
        assert f"{reason} {NUMBER}" in said
        assert f"{NUMBER} of them have text in `reasoning`" in said


def test_several_samples_have_their_own_seeds_and_lines(finished: Path, tmp_path: Path) -> None:
    options = replace(OPTIONS, samples=3, temperature=0.7)
    result, requests, _ = asked(finished, tmp_path / "m.jsonl", counting(), options)
    assert sorted(request["seed"] for request in requests) == sorted([0, 1, 2] * NUMBER)
    assert [line["sample"] for line in lines(tmp_path / "m.jsonl")] == [0, 1, 2] * NUMBER
    assert result.answers == 3 * NUMBER


def test_a_context_is_sent_and_named_while_the_digest_stays(finished: Path, tmp_path: Path) -> None:
    result, requests, _ = asked(finished, tmp_path / "m.jsonl", counting(), replace(OPTIONS, context="none"))
    assert result.answers == NUMBER
    assert all(sizes_in(request) == [] for request in requests)
    examples = list(mm.open_release(finished).examples("mmlongdoc", "2K"))
    found = lines(tmp_path / "m.jsonl")
    assert [line["digest"] for line in found] == [example.digest for example in examples]
    assert {line["context"] for line in found} == {"none"}


def test_an_image_that_is_too_large_is_sent_smaller_and_counted_as_sent(finished: Path, tmp_path: Path) -> None:
    options = replace(OPTIONS, max_pixels=200 * 200)
    result, requests, _ = asked(finished, tmp_path / "m.jsonl", counting(), options)
    assert {size for request in requests for size in sizes_in(request)} == {(200, 200)}
    assert result.shrunk > 0
    assert result.receipts[0].off == ()


def test_the_limit_of_an_answer_goes_by_another_name_if_the_endpoint_says_so_and_is_never_left_out(
    finished: Path, tmp_path: Path
) -> None:
    refusal = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}

    def renaming(request: Request) -> Said:
        return Said(status=400, body=json.dumps(refusal).encode()) if "max_tokens" in request else Said("x")

    _, requests, _ = asked(finished, tmp_path / "a.jsonl", renaming, NO_RULE, concurrency=1)
    assert [request.get("max_completion_tokens") for request in requests] == [None, *[64] * NUMBER]

    def refusing(request: Request) -> Said:
        words = "Use 'max_completion_tokens' instead." if "max_tokens" in request else "something else is wrong"
        return Said(status=400, body=json.dumps({"error": {"message": words}}).encode())

    result, requests, _ = asked(finished, tmp_path / "b.jsonl", refusing, NO_RULE, attempts=1, concurrency=1)
    assert result.failures[0].count == NUMBER
    assert all("max_tokens" in request or "max_completion_tokens" in request for request in requests)
    assert len(requests) == 2 * NUMBER


def test_a_redirect_is_not_followed_so_the_key_stays_where_it_was_given(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with serving(counting()) as other:
        away = f"{other.url.replace('127.0.0.1', 'user:pass@localhost')}/chat/completions?token=1"
        said = Said(status=307, headers={"location": away}, body=b"{}")
        with pytest.raises(mm.EndpointError, match="redirects to http://…@localhost") as error:
            asked(finished, tmp_path / "m.jsonl", lambda request: said)
        assert other.requests == []
    assert "pass" not in str(error.value)
    assert b"sk-secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "url", "said"),
    [
        ({"images": "file-url"}, "http://model.example/v1", "model.example is another host"),
        ({"samples": 2}, "", "give a temperature above 0"),
        ({"count_as": ""}, "", "its name does not say how it counts images; give --count-as"),
        ({"count_as": "qwen9"}, "", "--count-as qwen9: "),
        ({"context": "nothing"}, "", "context 'nothing': mmlongdoc has none, text"),
        ({"images": "files"}, "", "images 'files': expected path, file-url"),
        ({"max_pixels": 9, "images": "path"}, "", "use data-uri"),
        ({"model": ""}, "", "model '': expected a name"),
        ({"model": "\udc80"}, "", "model '.udc80': expected a name"),
        ({"samples": 0}, "", "samples 0: expected a whole number"),
        ({"max_tokens": -5}, "", "max_tokens -5: expected a whole number"),
        ({"temperature": float("nan")}, "", "temperature nan: expected a number"),
        ({"temperature": True}, "", "temperature True: expected a number"),
        ({"system": "\udc80"}, "", "system '.udc80': has characters that UTF-8 cannot encode"),
        ({"context": None}, "", "context None: expected a text"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_sent(
    finished: Path, tmp_path: Path, changes: dict[str, Any], url: str, said: str
) -> None:
    endpoint = mm.EndpointSettings(url or "http://127.0.0.1:1/v1")
    with pytest.raises(mm.ReleaseError, match=said):
        mm.run(finished, endpoint, replace(OPTIONS, **changes), out=tmp_path / "m.jsonl", lengths="2K")


def test_a_file_url_reaches_a_server_on_this_machine(finished: Path, tmp_path: Path) -> None:
    _, requests, _ = asked(finished, tmp_path / "m.jsonl", always(Said("x")), replace(NO_RULE, images="file-url"))
    urls = [part["image_url"]["url"] for part in parts_of(requests[0]) if part["type"] == "image_url"]
    assert urls
    assert all(url.startswith(f"file://{finished}/mmlb_image/") for url in urls)


def test_an_image_that_cannot_be_read_is_named_before_the_first_call(finished: Path, tmp_path: Path) -> None:
    release = shutil.copytree(finished, tmp_path / "release")
    for image in (release / "mmlb_image").rglob("*.jpg"):
        image.write_bytes(b"bad")
    with serving(always(Said("x"))) as server:
        endpoint = mm.EndpointSettings(server.url)
        with pytest.raises(mm.ReleaseError, match="cannot be read"):
            mm.run(release, endpoint, replace(NO_RULE, images="file-url"), out=tmp_path / "m.jsonl", lengths="2K")
        assert server.requests == []


def test_answers_are_asked_again_only_on_request_and_what_failed_always(finished: Path, tmp_path: Path) -> None:
    out, fresh = tmp_path / "m.jsonl", replace(OPTIONS, is_fresh=True)
    broken, _, _ = asked(finished, out, counting(fault=lost))
    assert [each.fault for each in broken.receipts[0].off] == ["image-lost"]
    same, requests, _ = asked(finished, out, counting("mended"))
    assert (len(same.receipts[0].off), requests) == (1, [])
    mended, requests, _ = asked(finished, out, counting("mended"), fresh)
    assert (mended.receipts[0].off, len(requests)) == ((), NUMBER)
    assert {line["prediction"] for line in lines(out)} == {"mended"}
    result, _, _ = asked(finished, out, always(Said(status=400)), fresh, attempts=1)
    assert (result.answers, lines(out)) == (0, [])
    other = tmp_path / "other.jsonl"
    asked(finished, other, always(Said(status=500)), NO_RULE, attempts=1)
    result, requests, _ = asked(finished, other, always(Said("fine")), NO_RULE)
    assert (result.failures, len(requests), len(lines(other))) == ((), NUMBER, NUMBER)


def test_an_option_that_the_endpoint_refuses_is_said(finished: Path, tmp_path: Path) -> None:
    def script(request: Request) -> Said:
        words = b'{"error": {"message": "Unsupported value: \'temperature\'"}}'
        return Said(status=400, body=words) if "temperature" in request else Said("x")

    result, _, _ = asked(finished, tmp_path / "m.jsonl", script, replace(OPTIONS, count_as="none"))
    assert result.answers == NUMBER
    assert result.notes == ("the endpoint refuses the options temperature; they were not sent",)


def test_two_runs_into_one_file_lose_no_line(finished: Path, tmp_path: Path) -> None:
    """The second begins while the first asks; both end with the lines of both."""
    out, began = tmp_path / "m.jsonl", list[bool]()

    def script(request: Request) -> Said:
        if not began and not is_probe(request):
            began.append(True)
            asked(finished, out, counting(), selection=ONE_K, cache=tmp_path / "other.sqlite")
        said: Said = counting()(request)
        return said

    asked(finished, out, script)
    assert len(lines(out)) == 2 * NUMBER


def test_a_system_text_is_sent_and_an_empty_one_is_another_call(finished: Path, tmp_path: Path) -> None:
    sent = []
    for number, system in enumerate((None, "", "Be short.")):
        out = tmp_path / f"{number}.jsonl"
        options, cache = replace(OPTIONS, system=system), tmp_path / "one.sqlite"
        _, requests, _ = asked(finished, out, counting(), options, cache=cache)
        assert len(requests) == NUMBER
        assert (requests[0]["messages"][0]["role"] == "system") == (system is not None)
        sent.append(lines(out)[0]["sent"])
    assert len(set(sent)) == 3


def test_a_context_that_changes_nothing_is_said(finished: Path, tmp_path: Path) -> None:
    result, _, _ = asked(finished, tmp_path / "m.jsonl", counting(), replace(OPTIONS, context="images-only"))
    assert not any("are the same" in note for note in result.notes)
    options = replace(OPTIONS, context="shuffled")
    result, requests, _ = asked(finished, tmp_path / "s.jsonl", counting(), options)
    released = {
        json.dumps(example.messages("data-uri")) for example in mm.open_release(finished).examples("mmlongdoc", "2K")
    }
    same = sum(json.dumps(request["messages"]) in released for request in requests)
    said = f"{same} prompts are the same with the context 'shuffled' as without it"
    assert (said in result.notes) == bool(same)


def test_a_path_that_is_no_file_is_not_replaced(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(mm.ReleaseError, match="folder: is a folder, a pipe or a device"):
        asked(finished, tmp_path / "folder", counting())
    assert (tmp_path / "folder").is_dir()


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (Said(status=429, headers={"retry-after": "600"}), "overloaded", "asks to wait 600 s"),
        (Said("x", drips=0.05), "timeout", "no answer in 0.3 s"),
        (Said("x", breaks_off=True), "connection", "the connection broke"),
        (Said(body=b"{"), "not-a-completion", "no chat completion"),
        (Said(body=b" " * (17 * 1024 * 1024)), "not-a-completion", "a response of more than 16,777,216 bytes"),
        (Said(status=413), "request-size", "HTTP 413"),
        (Said(status=500, body=b"oops"), "server-error", "HTTP 500: oops"),
        (Said(status=400, body=b'{"error": {"message": "maximum context length"}}'), "context-length", "HTTP 400"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_has_its_word_and_what_to_do(finished: Path, tmp_path: Path, said: Said, kind: str, words: str) -> None:
    changes: dict[str, Any] = {"timeout": 0.3} if kind == "timeout" else {}
    result, _, _ = asked(finished, tmp_path / "m.jsonl", always(said), NO_RULE, attempts=1, **changes)
    assert [(each.kind, each.count) for each in result.failures] == [(kind, NUMBER)]
    assert words in result.failures[0].first
    assert result.failures[0].advice
    assert lines(tmp_path / "m.jsonl") == []


def one_each(bodies: Sequence[object]) -> Script:
    """A script that answers each example with a body of its own."""
    left = cycle(bodies)
    return lambda request: Said(body=json.dumps(next(left)).encode())


def test_counts_that_are_none_do_no_harm(finished: Path, tmp_path: Path) -> None:
    counts: list[object] = [*({"prompt_tokens": each} for each in (-4, 2**60, "many", 1.5)), [1], "x"]
    bodies = [{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": each} for each in counts]
    result, _, _ = asked(finished, tmp_path / "m.jsonl", one_each(bodies), OPTIONS, concurrency=1)
    assert result.answers == NUMBER == len(bodies)


def test_probes_that_fail_are_said_and_the_run_goes_on(finished: Path, tmp_path: Path) -> None:
    def script(request: Any) -> Said:
        return Said(status=400, body=b"no") if request["max_tokens"] == 1 else Said("x")

    result, _, _ = asked(finished, tmp_path / "m.jsonl", script, OPTIONS, attempts=1)
    assert (result.answers, result.receipts) == (NUMBER, ())
    assert result.notes[0].startswith("a probe of the endpoint failed: m: HTTP 400")
    assert RULE.name == OPTIONS.count_as


def test_an_answer_in_any_form_is_read_and_a_reply_that_holds_nothing_is_none(finished: Path, tmp_path: Path) -> None:
    forms: list[tuple[dict[str, object], str]] = [
        ({"content": [{"type": "text", "text": "Answer: "}, {"type": "text", "text": "ash"}]}, "Answer: ash"),
        ({"content": ["Answer: ", {"type": "output_text", "text": "ash"}, {"text": None}]}, "Answer: ash"),
        ({"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "ash"}]}, "ash"),
        ({"content": "a\ud800b"}, "a?b"),
        ({"content": ""}, ""),
        ({"content": None, "reasoning_content": "", "reasoning": "hm"}, ""),
    ]
    bodies = [{"choices": [{"message": message, "finish_reason": None}]} for message, _ in forms]
    asked(finished, tmp_path / "m.jsonl", one_each(bodies), NO_RULE, concurrency=1)
    found = lines(tmp_path / "m.jsonl")
    assert [line["prediction"] for line in found] == [words for _, words in forms]
    assert [line.get("reasoning", "") for line in found] == ["", "", "", "", "", "hm"]
    empty = [{"choices": [{"message": {"content": None}, "finish_reason": reason}]} for reason in (None, "error")]
    script = one_each(empty * (NUMBER // 2))
    result, _, _ = asked(finished, tmp_path / "n.jsonl", script, NO_RULE, attempts=1, concurrency=1)
    assert [(each.kind, each.count) for each in result.failures] == [("not-a-completion", NUMBER)]
    assert lines(tmp_path / "n.jsonl") == []
