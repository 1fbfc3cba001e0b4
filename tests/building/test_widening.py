"""An exhausted context shows more groups: as many as adding one after another gives, found in fewer steps."""

from dataclasses import replace
from typing import Any

import pytest

from mmlongbench.building.stages.records import wider
from mmlongbench.draft import ContextDraft, Question, Unit
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import DoesNotFitError, pack
from mmlongbench.packing.pricing import Pricer
from mmlongbench.prompt import Image
from mmlongbench.task.take_orders import Rounds
from tokenization import CrossModalCounter, PatchRule, VisionRule, load_tokenizer, vision_rule

LENGTH = 256 * K
SIZE = (896, 896)
"""1,024 tokens: some 250 of them fill the length."""
REFUSED = "7 0"
"""A picture that a model refuses: 300 to 1."""
Counts = dict[int, int]


class Counted:
    """The part of a dataset that is needed here; it counts packs by their requests for a budget."""

    def __init__(self, rule: PatchRule | VisionRule = PatchRule()) -> None:  # noqa: B008  (it is frozen)
        self.pricer = Pricer(CrossModalCounter(load_tokenizer("llama2"), rule), _OneSize())
        self.asked = 0

    def budget(self, length: int) -> TokenBudget:
        self.asked += 1
        return TokenBudget(length, 256)


class _OneSize(dict[str, tuple[int, int]]):
    def __missing__(self, path: str) -> tuple[int, int]:
        return (28, 28 * 300) if path == REFUSED else SIZE


def context(pictures: int, excluded: Counts, classes: int, most: int) -> ContextDraft:
    """Return this many pictures of each class; in some classes the first few are excluded."""

    def unit(kind: str, name: str, label: int, turn: int) -> Unit:
        is_excluded = int(name.rpartition(" ")[2]) < excluded.get(int(kind), 0)
        return Unit(name, Image(name), (), "exemplar", group=kind, excluded="broken" if is_excluded else "")

    rounds = Rounds(
        tuple(map(str, range(classes))),
        lambda kind: [f"{kind} {n}" for n in range(pictures)],
        unit,
        lambda _, found: found,
        most=most,
    )
    return ContextDraft((), rounds, id="d", instruction=("Look.\n",), questions=(Question("q", ("\nWhich?",)),))


def units(dataset: Any, draft: ContextDraft) -> tuple[int, bool]:
    try:
        packed = pack(draft, dataset.budget(LENGTH), dataset.pricer)
    except DoesNotFitError:
        return 0, False
    return len(packed.units), packed.ran_dry


def one_after_another(dataset: Any, draft: ContextDraft) -> ContextDraft:
    """Add one group at a time until the context is full; otherwise use the number that fills it most."""
    found = [draft]
    while units(dataset, found[-1])[1] and (take_order := found[-1].take_order.wider(LENGTH)):
        found.append(replace(found[-1], take_order=take_order))
    return max(found, key=lambda each: (units(dataset, each)[0], -len(each.take_order.more)))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pictures", "excluded", "classes"),
    [
        (4, {}, 100),  # full with 61 or so
        (24, {}, 12),  # full with one more
        (2, {}, 100),  # all are not enough
        (3, {40: 3}, 100),  # a class that cannot be shown is where it ends
        (5, {20: 1}, 100),  # a class with fewer to show, and then it goes on
        (5, {10: 5}, 100),  # the first one more cannot be shown
        (4, {}, 10),  # there are none more
    ],
)
def test_as_many_groups_more_as_one_after_another(pictures: int, excluded: Counts, classes: int) -> None:
    draft, dataset = context(pictures, excluded, classes, most=10), Counted()
    found = wider(dataset, [draft], LENGTH)  # type: ignore[arg-type]
    assert dataset.asked <= 2 * (classes - 10).bit_length() + 3
    expected = one_after_another(Counted(), draft)
    assert [each.take_order for each in found] == ([expected.take_order] if expected is not draft else [])


@pytest.mark.parametrize("most_images", [None, 100])
def test_a_picture_that_the_model_refuses_is_left_out_of_wider_contexts(most_images: int | None) -> None:
    rule = replace(vision_rule("qwen2.5-vl"), max_images=most_images)
    draft, dataset = context(5, {}, 100, most=10), Counted(rule)
    (found,) = wider(dataset, [draft], LENGTH)  # type: ignore[arg-type]
    packed = pack(found, dataset.budget(LENGTH), dataset.pricer)
    assert packed.left_out["an image that the counted model refuses"] == 1
    assert len(packed.units) == (most_images or 254)
    assert REFUSED not in {unit.id for unit in packed.units}
