"""Which examples `run` and `export` work on, and the other contexts in which a question can be asked."""

from pathlib import Path

import pytest

import mmlongbench as mm
from mmlongbench.prompt import Part, Prompt, shows
from mmlongbench.release.changed_contexts import CONTEXTS, contextual
from mmlongbench.release.selection import SUBSETS, Selection, select

NAMES = ("mmlongdoc", "infoseek", "vh_multi", "retrieval-text", "food101", "lexsum")
"""One dataset of each family."""


@pytest.fixture
def release(families: Path) -> mm.Release:
    return mm.open_release(families)


def shown(release: mm.Release, dataset: str, context: str) -> list[tuple[mm.Example, Prompt | None]]:
    return list(contextual(release, dataset, context, release.examples(dataset, "8K")))


def made(release: mm.Release, dataset: str, context: str) -> list[tuple[mm.Example, Prompt]]:
    return [(example, prompt) for example, prompt in shown(release, dataset, context) if prompt is not None]


@pytest.mark.parametrize("dataset", NAMES)
def test_every_prompt_says_what_it_is_made_of(release: mm.Release, dataset: str) -> None:
    for example in release.examples(dataset, "8K"):
        outline = example.prompt.outline
        assert outline is not None
        assert outline.units
        again = Prompt.of_units(outline.before, outline.units, outline.separator, outline.after)
        assert again == example.prompt


@pytest.mark.parametrize("dataset", NAMES)
def test_a_context_of_nothing_of_texts_and_of_images_are_parts_of_the_prompt(release: mm.Release, dataset: str) -> None:
    for example, prompt in made(release, dataset, "none"):
        outline = example.prompt.outline
        assert outline is not None
        assert prompt == Prompt.of((*outline.before, *outline.after))
    for example, prompt in made(release, dataset, "text-only"):
        assert (prompt.images, prompt.text) == ((), example.prompt.text)
    for example, prompt in made(release, dataset, "images-only"):
        assert prompt.images == example.prompt.images
        assert len(prompt.text) <= len(example.prompt.text)


@pytest.mark.parametrize("dataset", NAMES)
def test_shuffled_units_are_the_same_units_in_another_order_that_never_changes(
    release: mm.Release, dataset: str
) -> None:
    found = made(release, dataset, "shuffled")
    assert [prompt for _, prompt in found] == [prompt for _, prompt in made(release, dataset, "shuffled")]
    orders = [(units(example.prompt), units(prompt)) for example, prompt in found]
    assert all(sorted(map(str, before)) == sorted(map(str, after)) for before, after in orders)
    assert any(before != after for before, after in orders)


@pytest.mark.parametrize("dataset", ["food101", "infoseek"])
def test_questions_that_share_contexts_or_are_about_one_thing_have_no_wrong_context(
    release: mm.Release, dataset: str
) -> None:
    assert made(release, dataset, "wrong") == []


@pytest.mark.parametrize("dataset", ["mmlongdoc", "viquae", "vh_multi", "retrieval-text", "lexsum"])
def test_a_wrong_context_has_the_units_of_another_question_and_nothing_that_answers(
    release: mm.Release, dataset: str
) -> None:
    others = [(example.id, units(example.prompt)) for example in release.examples(dataset, "8K")]
    found = made(release, dataset, "wrong")
    assert found
    for example, prompt in found:
        assert any(units(prompt) == theirs for id, theirs in others if id != example.id)
        assert set(units(prompt)) != set(units(example.prompt))
        needles = release.builder(dataset).needles(example.record) or ()
        assert not any(shows(prompt.parts, needle) for needle in needles)
        outline, its = example.prompt.outline, prompt.outline
        assert outline is not None
        assert its is not None
        assert (outline.before, outline.after) == (its.before, its.after)


@pytest.mark.parametrize("dataset", ["vh_multi", "retrieval-text", "infoseek"])
def test_the_oracle_has_every_needle_and_only_units_of_the_prompt(release: mm.Release, dataset: str) -> None:
    for example, prompt in made(release, dataset, "oracle"):
        assert set(units(prompt)) < set(units(example.prompt))
        assert all(shows(prompt.parts, needle) for needle in release.builder(dataset).needles(example.record) or ())


def test_the_oracle_of_a_document_has_its_answer_pages(release: mm.Release) -> None:
    found = shown(release, "mmlongdoc", "oracle")
    for example, prompt in found:
        evidence = example.evidence
        assert evidence is not None
        pages = {evidence.images[page] for page in evidence.pages}
        assert (prompt is None) == (not pages)
        if prompt:
            assert set(prompt.images) == pages


def test_an_unknown_context_names_those_that_exist(release: mm.Release) -> None:
    with pytest.raises(
        mm.ReleaseError, match=r"infoseek has with_name, occluded, oracle, none.*did you mean 'shuffled'"
    ):
        shown(release, "infoseek", "shufled")


def test_a_variant_of_the_builder_comes_before_the_context_of_that_name(release: mm.Release) -> None:
    builder = release.builder("infoseek")
    assert "oracle" in builder.variants
    for example, prompt in made(release, "infoseek", "oracle"):
        assert prompt == builder.render_variant(example.record, "oracle")


def test_the_released_prompt_has_the_empty_name(release: mm.Release) -> None:
    assert "" not in CONTEXTS
    assert all(prompt is example.prompt for example, prompt in shown(release, "food101", ""))


def units(prompt: Prompt) -> tuple[tuple[Part, ...], ...]:
    assert prompt.outline is not None
    return prompt.outline.units


def chosen(release: Path, selection: Selection) -> list[tuple[str, str]]:
    cells = select(mm.open_release(release), selection)
    return [(example.file, example.id) for cell in cells for example in cell.examples()]


def test_everything_is_chosen_from_the_shortest_length_and_a_limit_takes_the_first_of_each_file(finished: Path) -> None:
    found = chosen(finished, Selection())
    assert found == chosen(finished, Selection(("mmlongdoc",), ("1K", 2048)))
    assert [file for file, _ in found] == sorted(file for file, _ in found)
    assert len(found) == 12
    assert [id for _, id in chosen(finished, Selection(limit=2))] == ["mmlongdoc_0", "mmlongdoc_1"] * 2


def test_a_subset_is_frozen_and_has_the_same_questions_at_every_length(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SUBSETS == {"paper": 100}
    monkeypatch.setitem(SUBSETS, "paper", 3)
    ids = ["mmlongdoc_3", "mmlongdoc_4", "mmlongdoc_10"]
    assert [id for _, id in chosen(finished, Selection(subset="paper"))] == [*ids, *ids]
    assert [id for _, id in chosen(finished, Selection(lengths=("1K",), subset="paper"))] == ids


def test_the_papers_subset_has_100_questions_of_a_dataset_at_each_length_and_50_of_half_a_dataset(
    release: mm.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many-shot learning does, each dataset has more questions at a longer length here."""

    def ids(length: int) -> list[str]:
        return [f"q{number}" for number in range(length // 64)]

    monkeypatch.setattr(mm.Release, "ids", lambda _, dataset, length: iter(ids(length)))
    cells = select(release, Selection(subset="paper"))
    counts = {(cell.dataset, cell.length): sum(map(cell.is_chosen, ids(cell.length))) for cell in cells}
    halves = ("retrieval-text", "retrieval-image")
    assert counts == {(cell.dataset, cell.length): 50 if cell.dataset in halves else 100 for cell in cells}
    assert {length for _, length in counts} == {8192, 16384}


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(("mmlongdok",)), "'mmlongdok'.*did you mean 'mmlongdoc'"),
        (Selection(lengths=("4K",)), "4K.*mmlongdoc.*1K, 2K"),
        (Selection(subset="small"), "'small'.*paper"),
    ],
)
def test_what_there_is_not_is_refused(finished: Path, selection: Selection, said: str) -> None:
    with pytest.raises(mm.ReleaseError, match=said):
        chosen(finished, selection)
