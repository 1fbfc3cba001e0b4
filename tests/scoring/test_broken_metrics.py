"""An exception in a metric or in a builder of a finished release is one line: plug-in, method, example, place."""

import json
from pathlib import Path

import pytest
from tiny import Ran, command

from mmlongbench.manifest.registry import builder_type, metric_type
from mmlongbench.scoring.metric_calls import compared_answer, details_of_absent, why_outside
from mmlongbench.task.metric import Metric, Score, ScoringInput, Settings

WHO = "error: metric 'doc_qa' (mmlongbench.metrics.benchmark:DocumentAnswer of mmlongbench): "
OF = "example 'mmlongdoc_0' of documentQA/mmlongdoc_K1.jsonl: "


def boo(*given: object) -> object:
    raise KeyError("boo")


LINE = boo.__code__.co_firstlineno + 1


@pytest.fixture
def said(finished: Path, tmp_path: Path) -> Path:
    file = next((finished / "mmlb_data").rglob("*_K1.jsonl"))
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    name = file.relative_to(finished / "mmlb_data").as_posix()
    answers = [{"file": name, "id": line["id"], "prediction": "Answer: 4"} for line in lines]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(answer) + "\n" for answer in answers), "utf-8")
    return path


def score(finished: Path, said: Path) -> Ran:
    return command("score", finished, said, "--partial", "--metrics", "doc_qa", "--out", said.parent / "scores")


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("score", f"score(), {OF}"),
        ("out_of_scope", f"out_of_scope(), {OF}"),
        ("usage", "usage(): "),
        ("close", "close(): "),
        ("offered", "__init__(): "),
    ],
)
def test_an_exception_in_a_metric_is_one_line(
    method: str, where: str, finished: Path, said: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_type("doc_qa"), method, boo)
    ran = score(finished, said)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"{WHO}{where}KeyError: 'boo' (test_broken_metrics.py, line {LINE})\n"


@pytest.mark.parametrize(("given", "name"), [(None, "NoneType"), (1.0, "float"), ((1, {}), "tuple")])
def test_a_score_of_another_type_is_named(
    given: object, name: str, finished: Path, said: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_type("doc_qa"), "score", lambda *asked: given)
    assert score(finished, said).err == f"{WHO}score(), {OF}it returned a {name}, expected a Score\n"


def test_a_metric_without_a_fault_scores(finished: Path, said: Path) -> None:
    assert "mmlongdoc  doc" in score(finished, said).out


@pytest.mark.parametrize("call", [details_of_absent, why_outside, compared_answer])
def test_other_methods_are_named_too(call: object) -> None:
    class Half(Metric):
        name = "half"
        absent = out_of_scope = compared_answer = boo  # type: ignore[assignment]

        def score(self, asked: ScoringInput) -> Score:
            return Score(0.5)

    asked = ScoringInput("a_K1.jsonl", "a", "1", "x", "x")
    with pytest.raises(Exception, match=r"metric 'half': \w+\(\), example '1' of a_K1.jsonl: KeyError: 'boo'"):
        call(Half(Settings()), asked)  # type: ignore[operator]


@pytest.mark.parametrize(
    "words", [("audit",), ("stats",), ("show",), ("export", "--to", "openai", "--out", "exported")]
)
def test_an_exception_in_the_spec_of_a_builder_is_one_line_for_every_command_with_a_release(
    words: tuple[str, ...], finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builder_type("docvqa"), "spec", property(boo))
    ran = command(words[0], finished, *words[1:])
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "builder 'docvqa' (builders.docvqa:DocVQA of mmlongbench): spec, dataset 'mmlongdoc': KeyError" in ran.err
