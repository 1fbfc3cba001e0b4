"""The example tasks build, pass the audit, score their own answers full, and stay short."""

import ast
import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import needs
import pytest
from tiny import Ran, command, lock, rejects

import mmlongbench as mm

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = ("chat", "comparison", "dates", "fables", "photograph")
QUESTIONS = {"chat": 12, "comparison": 12, "dates": 18, "fables": 12, "photograph": 12}
PLACEMENTS = {"chat": 6, "comparison": 1, "dates": 3, "fables": 6, "photograph": 6}
MOST_LINES = 60
LEAST_FILL = {2: 0.9, 4: 0.95, 8: 0.98}
"""The least mean fill by length in K: a page has about 250 tokens, a fable about 130."""


@dataclass(frozen=True)
class Example:
    """An example task and a release of it."""

    name: str
    release: Path
    built: Ran

    @property
    def task(self) -> Path:
        """The task file."""
        return EXAMPLES / self.name / f"{self.name}.py"

    def examples(self) -> Iterator[mm.Example]:
        """The examples of the release, which is opened with its task file."""
        opened = mm.open_release(self.release, tasks=self.task)
        for k in LEAST_FILL:
            yield from opened.examples(self.name, f"{k}K")

    def records(self, k: int) -> list[dict[str, Any]]:
        """The records at a length."""
        (path,) = (self.release / "mmlb_data/tasks").glob(f"{self.name}_K{k}*.jsonl")
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module", params=NAMES)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    name, release = request.param, tmp_path_factory.mktemp("examples") / "release"
    manifest = EXAMPLES / name / f"{name}.yaml"
    limit = QUESTIONS[name]
    return Example(name, release, command("build", manifest, "--out", release, "--limit", limit, "--workers", "1"))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_one_short_file(name: str) -> None:
    assert [path.name for path in (EXAMPLES / name).glob("*.py")] == [f"{name}.py"]
    lines = len((EXAMPLES / name / f"{name}.py").read_text("utf-8").splitlines())
    assert lines <= MOST_LINES
    (row,) = (row for row in (EXAMPLES / "README.md").read_text("utf-8").splitlines() if f"({name}/{name}.py)" in row)
    assert row.endswith(f"| {lines} |"), "the table of the examples is up to date"


@pytest.mark.parametrize("name", NAMES)
def test_it_imports_the_module_for_authors_alone(name: str) -> None:
    tree = ast.parse((EXAMPLES / name / f"{name}.py").read_text("utf-8"))
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {each for each in plain | named if each.split(".")[0] not in sys.stdlib_module_names} == {"mmlongbench.task"}


def test_the_data_of_all_examples_are_small() -> None:
    files = [path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < 320 * 1024


def test_every_question_is_kept_at_every_length(example: Example) -> None:
    assert example.built.code == 0, example.built.err
    assert f"note: the code of {example.name}.py runs" in example.built.err
    assert f"/{example.name}.py` counts it again" in example.built.out
    assert rejects(example.release) == []
    cells = lock(example.release)["datasets"][example.name]["cells"]
    wanted = QUESTIONS[example.name] * PLACEMENTS[example.name]
    assert {length: cell["examples"] for length, cell in cells.items()} == {"2K": wanted, "4K": wanted, "8K": wanted}


def test_the_audit_and_verify_find_nothing_and_lengths_are_filled(example: Example) -> None:
    audit = command("audit", example.release, "--task", example.task, "--json")
    assert audit.code == 0, audit.out + audit.err
    lines = [json.loads(line) for line in audit.out.splitlines()]
    assert [line["problems"] for line in lines] == [[]] * 3
    assert [line["fill"]["mean"] > least for line, least in zip(lines, LEAST_FILL.values(), strict=True)] == [True] * 3
    assert command("verify", example.release, "--task", example.task).code == 0


def test_the_lock_names_the_code(example: Example) -> None:
    (dataset,) = lock(example.release)["manifest"]
    assert dataset["code"]["builder"]["sha256"] == hashlib.sha256(example.task.read_bytes()).hexdigest()


def test_the_right_answer_scores_full_and_no_answer_scores_nothing(example: Example) -> None:
    scorer = mm.scorer(example.release, tasks=example.task)
    for each in example.examples():
        gold = json.dumps(each.answer) if isinstance(each.answer, list) else str(each.answer)
        assert scorer.score(each.key, f"Answer: {gold}").score == 1
        assert scorer.score(each.key, "Answer: I do not know").score == 0


def test_needles_stand_at_their_depths(example: Example) -> None:
    for k in LEAST_FILL:
        for record in example.records(k):
            if "depth" in record:
                assert abs(record["depth"] - record["depth_achieved"]) < 0.6 / k
            elif "depth_requested" in record:
                pairs = zip(record["depth_requested"], record["depth_achieved"], strict=True)
                assert max(abs(wanted - reached) for wanted, reached in pairs) < 1 / k


def test_the_text_of_a_prompt_does_not_give_the_answer_away(example: Example) -> None:
    for each in example.examples():
        text, gold = each.prompt.text.lower(), str(each.answer).lower()
        shown = 1 if example.name == "fables" or (example.name == "chat" and not each.record["picture"]) else 0
        assert text.count(gold) == shown or gold.isdigit()
        if example.name == "fables":  # the moral stands in the fable alone, not in the question
            assert gold not in text[text.index("\n\nquestion: ") :]


@cache
def validator() -> ModuleType:
    """The module of the independent validator, which counts by other means than the engine."""
    spec = importlib.util.spec_from_file_location("validate_release", needs.shared("validate_release.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def recounted(example: Example) -> Iterator[tuple[int, int, mm.Example]]:
    """The tokens of the text and of the images of every example, counted by the validator."""
    counting = validator()
    for each in example.examples():
        turns = ["".join(part for part in turn.parts if isinstance(part, str)) for turn in each.prompt.turns]
        text = sum(len(tokens) for tokens in counting.sentencepiece().encode(turns))
        images = (counting.image_tokens(example.release / "mmlb_image" / image) for image in each.prompt.images)
        yield text, sum(images), each


def test_an_independent_recount_gives_the_same_tokens(example: Example) -> None:
    for text, images, each in recounted(example):
        tokens = each.record["tokens"]
        assert (text, images) == (tokens["text"], tokens["image"])
        assert each.record["length"] == text + images
        assert text + images + tokens["reserve"] <= each.length


def test_a_chat_is_sent_in_turns(example: Example) -> None:
    for each in example.examples():
        roles = [message["role"] for message in each.messages("path")]
        if example.name == "chat":
            assert len(roles) > 10
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        else:
            assert roles == ["user"]
