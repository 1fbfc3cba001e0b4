"""Wrong types in drafts: each is refused, and the message names the field, what was found and what is expected."""

import pytest

import mmlongbench.task as mt
from mmlongbench.building.example_checks import draft_fault
from mmlongbench.draft import Question
from mmlongbench.task.take_orders import Chain

UNITS = {
    'mt.Unit(3, "text")': "unit 3: id is an int, expected a text",
    'mt.Unit("a", None)': "unit 'a': body is a NoneType, expected a text or mt.Image",
    'mt.Unit("a", "padding", "text")': "unit 'a': place is a str, expected a tuple such as (3,)",
    'mt.Unit("a", "text", 3)': "unit 'a': place is an int, expected a tuple such as (3,)",
    'mt.Unit("a", "text", ("p", 3))': "unit 'a': place holds a str, expected a tuple such as (3,)",
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
    "mt.Draft(GOOD, [])": "take_order is a list, expected a TakeOrder such as mt.InOrder(units)",
    "mt.Draft(GOOD, mt.InOrder(iter(GOOD)))": "take_order: order is a tuple_iterator, expected a tuple or list of mt.",
    "mt.Draft(GOOD, Chain((list(GOOD),)))": "take_order: parts holds a list, expected a tuple of mt.InOrder and",
    "mt.Draft(GOOD, Chain((mt.InOrder(iter(GOOD)),)))": "take_order: parts: order is a tuple_iterator",
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
    names = {"mt": mt, "GOOD": good, "HAY": hay, "Chain": Chain, "Question": Question}
    assert DRAFTS[code] in draft_fault(eval(code, names))
