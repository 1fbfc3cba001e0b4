"""Models with the context, without it, or with a part of it: the table equals the script, whose scores are known."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from context_answers import DEPTHS, FOUR, TWO, IsRight, four, predictions, public_files, two, write
from counting_server import sizes_in, text_in, tokens_of
from model_server import Request, Said, serving
from tiny import command

import mmlongbench as mm

NUMBER = 120
FOURS = [four(number, depth) for number in range(NUMBER) for depth in DEPTHS]
TWOS = [two(number, depth) for number in range(NUMBER) for depth in DEPTHS]


def first(number: int) -> IsRight:
    """A model that has the first questions right."""
    return lambda at, depth: at < number


def always(number: int, depth: float) -> bool:
    return True


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of public files of four-choice and yes-or-no questions; not to be changed."""
    return public_files(tmp_path_factory.mktemp("contexts"), {FOUR: FOURS, TWO: TWOS})


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four-choice questions: right in the full prompt for 90 of 120, blind for 30, at half of the depths for text-only,
    always for shuffled as for full. Yes or no: right everywhere blind.
    """
    folder = tmp_path_factory.mktemp("predictions")
    predictions(folder / "m.jsonl", FOUR, FOURS, first(90))
    predictions(folder / "m.none.jsonl", FOUR, FOURS, first(30), "none")
    predictions(folder / "m.text.jsonl", FOUR, FOURS, lambda number, depth: number < 90 and depth == 0, "text-only")
    predictions(folder / "m.shuffled.jsonl", FOUR, FOURS, first(90), "shuffled")
    predictions(folder / "vh.jsonl", TWO, TWOS, always)
    predictions(folder / "vh.none.jsonl", TWO, TWOS, always, "none")
    return folder


@pytest.fixture(scope="module")
def audit(public: Path, given: Path) -> mm.ContextAudit:
    return mm.compare_contexts(str(public), str(given))


def row(audit: mm.ContextAudit, dataset: str, value: str = "", model: str = "m") -> mm.ContextRow:
    keys = [(each.dataset, each.value, each.model, each.length) for each in audit.rows]
    assert keys.count((dataset, value, model, None)) == 1
    return audit.rows[keys.index((dataset, value, model, None))]


def needs(found: mm.ContextRow) -> list[str | None]:
    return [each.need.verdict if each.need else None for each in found.differences]


def test_means_differences_survival_and_verdicts_equal_the_script(audit: mm.ContextAudit) -> None:
    found = row(audit, "retrieval-image")
    assert audit.contexts == ("", "none", "shuffled", "text-only")
    assert {each.context: (each.mean, each.questions) for each in found.means} == {
        "": (90 / 120, 120),
        "none": (30 / 120, 120),
        "shuffled": (90 / 120, 120),
        "text-only": (45 / 120, 120),
    }
    assert {
        each.context: (
            each.mean,
            each.full,
            each.other,
            each.survival,
            each.need and (each.need.part, each.need.verdict),
        )
        for each in found.differences
    } == {
        "none": (60 / 120, 90 / 120, 30 / 120, 0.0, ("context", "needs")),
        "shuffled": (0.0, 90 / 120, 90 / 120, 1.0, ("order", "does not need")),
        "text-only": (45 / 120, 90 / 120, 45 / 120, (0.375 - 0.25) / (0.75 - 0.25), ("images", "needs")),
    }
    assert {(each.examples, each.questions, each.clusters) for each in found.differences} == {(240, 120, 120)}
    assert {each.chance for each in found.differences} == {0.25}
    binary = row(audit, "vh_single").differences[0]
    assert (binary.chance, binary.survival, binary.need and binary.need.verdict) == (0.5, 1.0, "does not need")


def test_each_value_of_a_facet_has_a_row_and_an_interval_contains_its_mean(audit: mm.ContextAudit) -> None:
    for value in ("Yes", "No"):
        found = row(audit, "vh_single", value)
        assert (found.facet, found.differences[0].questions) == ("answer", 60)
    for each in (each for found in audit.rows for each in found.differences):
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.mean <= each.high


def test_only_examples_with_a_score_in_both_contexts_are_compared(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.jsonl", FOUR, FOURS[:80], always)
    predictions(tmp_path / "m.none.jsonl", FOUR, FOURS[40:], first(0), "none")
    found = row(mm.compare_contexts(public, tmp_path), "retrieval-image")
    assert [(each.context, each.questions) for each in found.means] == [("", 40), ("none", 100)]
    assert [(each.questions, each.mean) for each in found.differences] == [(20, 1.0)]


def test_several_models_have_rows_of_their_own(public: Path, tmp_path: Path) -> None:
    for model, blind in (("a/one", 0), ("two", NUMBER)):
        path = tmp_path / f"{model.replace('/', '_')}.jsonl"
        predictions(path, FOUR, FOURS, always, model=model)
        predictions(path.with_suffix(".none.jsonl"), FOUR, FOURS, first(blind), "none", model)
    audit = mm.compare_contexts(public, tmp_path)
    assert audit.models == ("a/one", "two")
    found = [needs(row(audit, "retrieval-image", model=name)) for name in audit.models]
    assert found == [["needs"], ["does not need"]]


def test_samples_are_averaged_before_contexts_are_compared(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.jsonl", FOUR, FOURS, always)
    path = predictions(tmp_path / "m.none.jsonl", FOUR, FOURS, always, "none", samples=4)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    write(path, [{**line, "prediction": "E"} if line["sample"] == 3 else line for line in lines])
    found = row(mm.compare_contexts(public, tmp_path), "retrieval-image")
    assert [(each.context, each.mean) for each in found.means] == [("", 1.0), ("none", 0.75)]


def test_scores_files_files_given_twice_and_another_order_give_the_same_table(public: Path, tmp_path: Path) -> None:
    folder, other, scored = tmp_path / "predictions", tmp_path / "other", []
    for name, right, context in (("m", lambda at, _: at % 3 > 0, ""), ("m.none", lambda at, _: at % 5 == 0, "none")):
        path = predictions(folder / f"{name}.jsonl", FOUR, FOURS, right, context)
        predictions(other / f"{name}.jsonl", FOUR, FOURS[::-1], right, context)
        scored.append(mm.score(public, path, partial=True, model="m", out=tmp_path / name).file)
    write(other / "ignored.txt", [])
    one = mm.compare_contexts(public, folder)
    assert mm.compare_contexts(public, [path for path in scored if path]) == one
    assert mm.compare_contexts(public, [folder / "m.jsonl", folder / "m.jsonl", folder]) == one
    assert mm.compare_contexts(public, other).model_dump_json() == one.model_dump_json()


def test_a_model_that_always_says_no_does_not_show_that_any_group_can_do_without(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.jsonl", TWO, TWOS, lambda number, depth: number % 2 == 1)
    predictions(tmp_path / "m.none.jsonl", TWO, TWOS, lambda number, depth: number % 2 == 1, "none")
    audit = mm.compare_contexts(public, tmp_path)
    assert row(audit, "vh_single", "No").differences[0].other == 1.0
    assert {each.value: needs(each) for each in audit.rows} == {key: ["undecided"] for key in ("", "No", "Yes")}


def test_lengths_have_rows_of_their_own_where_there_are_several(tmp_path: Path) -> None:
    longer, folder = FOUR.replace("K8", "K16"), tmp_path / "predictions"
    public = public_files(tmp_path, {FOUR: FOURS, longer: FOURS})
    for name, file, right in (("8", FOUR, 120), ("16", longer, 60)):
        predictions(folder / f"m.{name}.jsonl", file, FOURS, first(right))
        predictions(folder / f"m.none.{name}.jsonl", file, FOURS, first(30), "none")
    audit = mm.compare_contexts(public, folder)
    found = {each.length: each.differences[0] for each in audit.rows}
    assert {length: (each.mean, each.questions, each.clusters) for length, each in found.items()} == {
        None: (0.5, 120, 120),
        8_192: (0.75, 120, 120),
        16_384: (0.25, 120, 120),
    }
    assert audit.blind_counts[0].questions == 120


# Which files are read.

FEW = FOURS[:16]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one public file of eight questions; not to be changed."""
    return public_files(tmp_path_factory.mktemp("few"), {FOUR: FEW})


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"context": "none"}, "has predictions of m, released prompt and of m, none"),
        ({"model": "other"}, "has predictions of m, released prompt and of other, released prompt"),
    ],
)
def test_a_file_of_several_contexts_or_models_is_refused(
    few: Path, tmp_path: Path, other: dict[str, str], said: str
) -> None:
    both = predictions(tmp_path / "both.jsonl", FOUR, FEW, always)
    lines = [json.loads(line) for line in both.read_text("utf-8").splitlines()]
    write(both, [*lines, *({**line, **other} for line in lines)])
    with pytest.raises(mm.ScoringError, match=rf"both\.jsonl: {said}"):
        mm.compare_contexts(few, both)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ("no line is a JSON object", "`mmlongbench run`")),
        ("null\n[1]\n{", ("no line is a JSON object",)),
        ('{"file": "NIAH/other_K8.jsonl", "id": "1", "prediction": "x"}\n', ("no prediction fits", "does not have")),
        ('{"a": 1}\n', ("no prediction fits", "without a field they need", "p.jsonl, line 1: file")),
        (f'{{"file": "{FOUR}", "id": "mm-niah-0"}}\n', ("p.jsonl, line 1: prediction", "`mmlongbench run`")),
        ('{"metric": "m", "status": "scored"}\n', ("Field required", "scores file")),
        ('{"metric": "m", "status": "scored"}\n{"file": "x"}\n', ("both predictions and scores",)),
    ],
)
def test_files_that_are_no_predictions_are_refused_in_one_line(
    few: Path, tmp_path: Path, content: str, said: tuple[str, ...]
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(content, "utf-8")
    with pytest.raises(mm.MMLongBenchError) as refused:
        mm.compare_contexts(few, path)
    assert all(fact in str(refused.value) for fact in said), refused.value
    assert "\n" not in str(refused.value)


def test_missing_files_and_empty_folders_are_named(few: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ScoringError, match=r"gone\.jsonl: no such file of predictions"):
        mm.compare_contexts(few, tmp_path / "gone.jsonl")
    with pytest.raises(mm.ScoringError, match="no predictions there"):
        mm.compare_contexts(few, tmp_path)


def test_lines_without_a_model_take_the_name_of_their_file(few: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "qwen.jsonl", FOUR, FEW, always, model="")
    predictions(tmp_path / "qwen.none.jsonl", FOUR, FEW, always, "none", model="")
    assert mm.compare_contexts(few, tmp_path).models == ("qwen",)


def test_without_the_released_prompt_nothing_is_compared(few: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.none.jsonl", FOUR, FEW, always, "none")
    audit = mm.compare_contexts(few, tmp_path)
    assert [found.differences for found in audit.rows] == [()] * len(audit.rows) != []
    assert [note.partition(",")[0] for note in audit.notes] == ["m: no predictions of the released prompt"]


def test_examples_that_the_model_cannot_take_are_left_out_and_counted(few: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "m.jsonl", FOUR, FEW[:12], always)
    skipped = [{"file": FOUR, "id": each["id"], "depth": each["depth"], "model": "m"} for each in FEW[12:]]
    more = write(tmp_path / "more.jsonl", [{**each, "skipped": "context-length"} for each in skipped])
    none = predictions(tmp_path / "m.none.jsonl", FOUR, FEW, always, "none")
    audit = mm.compare_contexts(few, [path, more, none])
    assert [(each.context, each.questions) for each in audit.rows[0].means] == [("", 6), ("none", 8)]
    assert "m, released prompt: 4 answers have no score and are left out: context-length 4" in audit.notes


def test_predictions_of_other_examples_are_refused(finished: Path, tmp_path: Path) -> None:
    example = next(mm.open_release(finished).examples("mmlongdoc", "2K"))
    line = {**example.key, "prediction": "hard", "model": "m", "digest": "0" * 64}
    with pytest.raises(mm.ScoringError, match="stale"):
        mm.compare_contexts(finished, write(tmp_path / "m.jsonl", [line]))


# From a server over `run` to the table.

BLIND = {"What is its wood?": "hard"}
"""The answers that the model knows without its pages."""
SEEN = {**BLIND, "What is its bark?": "white", "Who planted it?": "Not answerable"}
"""The answers that it gives if it is shown pages."""
ASKED = 6
"""The examples of the tiny release at 2K."""


def looking(request: Request) -> Said:
    """Answer as a model that reads pages, and knows one answer without them."""
    known = SEEN if sizes_in(request) else BLIND
    words = next((answer for question, answer in known.items() if question in text_in(request)), "nothing")
    return Said(words, prompt_tokens=tokens_of(request))


def test_the_table_of_a_run_equals_the_script_of_the_server(finished: Path, tmp_path: Path) -> None:
    with serving(looking) as server:
        for context in ("full", "none", "text-only", "images-only", "shuffled", "oracle"):
            chosen = () if context == "full" else ("--context", context)
            out = tmp_path / "predictions" / f"m.{context}.jsonl"
            words = ("--url", server.url, "--model", "m", "--count-as", "qwen2.5-vl", "--length", "2K", "--out", out)
            ran = command("run", finished, *words, *chosen, "-q")
            assert ran.code == 0, ran.err
    audit = mm.compare_contexts(finished, tmp_path / "predictions")
    found, of_all = audit.rows[0], len(SEEN) / ASKED
    assert {each.context: (each.mean, each.questions) for each in found.means} == {
        "": (of_all, ASKED),
        "none": (1 / ASKED, ASKED),
        "text-only": (1 / ASKED, ASKED),
        "images-only": (of_all, ASKED),
        "shuffled": (of_all, ASKED),
        "oracle": (2 / 5, 5),  # the question that cannot be answered has no page that holds the answer
    }
    differences = {each.context: (each.mean, each.examples) for each in found.differences}
    assert differences["none"] == (of_all - 1 / ASKED, ASKED)
    assert differences["oracle"] == (0.0, 5)
    assert set(needs(found)) == {None, "undecided"}
    assert (audit.blind_counts[0].right, audit.blind_counts[0].listed) == (1, 0)
    assert audit.notes == ()


# What the command prints.


def test_the_page_has_the_same_table(public: Path, given: Path, tmp_path: Path) -> None:
    ran = command("shortcuts", public, "--predictions", given, "--html", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "□ needs the context</span>" in page
    assert re.search(r'<td data-key="(75\.0|0\.75)">75\.0</td>', page)


@pytest.fixture
def printed(tmp_path: Path) -> Callable[[int, int], str]:
    """Print what models answer that have the first questions right without context."""
    public = public_files(tmp_path, {FOUR: FOURS[:160]})

    def shown(blind: int, models: int) -> str:
        for name in (f"m{number}" for number in range(models)):
            path = tmp_path / "predictions" / f"{name}.jsonl"
            predictions(path, FOUR, FOURS[:160], always, model=name)
            predictions(path.with_suffix(".none.jsonl"), FOUR, FOURS[:160], first(blind), "none", name)
        ran = command("shortcuts", public, "--predictions", tmp_path / "predictions")
        assert ran.code == 0, ran.err
        return ran.out

    return shown


def test_means_differences_and_verdicts_are_printed(printed: Callable[[int, int], str]) -> None:
    text = printed(20, 1)
    means = next(line for line in text.splitlines() if line.startswith("retrieval-image") and "100.0" in line)
    assert means.split()[:4] == ["retrieval-image", "all", "all", "25.0"]
    difference = next(line for line in text.splitlines() if "75.0 [" in line)
    assert difference.split()[3:5] == ["none", "80"]
    assert difference.rstrip().endswith("needs the context")
    assert "luck 0" not in text, "one model that is right by chance has nothing listed"
    text = printed(74, 1)
    assert "undecided (the context): too few questions, shows falls from" in text
    assert "would decide" in text


def test_questions_are_listed_with_the_luck_they_would_take(printed: Callable[[int, int], str]) -> None:
    text = printed(20, 4)
    assert "mm-niah-0 (4 of 4, luck 0.0039)" in text
    assert "and 10 more" in text
    numbers = next(line for line in text.splitlines() if line.split()[1:4] == ["80", "20", "0"])
    assert numbers.split()[4:] == ["20", "0.3"]


def test_small_groups_are_counted_and_options_without_effect_are_refused(tmp_path: Path) -> None:
    records = [two(number, depth) for number in range(8) for depth in DEPTHS]
    public = public_files(tmp_path, {TWO: records})
    path = predictions(tmp_path / "p" / "m.jsonl", TWO, records, always)
    text = command("shortcuts", public, "--predictions", path).out
    assert "2 groups of fewer than 5 clusters are not shown; the JSON has them" in text
    assert "answer: Yes" not in text
    assert "m: only predictions of the released prompt; `mmlongbench run --context none` makes others" in text
    for option in (("--check",), ("--dataset", "retrieval-image"), ("--all",)):
        ran = command("shortcuts", public, "--predictions", path, *option)
        assert ran.code == 2
        assert f"{option[0]} has no effect with --predictions" in ran.err
