"""Other contexts of the same questions, for every family of tasks."""

from collections.abc import Sequence

import pytest

import mmlongbench as mm
from mmlongbench.prompt import Image, Part, Prompt
from mmlongbench.release.contexts import CONTEXTS, contextual
from mmlongbench.release.opened import Example, Release

pytestmark = pytest.mark.slow

NAMES = ("mmlongdoc", "infoseek", "vh_multi", "retrieval-text", "food101", "lexsum")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One dataset of each family, at 8K."""
    folder = tmp_path_factory.mktemp("contexts")
    manifest = mm.Manifest.model_validate(
        {"datasets": [each.model_dump(exclude_unset=True) for each in _quickstart() if each.name in NAMES]}
    )
    mm.build(manifest, folder / "release", lengths="8K", limit=4)
    return mm.open_release(folder / "release")


def _quickstart() -> Sequence[mm.DatasetSpec]:
    from mmlongbench.manifest.builtin_manifests import find_manifest
    from mmlongbench.manifest.loading import load_manifest

    return load_manifest(find_manifest("quickstart")).datasets


def shown(release: Release, dataset: str, context: str) -> list[tuple[Example, Prompt | None]]:
    return list(contextual(release, dataset, context, release.examples(dataset, "8K")))


def made(release: Release, dataset: str, context: str) -> list[tuple[Example, Prompt]]:
    return [(example, prompt) for example, prompt in shown(release, dataset, context) if prompt is not None]


@pytest.mark.parametrize("dataset", NAMES)
def test_every_prompt_says_what_it_is_made_of(release: Release, dataset: str) -> None:
    for example in release.examples(dataset, "8K"):
        outline = example.prompt.outline
        assert outline is not None
        assert outline.units
        again = Prompt.of_units(outline.before, outline.units, outline.separator, outline.after)
        assert again == example.prompt


@pytest.mark.parametrize("dataset", NAMES)
def test_without_a_context_the_instruction_and_the_question_are_left(release: Release, dataset: str) -> None:
    for example, prompt in made(release, dataset, "none"):
        outline = example.prompt.outline
        assert outline is not None
        assert prompt == Prompt.of((*outline.before, *outline.after))
        assert len(prompt.text) < 1_500


@pytest.mark.parametrize("dataset", NAMES)
def test_texts_and_images_alone_are_those_of_the_prompt(release: Release, dataset: str) -> None:
    for example, prompt in made(release, dataset, "text-only"):
        assert (prompt.images, prompt.text) == ((), example.prompt.text)
    for example, prompt in made(release, dataset, "images-only"):
        assert prompt.images == example.prompt.images
        assert len(prompt.text) <= len(example.prompt.text)


@pytest.mark.parametrize("dataset", NAMES)
def test_shuffled_units_are_the_same_units_in_another_order_that_never_changes(release: Release, dataset: str) -> None:
    found = made(release, dataset, "shuffled")
    assert [prompt for _, prompt in found] == [prompt for _, prompt in made(release, dataset, "shuffled")]
    orders = [(units(example.prompt), units(prompt)) for example, prompt in found]
    assert all(sorted(map(str, before)) == sorted(map(str, after)) for before, after in orders)
    assert any(before != after for before, after in orders)


@pytest.mark.parametrize("dataset", NAMES)
def test_a_wrong_context_has_the_units_of_another_question_and_nothing_that_answers(
    release: Release, dataset: str
) -> None:
    if dataset == "food101":  # its questions share contexts
        assert made(release, dataset, "wrong") == []
        return
    others = [(example.id, units(example.prompt)) for example in release.examples(dataset, "8K")]
    found = made(release, dataset, "wrong")
    assert found
    for example, prompt in found:
        assert any(units(prompt) == theirs for id, theirs in others if id != example.id)
        assert set(units(prompt)) != set(units(example.prompt))
        needles = release.builder(dataset).needles(example.record) or ()
        assert not any(shows(prompt, needle) for needle in needles)
        outline, its = example.prompt.outline, prompt.outline
        assert outline is not None
        assert its is not None
        assert (outline.before, outline.after) == (its.before, its.after)


@pytest.mark.parametrize("dataset", ["vh_multi", "retrieval-text", "infoseek"])
def test_the_oracle_has_every_needle_and_only_units_of_the_prompt(release: Release, dataset: str) -> None:
    for example, prompt in made(release, dataset, "oracle"):
        assert set(units(prompt)) < set(units(example.prompt))
        assert all(shows(prompt, needle) for needle in release.builder(dataset).needles(example.record) or ())


def test_the_oracle_of_a_document_has_its_answer_pages(release: Release) -> None:
    found = shown(release, "mmlongdoc", "oracle")
    for example, prompt in found:
        evidence = example.evidence
        assert evidence is not None
        pages = {evidence.images[page] for page in evidence.pages}
        assert (prompt is None) == (not pages)
        if prompt:
            assert set(prompt.images) == pages


def test_an_unknown_context_names_those_that_exist(release: Release) -> None:
    with pytest.raises(
        mm.ReleaseError, match=r"infoseek has with_name, occluded, oracle, none.*did you mean 'shuffled'"
    ):
        shown(release, "infoseek", "shufled")


def test_a_variant_of_the_builder_comes_before_the_context_of_that_name(release: Release) -> None:
    builder = release.builder("infoseek")
    assert "oracle" in builder.variants
    for example, prompt in made(release, "infoseek", "oracle"):
        assert prompt == builder.render_variant(example.record, "oracle")


def test_the_released_prompt_has_the_empty_name(release: Release) -> None:
    assert "" not in CONTEXTS
    assert all(prompt is example.prompt for example, prompt in shown(release, "food101", ""))


def units(prompt: Prompt) -> tuple[tuple[Part, ...], ...]:
    assert prompt.outline is not None
    return prompt.outline.units


def shows(prompt: Prompt, needle: Part) -> bool:
    return needle.path in prompt.images if isinstance(needle, Image) else needle in prompt.text
