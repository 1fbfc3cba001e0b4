"""Drafts: a field of a wrong type is named, and an exhausted context shows more groups, found in few steps."""

from dataclasses import replace
from typing import Any

import pytest

import mmlongbench.task as mt
from mmlongbench.building.example_checks import draft_fault
from mmlongbench.building.stages.records import wider
from mmlongbench.draft import ContextDraft, Question, Unit
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import DoesNotFitError, pack
from mmlongbench.packing.pricing import Pricer
from mmlongbench.prompt import Image
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

    rounds = mt.advanced.Rounds(
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


# Wrong types

UNITS = {
    'mt.Unit(3, "text")': "unit 3: id is an int, expected a text",
    'mt.Unit("a", None)': "unit 'a': body is a NoneType, expected a text or mt.Image",
    'mt.Unit("a", "padding", "text")': "unit 'a': place is a str, expected a tuple of whole numbers such as (3,)",
    'mt.Unit("a", "text", 3)': "unit 'a': place is an int, expected a tuple of whole numbers such as (3,)",
    'mt.Unit("a", "text", ("p", 3))': "unit 'a': place holds a str, expected a tuple of whole numbers such as (3,)",
    'mt.Unit("a", "text", role=["gold"])': "unit 'a': role is a list, expected a text",
    'mt.Unit("a", "text", head=None)': "unit 'a': head is a NoneType, expected a text",
    'mt.Unit("a", "text", label=4)': "unit 'a': label is an int, expected a text",
    'mt.Unit("a", "text", further="abc")': "unit 'a': further is a str, expected a tuple of texts and images",
    'mt.Unit("a", turns=mt.Turn("user", ("Hi",)))': "unit 'a': turns is a Turn, expected a tuple of mt.Turn",
    'mt.Unit("a", turns=("Hi",))': "unit 'a': turns holds a str, expected a tuple of mt.Turn",
    'mt.Unit("a", turns=(mt.Turn("system", ("Hi",)),))': "turns: role is 'system', expected user or assistant",
    'mt.Unit("a", turns=(mt.Turn("user", "Hi"),))': "turns: parts is a str, expected a tuple of texts and images",
}
DRAFTS = {
    "[mt.Draft(GOOD, HAY)]": "returned a list, expected a Draft",
    "mt.Draft(GOOD[0], HAY)": "required is a Unit, expected a tuple of mt.Unit, such as (x,) with its comma",
    'mt.Draft(({"id": "a"},), HAY)': "required holds a dict, expected a tuple of mt.Unit",
    'type("Own", (mt.Draft,), {})(GOOD, [])': "take_order is a list, expected a TakeOrder",
    "mt.Draft(GOOD, [])": "take_order is a list, expected a TakeOrder such as mt.InOrder(units)",
    "mt.Draft(GOOD, mt.InOrder(iter(GOOD)))": "take_order: order is a tuple_iterator, expected a tuple or list of mt.",
    "mt.Draft(GOOD, mt.Chain((list(GOOD),)))": "take_order: parts holds a list, expected a tuple of mt.InOrder and",
    "mt.Draft(GOOD, mt.Chain((mt.InOrder(iter(GOOD)),)))": "take_order: parts: order is a tuple_iterator",
    "mt.Draft(GOOD, HAY, one_of=GOOD[0])": "one_of is a Unit, expected a tuple or list of mt.Unit",
    'mt.Draft(GOOD, HAY, one_of=["a"])': "one_of holds a str, expected a tuple or list of mt.Unit",
    "mt.Draft(GOOD, HAY, 3)": "question is an int, expected a text, a tuple of texts and images, or mt.Wording",
    "mt.Draft(GOOD, HAY, (3,))": "question holds an int, expected a text, a tuple of texts and images",
    'mt.Draft(GOOD, HAY, " ")': "question is empty",
    "mt.Draft(GOOD, HAY, ())": "question is empty",
    'mt.Draft(GOOD, HAY, mt.Wording("what?", len))': "question: texts is a str, expected a tuple of texts",
    'mt.Draft(GOOD, HAY, mt.Wording(["what?"], len))': "question: texts is a list, expected a tuple of texts",
    "mt.Draft(GOOD, HAY, mt.Wording((), len))": "question: texts is empty",
    'mt.Draft(GOOD, HAY, mt.Wording(("what?",), 0))': "question: choose is an int, expected a function",
    'mt.Draft(GOOD, HAY, fields=["name"])': "fields is a list, expected a dict",
    'mt.Draft(GOOD, HAY, instruction="Read.")': "instruction is a str, expected a tuple of texts and images, such as",
    'mt.Draft(GOOD, HAY, noted="joined")': "noted is a str, expected a tuple of texts",
    'mt.advanced.ContextDraft(GOOD, HAY, questions=(Question("a", "what?"),))': "questions: parts is a str, expected a",
    **{f"mt.Draft(({unit},), HAY)": said for unit, said in UNITS.items()},
}


@pytest.mark.parametrize("code", DRAFTS)
def test_a_wrong_field_of_a_draft_is_named(code: str) -> None:
    good, hay = (mt.Unit("a", "text", (3,)),), mt.InOrder(())
    names = {"mt": mt, "GOOD": good, "HAY": hay, "Question": Question}
    assert DRAFTS[code] in draft_fault(eval(code, names))
