"""Predictions belong to the examples of a release: digests tell whether an example is still the one answered."""

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from once import once
from score_lines import Line, line, means, page, printed, problems, reported, score, scored, told, write
from tiny import command, draw_pdf, records

import mmlongbench as mm

K1 = "documentQA/mmlongdoc_K1.jsonl"
NO_DIGEST = "no digest, so it cannot be checked that they were made for this release"


@pytest.fixture(scope="session")
def short(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release at its first length only; not to be changed."""
    return once(tmp_path_factory, "tiny-1k", lambda folder: built(source, folder / "release")) / "release"


@pytest.fixture(scope="session")
def changed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release at its first length, after one document has got another text; not to be changed."""

    def make(folder: Path) -> None:
        shutil.copytree(source, folder / "source")
        draw_pdf(folder / "source/documents/birch.pdf", 3, side=199)
        built(folder / "source", folder / "release")

    return once(tmp_path_factory, "tiny-1k-changed", make) / "release"


def built(source: Path, out: Path) -> None:
    done = command("build", source / "tiny.yaml", "--out", out, "--lengths", "1K")
    assert done.code == 0, done.err


def answered(release: Path, *without: str, **fields: object) -> Iterator[Line]:
    """A line for every example of a release, with the gold answer, as a runner writes it."""
    opened = mm.open_release(release)
    for dataset in opened.datasets:
        for length in opened.lengths(dataset):
            for each in opened.examples(dataset, length):
                made = {**each.key, "prediction": str(each.answer), "digest": each.digest, "lock": opened.lock_id}
                yield {name: value for name, value in {**made, **fields}.items() if name not in without}


def stale(short: Path, changed: Path) -> list[tuple[int, Line, str]]:
    """(line, prediction for the release before, digest now) of each example that changed."""
    now = {each["id"]: each["digest"] for each in answered(changed)}
    lines = enumerate(answered(short), 1)
    return [(number, each, now[each["id"]]) for number, each in lines if now[each["id"]] != each["digest"]]


def test_score_lines_carry_the_digest_of_their_example_and_the_lock(finished: Path, tmp_path: Path) -> None:
    lock_id = sha256((finished / "build.lock.json").read_bytes()).hexdigest()[:16]
    assert mm.open_release(finished).lock_id == lock_id
    lines = list(answered(finished))
    found = score(finished, lines, tmp_path)
    assert (found.code, found.err, "digest" in found.out) == (0, "", False)
    made = scored(tmp_path / "scores")
    assert [(each.file, each.id, each.digest) for each in made] == [(x["file"], x["id"], x["digest"]) for x in lines]
    assert {(each.lock, each.is_stale, each.score) for each in made} == {(lock_id, False, 1.0)}
    assert {each.length for each in made} == {1024, 2048}
    score(finished, lines[1:], tmp_path)
    missed = scored(tmp_path / "scores")[0]
    assert (missed.status, missed.digest) == ("absent", lines[0]["digest"])


def test_predictions_stay_valid_in_a_release_that_only_has_more_lengths(
    short: Path, finished: Path, tmp_path: Path
) -> None:
    lines = list(answered(short))
    assert {each["file"] for each in lines} == {K1}
    assert mm.open_release(short).lock_id != mm.open_release(finished).lock_id
    found = score(finished, lines, tmp_path, "--partial", "--json")
    assert problems(found) == {"no-predictions": 1}
    assert means(found) == {("doc_qa", "mmlongdoc", "1024"): 1.0}
    assert {each.is_stale for each in scored(tmp_path / "scores")} == {False}


def test_predictions_for_a_changed_document_are_refused_by_name_and_nothing_is_asked_or_written(
    short: Path, changed: Path, tmp_path: Path
) -> None:
    lines, differ = list(answered(short)), stale(short, changed)
    assert 0 < len(differ) < len(lines)
    (number, first, now), *_ = differ
    found = score(changed, lines, tmp_path)
    assert found.code == 2
    facts = (
        f"m.jsonl, line {number} (digest {first['digest'][:12]}…): {K1}: {first['id']} (digest {now[:12]}…)",
        f"({len(differ)} of {len(lines)} predictions with a digest are stale)",
        "--allow-stale",
    )
    assert [fact for fact in facts if fact not in found.err] == []
    judge = ("--metrics", "judge-answers", "--judge-url", "http://127.0.0.1:9/v1", "--judge-model", "j")
    found = score(changed, lines, tmp_path, *judge, "--judge-cache", tmp_path / "judge.sqlite")
    assert "was made for another example" in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.jsonl"]


def test_scores_of_another_release_are_not_overwritten_unless_asked(short: Path, changed: Path, tmp_path: Path) -> None:
    assert score(short, answered(short), tmp_path, "-q").code == 0
    before = (tmp_path / "scores/m.default.jsonl").read_bytes()
    found = score(changed, answered(changed), tmp_path, "-q")
    ids = [mm.open_release(release).lock_id for release in (short, changed)]
    facts = ("m.default.jsonl", f"the lock {ids[0]}", f"the lock {ids[1]}", "--replace", "--out")
    assert (found.code, [fact for fact in facts if fact not in found.err]) == (2, [])
    assert (tmp_path / "scores/m.default.jsonl").read_bytes() == before
    assert score(short, answered(short), tmp_path, "-q").code == 0
    assert score(changed, answered(changed), tmp_path, "-q", "--replace").code == 0
    assert {each.lock for each in scored(tmp_path / "scores")} == {ids[1]}


def test_a_changed_answer_makes_a_prediction_stale_and_an_image_without_a_lock_is_named(
    short: Path, tmp_path: Path
) -> None:
    lines = list(answered(short))
    said = write(tmp_path / "said", lines, "m.jsonl")
    shutil.copytree(short, tmp_path / "release")
    path = tmp_path / "release/mmlb_data" / K1
    before = path.read_text("utf-8")
    made = [{**each, "answer": "soft" if at == 0 else each["answer"]} for at, each in enumerate(records(short, "1K"))]
    path.write_text("".join(json.dumps(each) + "\n" for each in made), "utf-8")
    with pytest.raises(mm.ScoringError, match=rf"line 1 .*: {K1}: mmlongdoc_0 .*1 of {len(lines)} predictions"):
        mm.score(tmp_path / "release", said)
    path.write_text(before.replace("ash_page1", "ash_page9"), "utf-8")
    with pytest.raises(mm.ReleaseError, match=rf"{K1}: mmlongdoc_0: image '.*ash_page9.jpg': is not in the lock"):
        mm.score(tmp_path / "release", said)


def test_allow_stale_scores_them_and_says_how_many(short: Path, changed: Path, tmp_path: Path) -> None:
    lines, differ = list(answered(short)), stale(short, changed)
    found = score(changed, lines, tmp_path, "--allow-stale", "--json")
    kept = [each for each in scored(tmp_path / "scores") if each.is_stale]
    assert (found.code, len(kept), {each.score for each in kept}) == (0, len(differ), {1.0})
    (note,) = json.loads(found.out)["notes"]
    what = f"{len(kept)} of {len(lines)} predictions were made for other examples than those here"
    assert note.startswith(f"{what}, and are scored because of --allow-stale; first m.jsonl, line {differ[0][0]}")
    assert mm.score(changed, tmp_path / "m.jsonl", allow_stale=True).notes == (note,)
    assert told(tmp_path / "scores")["different_examples"]["stale"] == {"m": len(kept)}
    assert f"--allow-stale): m {len(kept)}" in " ".join(printed(tmp_path / "scores").split())


def test_predictions_without_digests_are_taken_with_one_note(finished: Path, tmp_path: Path) -> None:
    lines = list(answered(finished, "digest"))
    found = score(finished, lines, tmp_path)
    assert (found.code, found.err, found.out.count("digest")) == (0, "", 1)
    assert f"m.jsonl: {len(lines)} predictions have {NO_DIGEST}\n" in found.out
    some = [*answered(finished)][:3] + lines[3:]
    assert f"m.jsonl: {len(lines) - 3} predictions have {NO_DIGEST}\n" in score(finished, some, tmp_path).out
    two = write(write(tmp_path / "two", lines[:1], "a.jsonl"), lines[1:], "b.jsonl")
    text = command("score", finished, two, "--out", tmp_path / "scores").out
    assert f"b.jsonl and 1 more files: {len(lines)} predictions have {NO_DIGEST}\n" in text


def test_public_files_of_other_origin_have_no_digests_and_nothing_is_said(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    found = score(public, [*golds[:-1], golds[-1] | {"digest": "ab" * 32}], tmp_path)
    assert (found.code, "digest" in found.out) == (0, False)
    assert {(each.digest, each.lock) for each in scored(tmp_path / "scores")} == {("", "")}


def test_predictions_with_another_context_say_so_in_every_score_line(finished: Path, tmp_path: Path) -> None:
    found = score(finished, answered(finished, context="text-only"), tmp_path)
    assert "docqa_llm_judge off; context text-only\n" in found.out
    choices = {tuple(each.choices) for each in scored(tmp_path / "scores")}
    assert choices == {("docqa_llm_judge off", "context text-only")}
    assert "holds scores by doc_qa" in score(finished, answered(finished), tmp_path).err
    first, *others = answered(finished)
    found = score(finished, [first | {"context": "none"}, *others], tmp_path / "b")
    assert "several contexts: m.jsonl, line 1 has 'none', m.jsonl, line 2 has 'the released prompt'" in found.err
    assert not (tmp_path / "b/scores").exists()


def digested(letter: str, *ids: int, model: str = "m", **fields: Any) -> list[Line]:
    """Score lines of the examples of these ids, all with digests that begin with this letter."""
    return [line(n, 1.0, model=model, digest=f"{letter}{n}", lock=letter * 16, **fields) for n in ids]


def test_a_report_says_above_the_scores_that_they_are_of_different_examples(tmp_path: Path) -> None:
    folder = tmp_path / "scores"
    found = reported(folder, [*digested("a", 1, 2, 3), *digested("a", 1, 2, model="n"), *digested("b", 3, model="n")])
    assert found["different_examples"] == {
        "examples": 1,
        "of": 3,
        "files": {"docs_K8.jsonl": 1},
        "first": "docs_K8.jsonl: 3 (a3… for m; b3… for n)",
        "stale": {},
        "without": {},
    }
    assert found["releases"] == {"m": ["a" * 16], "n": ["a" * 16, "b" * 16]}
    warning = "1 of 3 examples are not the same in all scores (docs_K8.jsonl 1)"
    text, html = " ".join(printed(folder).split()), page(folder)
    assert 0 < text.index(f"warning: {warning}") < text.index("averages,")
    assert "first docs_K8.jsonl: 3 (a3… for m; b3… for n)" in text
    assert 0 < html.index(warning) < html.index('<h2 id="averages">')


def test_two_real_releases_in_one_report(short: Path, changed: Path, finished: Path, tmp_path: Path) -> None:
    for release, name in ((short, "a"), (finished, "b")):
        score(release, answered(release), tmp_path, "--partial", "--model", name)
    assert told(tmp_path / "scores")["different_examples"]["examples"] == 0
    score(changed, answered(changed), tmp_path, "--model", "c")
    differ = stale(short, changed)
    found = told(tmp_path / "scores")["different_examples"]
    assert (found["examples"], found["files"]) == (len(differ), {K1: len(differ)})
    assert f"{differ[0][1]['digest'][:12]}… for a, b" in found["first"]


def test_nothing_is_said_of_scores_without_digests_unless_others_have_some(tmp_path: Path) -> None:
    plain = [line(n, 1.0, model=model) for n in (1, 2) for model in ("m", "n")]
    reported(tmp_path, plain)
    assert "digest" not in printed(tmp_path)
    some = [*digested("a", 1, 2), *(each for each in plain if each["model"] == "n")]
    found = reported(tmp_path, some)["different_examples"]
    assert (found["examples"], found["without"]) == (0, {"n": 2})
    text = printed(tmp_path)
    assert "scores without digests" in text
    assert "warning" not in text
    other = [*digested("a", 1, 2), *(line(n, 1.0, "other") for n in (1, 2))]
    assert reported(tmp_path, other)["different_examples"]["without"] == {}


def test_a_report_shows_releases_in_html_and_escapes_them(tmp_path: Path) -> None:
    lines = [line(1, 1.0, digest="<b>", lock="<i>"), line(1, 1.0, model="n", digest="a", lock="l")]
    html = page(write(tmp_path / "scores", lines))
    assert ("&lt;i&gt;" in html, "<i>" in html, "<b>…" in html) == (True, False, False)
