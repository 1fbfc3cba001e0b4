"""Predictions belong to the examples of a release: digests tell whether an example is still the one answered."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from score_lines import Line, line, page, reported, write
from tiny import Ran, command, draw_pdf, records

import mmlongbench as mm
from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.io.atomic import sha256_of
from mmlongbench.scoring.report import report
from mmlongbench.scoring.scores import read_scores

pytestmark = pytest.mark.slow
K1, K2 = "documentQA/mmlongdoc_K1.jsonl", "documentQA/mmlongdoc_K2.jsonl"
NO_DIGEST = "no digest, so it cannot be checked that they were made for this release"


@pytest.fixture(scope="module")
def short(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release at its first length only; not to be changed."""
    return built(source, tmp_path_factory.mktemp("short") / "release", "--lengths", "1K")


@pytest.fixture(scope="module")
def changed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release at its first length, after one document has got another text; not to be changed."""
    copy = tmp_path_factory.mktemp("changed") / "source"
    shutil.copytree(source, copy)
    draw_pdf(copy / "documents/birch.pdf", 3, side=199)
    return built(copy, copy.parent / "release", "--lengths", "1K")


def built(source: Path, out: Path, *options: str) -> Path:
    done = command("build", source / "tiny.yaml", "--out", out, *options)
    assert done.code == 0, done.err
    return out


def answered(release: Path, *without: str, **fields: object) -> Iterator[Line]:
    """A line for every example of a release, with the gold answer, as a runner writes it."""
    opened = mm.open_release(release)
    for dataset in opened.datasets:
        for length in opened.lengths(dataset):
            for each in opened.examples(dataset, length):
                made = {**each.key, "prediction": str(each.answer), "digest": each.digest, "lock": opened.lock_id}
                yield {name: value for name, value in {**made, **fields}.items() if name not in without}


def run(release: Path, lines: list[Line], folder: Path, *options: str, name: str = "m.jsonl") -> Ran:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return command("score", release, path, "--out", folder / "scores", *options)


def test_the_lock_of_a_release_has_a_short_name(finished: Path) -> None:
    assert mm.open_release(finished).lock_id == sha256_of(finished / "build.lock.json")[:16]


def test_score_lines_carry_the_digest_of_their_example_and_the_lock(finished: Path, tmp_path: Path) -> None:
    lines = list(answered(finished))
    found = run(finished, lines, tmp_path)
    assert (found.code, found.err) == (0, "")
    assert "digest" not in found.out
    scored = list(read_scores(tmp_path / "scores"))
    assert [(each.file, each.id, each.digest) for each in scored] == [(x["file"], x["id"], x["digest"]) for x in lines]
    assert {(each.lock, each.is_stale) for each in scored} == {(mm.open_release(finished).lock_id, False)}


def test_an_absent_example_has_a_digest_too(finished: Path, tmp_path: Path) -> None:
    first, *others = answered(finished)
    run(finished, others, tmp_path)
    scored = next(iter(read_scores(tmp_path / "scores")))
    assert (scored.status, scored.digest) == ("absent", first["digest"])


def test_predictions_stay_valid_in_a_release_that_only_has_more_lengths(
    short: Path, finished: Path, tmp_path: Path
) -> None:
    lines = list(answered(short))
    assert {each["file"] for each in lines} == {K1}
    assert mm.open_release(short).lock_id != mm.open_release(finished).lock_id
    found = run(finished, lines, tmp_path, "--partial", "--json")
    assert set(json.loads(found.out)["problems"]) == {"no-predictions"}
    assert json.loads(found.out)["scores"]["doc_qa"]["mmlongdoc"]["1024"]["score"] == 1.0
    assert {each.is_stale for each in read_scores(tmp_path / "scores")} == {False}


def test_predictions_for_a_changed_document_are_refused_by_name_and_nothing_is_written(
    short: Path, changed: Path, tmp_path: Path
) -> None:
    lines = list(answered(short))
    found = run(changed, lines, tmp_path)
    now = {each["id"]: each["digest"] for each in answered(changed)}
    differ = [(number, each) for number, each in enumerate(lines, 1) if now[each["id"]] != each["digest"]]
    assert 0 < len(differ) < len(lines)
    number, first = differ[0]
    assert found.code == 2
    assert found.err.endswith(
        f"m.jsonl, line {number} (digest {first['digest'][:12]}…): {K1}: {first['id']} "
        f"(digest {now[first['id']][:12]}…)"
        f": the prediction was made for another example of this name ({len(differ)} of {len(lines)} predictions with a "
        "digest are stale); run the model again on these examples, or score them with --allow-stale\n"
    )
    assert not (tmp_path / "scores").exists()


def test_no_judge_is_asked_about_stale_predictions(short: Path, changed: Path, tmp_path: Path) -> None:
    judge = ("--metrics", "judge-answers", "--judge-url", "http://127.0.0.1:9/v1", "--judge-model", "j")
    found = run(changed, list(answered(short)), tmp_path, *judge, "--judge-cache", str(tmp_path / "judge.sqlite"))
    assert "was made for another example" in found.err
    assert not (tmp_path / "judge.sqlite").exists()


def test_a_changed_answer_makes_a_prediction_stale(short: Path, tmp_path: Path) -> None:
    lines = list(answered(short))
    shutil.copytree(short, tmp_path / "release")
    path = tmp_path / "release/mmlb_data" / K1
    made = [
        {**each, "answer": "soft" if each["id"] == "mmlongdoc_0" else each["answer"]} for each in records(short, "1K")
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in made), "utf-8")
    with pytest.raises(ScoringError, match=rf"line 1 .*: {K1}: mmlongdoc_0 .*1 of {len(lines)} predictions"):
        mm.score(tmp_path / "release", write(tmp_path / "p", lines, "m.jsonl"))


def test_an_image_that_the_lock_does_not_have_is_named_with_its_example(short: Path, tmp_path: Path) -> None:
    lines = list(answered(short))
    shutil.copytree(short, tmp_path / "release")
    path = tmp_path / "release/mmlb_data" / K1
    path.write_text(path.read_text("utf-8").replace("ash_page1", "ash_page9"), "utf-8")
    with pytest.raises(ReleaseError, match=rf"{K1}: mmlongdoc_0: image '.*ash_page9.jpg': is not in the lock; see"):
        mm.score(tmp_path / "release", write(tmp_path / "p", lines, "m.jsonl"))


def test_allow_stale_scores_them_and_says_how_many(short: Path, changed: Path, tmp_path: Path) -> None:
    lines = list(answered(short))
    found = run(changed, lines, tmp_path, "--allow-stale", "--json")
    stale = [each for each in read_scores(tmp_path / "scores") if each.is_stale]
    assert found.code == 0
    assert {each.score for each in stale} == {1.0}
    (note,) = json.loads(found.out)["notes"]
    what = f"{len(stale)} of {len(lines)} predictions were made for other examples than those here"
    assert note.startswith(f"{what}, and are scored because of --allow-stale; first m.jsonl, line ")
    scores = mm.score(changed, tmp_path / "m.jsonl", allow_stale=True)
    assert scores.notes == (note,)
    warned = list(report(tmp_path / "scores").differing.warnings())
    assert warned[0] == f"scores of predictions that were made for other examples (--allow-stale): m {len(stale)}"


def test_predictions_without_digests_are_taken_with_one_note(finished: Path, tmp_path: Path) -> None:
    lines = list(answered(finished, "digest"))
    found = run(finished, lines, tmp_path)
    assert (found.code, found.err) == (0, "")
    assert found.out.count("digest") == 1
    assert f"m.jsonl: {len(lines)} predictions have {NO_DIGEST}\n" in found.out
    some = [*answered(finished)][:3] + lines[3:]
    assert f"m.jsonl: {len(lines) - 3} predictions have {NO_DIGEST}\n" in run(finished, some, tmp_path).out
    two = write(write(tmp_path / "two", lines[:1], "a.jsonl"), lines[1:], "b.jsonl")
    printed = command("score", finished, two, "--out", tmp_path / "scores").out
    assert f"b.jsonl and 1 more files: {len(lines)} predictions have {NO_DIGEST}\n" in printed


def test_public_files_of_other_origin_have_no_digests_and_nothing_is_said(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    found = run(public, [*golds[:-1], golds[-1] | {"digest": "ab" * 32}], tmp_path)
    assert (found.code, "digest" in found.out) == (0, False)
    assert {(each.digest, each.lock) for each in read_scores(tmp_path / "scores")} == {("", "")}


@pytest.mark.parametrize("digest", [5, True, "", "abc", "AB" * 32, "g" * 64, ["ab" * 32], "ab" * 33, "ab" * 31 + "é"])
def test_a_digest_that_is_none_is_a_problem_of_its_line(digest: object, finished: Path, tmp_path: Path) -> None:
    first, *others = answered(finished)
    found = run(finished, [{**first, "digest": digest}, *others], tmp_path, "--json")
    problems = json.loads(found.out)["problems"]
    assert found.code == 1
    assert {reason: each["count"] for reason, each in problems.items()} == {"mistyped-field": 1, "absent": 1}
    assert problems["mistyped-field"]["first"][0].startswith(f"m.jsonl, line 1: digest is {digest!r:.80}, expected 64")


@pytest.mark.parametrize("fields", [{"digest": None}, {"lock": 7}, {"usage": [1]}, {"colour": "red"}])
def test_fields_that_scoring_does_not_need_may_be_anything(
    fields: dict[str, Any], finished: Path, tmp_path: Path
) -> None:
    assert run(finished, list(answered(finished, **fields)), tmp_path, "-q").code == 0


def test_predictions_with_another_context_say_so_in_every_score_line(finished: Path, tmp_path: Path) -> None:
    lines = list(answered(finished, context="text-only"))
    found = run(finished, lines, tmp_path)
    assert "docqa_llm_judge off; context text-only\n" in found.out
    choices = {tuple(each.choices) for each in read_scores(tmp_path / "scores")}
    assert choices == {("docqa_llm_judge off", "context text-only")}
    assert "holds scores by doc_qa" in run(finished, list(answered(finished)), tmp_path).err


def test_predictions_with_several_contexts_are_refused(finished: Path, tmp_path: Path) -> None:
    first, *others = answered(finished)
    found = run(finished, [first | {"context": "none"}, *others], tmp_path)
    assert "several contexts: m.jsonl, line 1 has 'none', m.jsonl, line 2 has 'the released prompt'" in found.err
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize("context", [5, ["none"], "a\nb", "x" * 81])
def test_a_context_that_is_no_name_is_a_problem_of_its_line(context: object, finished: Path, tmp_path: Path) -> None:
    first, *others = answered(finished)
    found = run(finished, [{**first, "context": context}, *others], tmp_path, "--json")
    assert json.loads(found.out)["problems"]["mistyped-field"]["count"] == 1


def digested(letter: str, *ids: int, model: str = "m", **fields: Any) -> list[Line]:
    """Score lines of the examples of these ids, all with digests that begin with this letter."""
    return [line(n, 1.0, model=model, digest=f"{letter}{n}", lock=letter * 16, **fields) for n in ids]


def test_a_report_says_above_the_scores_that_they_are_of_different_examples(tmp_path: Path) -> None:
    lines = [*digested("a", 1, 2, 3), *digested("a", 1, 2, model="n"), *digested("b", 3, model="n")]
    found = reported(tmp_path, lines)
    assert found.differing.summary() == {
        "examples": 1,
        "of": 3,
        "files": {"docs_K8.jsonl": 1},
        "first": "docs_K8.jsonl: 3 (a3… for m; b3… for n)",
        "stale": {},
        "without": {},
    }
    warning = (
        "1 of 3 examples are not the same in all scores (docs_K8.jsonl 1), so scores side by side are not of the same "
        "examples; first docs_K8.jsonl: 3 (a3… for m; b3… for n)"
    )
    assert next(found.differing.warnings()) == warning
    assert found.summary()["different_examples"]["examples"] == 1
    assert found.summary()["releases"] == {"m": ["a" * 16], "n": ["a" * 16, "b" * 16]}
    html = page(found)
    assert html.index(warning) < html.index('<h2 id="averages">')
    printed = command("report", tmp_path).out
    assert " ".join(printed.split()).index(f"warning: {warning}") < " ".join(printed.split()).index("averages,")


def test_two_real_releases_in_one_report(short: Path, changed: Path, finished: Path, tmp_path: Path) -> None:
    for release, name in ((short, "a.jsonl"), (finished, "b.jsonl")):
        run(release, list(answered(release)), tmp_path, "--partial", name=name)
    assert not list(report(tmp_path / "scores").differing.warnings())
    run(changed, list(answered(changed)), tmp_path, name="c.jsonl")
    now = {each["id"]: each["digest"] for each in answered(changed)}
    differ = [each for each in answered(short) if now[each["id"]] != each["digest"]]
    found = report(tmp_path / "scores")
    assert (found.differing.examples, found.differing.files) == (len(differ), {K1: len(differ)})
    assert f"{differ[0]['digest'][:12]}… for a, b" in found.differing.first


def test_nothing_is_said_of_scores_without_digests_unless_others_have_some(tmp_path: Path) -> None:
    plain = [line(n, 1.0, model=model) for n in (1, 2) for model in ("m", "n")]
    assert not [note for note in reported(tmp_path / "a", plain).notes if "digest" in note]
    some = [*digested("a", 1, 2), *(each for each in plain if each["model"] == "n")]
    found = reported(tmp_path / "b", some)
    said = "scores without digests, which may be of other examples than the scores beside them: n 2"
    assert [note for note in found.notes if "digest" in note] == [said]
    assert not list(found.differing.warnings())
    other = [*digested("a", 1, 2), *(line(n, 1.0, "other") for n in (1, 2))]
    assert reported(tmp_path / "c", other).differing.without == {}


def test_comparisons_of_metrics_leave_out_examples_that_differ(tmp_path: Path) -> None:
    def lines(model: str, letter: str, better: float) -> list[Line]:
        made = []
        for metric, score in (("em", better), ("f1", 1 - better)):
            made += digested("a", *range(4), model=model, metric=metric, is_own=metric == "em")
            made += digested(letter, 4, model=model, metric=metric, is_own=metric == "em")
            made[-1]["score"] = 0.0
            for each in made[-5:-1]:
                each["score"] = score
        return made

    every = [*lines("m", "a", 0.2), *lines("n", "a", 0.4), *lines("o", "a", 0.6)]
    assert [pair.examples for pair in reported(tmp_path / "a", every).agreement.pairs] == [5]
    some = [*lines("m", "a", 0.2), *lines("n", "a", 0.4), *lines("o", "b", 0.6)]
    found = reported(tmp_path / "b", some)
    (pair,) = found.agreement.pairs
    assert pair.examples == 4
    assert pair.tau == pytest.approx(-1.0)
    assert pair.scores["o"] == (0.6, 0.4)
    assert "agreement, shift and volatility leave these examples out; all other tables have them" in list(
        found.differing.warnings()
    )


def test_a_report_shows_releases_in_html_and_escapes_them(tmp_path: Path) -> None:
    lines = [line(1, 1.0, digest="<b>", lock="<i>"), line(1, 1.0, model="n", digest="a", lock="l")]
    html = page(reported(tmp_path, lines))
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
    assert "<b>…" not in html
