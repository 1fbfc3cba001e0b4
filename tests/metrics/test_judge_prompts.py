"""The prompts of the public code: files of a checkout are read, never run, and checked; unusable ones are named."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from invented_checkout import DOCUMENTS, EXECUTED, SUMMARIES, document_prompts, draw_checkout, source, summary_prompts

from mmlongbench.metrics.judge import Answers, FluencyF1, JudgeError
from mmlongbench.metrics.judge.prompts import (
    MAX_BYTES,
    MAX_REPEATS,
    PublicPrompts,
    TemplateError,
    public_prompts,
    template,
)

NAMES = ", ".join(summary_prompts())


def read(path: Path) -> PublicPrompts:
    return public_prompts([path], FluencyF1.name, FluencyF1.places)


def changed(old: str, new: str) -> str:
    text = source(summary_prompts())
    assert old in text
    return text.replace(old, new)


def test_prompts_are_read_from_the_file_or_the_checkout_and_nothing_is_run(tmp_path: Path) -> None:
    checkout = draw_checkout(tmp_path)
    found = read(checkout / SUMMARIES)
    assert found.templates["fluency_prompt_gov"].filled(text="{x} {{y}}") == (
        'Reads report well? {"fluency": 1} or {"fluency": 0}.\n\nText: "{x} {{y}}"\n'
    )
    assert found == read(checkout)
    assert found.source.startswith("eval_gpt4_summ.py sha256:")
    both = [checkout / SUMMARIES, checkout / DOCUMENTS]
    rubric = public_prompts(both, Answers.name, Answers.places).templates["DOC_QA_JUDGE_PROMPT"]
    assert rubric.filled() == document_prompts()["DOC_QA_JUDGE_PROMPT"]
    assert public_prompts(both, FluencyF1.name, FluencyF1.places) == found
    assert not list(tmp_path.rglob(EXECUTED))


def test_another_file_has_another_digest(tmp_path: Path) -> None:
    one = read(draw_checkout(tmp_path / "a"))
    (tmp_path / "b.py").write_text(changed("Reads report", "Reads  report"))
    other = read(tmp_path / "b.py")
    assert one.source.partition(":")[2] != other.source.partition(":")[2]


FAULTS: dict[str, tuple[Callable[[], str], str]] = {
    "not Python": (lambda: "fluency_prompt_gov = '''", "line 1: expected Python in UTF-8, found unterminated"),
    "minus signs": (lambda: "x = " + "-" * 100_000 + "1", "expected Python in UTF-8, found code that is nested"),
    "too large": (lambda: "#" * (MAX_BYTES + 1), f"expected at most {MAX_BYTES:,} bytes, found more"),
    "no prompt": (lambda: "x = 1", f"no fluency_prompt_gov, which judge-fluency-f1 needs (its prompts are {NAMES})"),
    "one is missing": (
        lambda: changed("precision_prompt_lexsum=", "precision_prompt_law="),
        "no precision_prompt_lexs",
    ),
    "an f-string": (lambda: changed("recall_prompt_gov=", "recall_prompt_gov=f"), "recall_prompt_gov is an f-string,"),
    "a sum": (
        lambda: changed("recall_prompt_gov=", "recall_prompt_gov='a' + "),
        "recall_prompt_gov is no plain string, expected one assignment of a plain string; the file is read, not run",
    ),
    "assigned again": (
        lambda: source(summary_prompts()) + "recall_prompt_gov = recall_prompt_gov.strip()\n",
        "recall_prompt_gov is bound more than once",
    ),
    "added to": (
        lambda: source(summary_prompts()) + "if LIMIT:\n    recall_prompt_gov += 'more'\n",
        "recall_prompt_gov is bound more than once",
    ),
    "only under a condition": (
        lambda: changed('recall_prompt_gov="""', 'if LIMIT:\n    recall_prompt_gov="""'),
        "recall_prompt_gov is no plain string",
    ),
    "half a surrogate pair": (
        lambda: changed('recall_prompt_gov="""', 'recall_prompt_gov="""\\ud800'),
        "recall_prompt_gov is a string with half a surrogate pair",
    ),
    "a place missing": (
        lambda: changed("{keypoints}", "the key points"),
        "recall_prompt_gov has {keypoints} 0 times, expected once",
    ),
    "an unknown place": (
        lambda: changed("{keypoints}", "{keypoints} {claims}"),
        "recall_prompt_gov has the place {claims}, expected {keypoints}, {summary}, without widths or conversions",
    ),
    "an attribute": (
        lambda: changed("{keypoints}", "{keypoints.__class__}"),
        "recall_prompt_gov has the place {keypoints.__class__}, expected",
    ),
    "a width": (
        lambda: changed("{keypoints}", "{keypoints:>999999999}"),
        "recall_prompt_gov has the place {keypoints}",
    ),
    "a conversion": (lambda: changed("{keypoints}", "{keypoints!r}"), "recall_prompt_gov has the place {keypoints},"),
    "a brace alone": (lambda: changed("{keypoints}", "{keypoints"), "recall_prompt_gov has braces that are not"),
    "a place many times": (
        lambda: changed("{keypoints}", "{keypoints}" * 11),
        "recall_prompt_gov has {keypoints} 11 times, expected once, and at most 10 times",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_will_not_do_is_named_with_what_is_wrong(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "eval_gpt4_summ.py"
    make, said = FAULTS[fault]
    path.write_text(make(), "utf-8")
    with pytest.raises(JudgeError) as raised:
        read(path)
    assert str(path) in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600


def test_what_is_no_file_of_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes("x = 'é'".encode("latin-1"))
    os.mkfifo(tmp_path / "pipe.py")
    for name, said in (
        ("latin.py", "expected Python in UTF-8, found 'utf-8' codec can't decode byte 0xe9"),
        ("pipe.py", "expected a Python file with prompts, found a pipe or a device"),
        ("none.py", "expected a Python file with prompts, found No such file or directory"),
    ):
        with pytest.raises(JudgeError, match=f"{name}: {said}"):
            read(tmp_path / name)
    with pytest.raises(JudgeError, match=r"has none of scripts/eval_gpt4_summ\.py, utils_prompt\.py; give the folder"):
        read(tmp_path)


def test_a_prompt_that_two_files_assign_must_be_the_same(tmp_path: Path) -> None:
    checkout, other = draw_checkout(tmp_path / "a"), tmp_path / "other.py"
    other.write_text(source(summary_prompts()), "utf-8")
    paths = [checkout / SUMMARIES, other]
    assert public_prompts(paths, FluencyF1.name, FluencyF1.places).source.count("sha256") == 1
    other.write_text(changed("Reads report", "Reads a report"), "utf-8")
    with pytest.raises(JudgeError, match=r"fluency_prompt_gov differs in .* and .*other\.py; give one of them"):
        public_prompts(paths, FluencyF1.name, FluencyF1.places)


def test_a_place_is_filled_as_it_stands_however_often_it_may_stand_there() -> None:
    assert template("{a}" * MAX_REPEATS, ["a"]).filled(a="{a}{{") == "{a}{{" * MAX_REPEATS
    with pytest.raises(TemplateError):
        template("{a} {b}", ["a"])
