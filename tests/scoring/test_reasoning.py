"""Reasoning is told from the answer in every form that models print, in one pass, and never by chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.scoring.reasoning import Said, without_reasoning

FORMS = {
    "think": "<think>{thought}</think>{answer}",
    "upper case": "<THINK>\n{thought}\n</Think>\n\n{answer}",
    "thinking": "<thinking>{thought}</thinking>\n{answer}",
    "thought": "<thought>{thought}</thought>{answer}",
    "reasoning": "<reasoning>{thought}</reasoning>{answer}",
    "scratchpad": "<scratchpad>{thought}</scratchpad>{answer}",
    "attributes": '<think effort="high" budget=3>{thought}</think >{answer}',
    "seed": "<seed:think>{thought}</seed:think>{answer}",
    "minimax": "<mm:think>{thought}</mm:think>{answer}",
    "longcat": "<longcat_think>{thought}</longcat_think>{answer}",
    "hunyuan": "<think:opensource>{thought}</think:opensource>{answer}",
    "kimi": "◁think▷{thought}◁/think▷{answer}",
    "mistral": "[THINK]{thought}[/THINK]{answer}",
    "command": "<|START_THINKING|>{thought}<|END_THINKING|><|START_RESPONSE|>{answer}<|END_RESPONSE|>",
    "apertus": "<|inner_prefix|>{thought}<|inner_suffix|>{answer}",
    "thought and solution": (
        "<|begin_of_thought|>{thought}<|end_of_thought|>\n\n<|begin_of_solution|>{answer}<|end_of_solution|>"
    ),
    "medgemma": "<unused94>thought\n{thought}<unused95>{answer}",
    "gemma": "<|channel>thought\n{thought}<channel|>{answer}",
    "harmony": (
        "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>{answer}<|return|>"
    ),
    "harmony with a tool": (
        "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>commentary to=functions.look "
        "<|constrain|>json<|message|>{thought}<|call|><|start|>assistant<|channel|>final <|constrain|>json<|message|>"
        "{answer}"
    ),
    "harmony without tokens": "analysis{thought}assistantfinal{answer}",
    "granite": "Here is my thought process: {thought} Here's my response: {answer}",
    "opened by the template": "{thought}</think>\n{answer}",
    "opened by the template of kimi": "{thought}◁/think▷{answer}",
    "several": "<think>{thought}</think>\n<think>{thought}</think> {answer}",
    "nested": "<think>{thought}<think>{thought}</think>{thought}</think>{answer}",
    "nested once too often": "<think>{thought}<think>{thought}</think>{answer}",
    "of two spellings": "<think>{thought}<reasoning>{thought}</reasoning>{thought}</think>{answer}",
    "closed twice": "<think>{thought}</think>{thought}</think>{answer}",
    "behind blanks": " \n\n<think>\n{thought}\n</think>\n\n{answer}\n",
    "quoting itself": "<think>{thought} I write `</think>` and stop. {thought}</think>{answer}",
    "ending in a quotation": '<think>{thought} "x"</think>{answer}',
}
THOUGHT = "It might be Jo Mott, but no: 12 ≠ 13.\n\nHm."
ANSWERS = ("Answer: I am not sure", '"x"', "12", "a\n\nb", "x < 5 and y > 3", "E = <mi>x</mi>", "[1, 2]", "")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_leaves_the_answer_alone(form: str) -> None:
    for answer in ANSWERS:
        said = without_reasoning(FORMS[form].format(thought=THOUGHT, answer=answer))
        assert said == Said(answer, "stripped")


@pytest.mark.parametrize(
    "form", [form for form in FORMS if not form.startswith(("granite", "opened", "closed", "nes"))]
)
def test_what_is_cut_off_has_no_answer(form: str) -> None:
    whole = FORMS[form].format(thought=THOUGHT, answer="\0")
    ends = [end for end in range(whole.index("It might") + 9, len(whole)) if whole[:end].endswith("no: 12")]
    assert ends
    for end in ends:
        assert without_reasoning(whole[:end]) == Said("", "unclosed")


def test_what_stands_before_reasoning_that_is_cut_off_is_the_answer() -> None:
    assert without_reasoning("Answer: Peru\n<think>Or was it Ch") == Said("Answer: Peru", "unclosed")
    assert without_reasoning("Answer: Peru <think>Or was it Ch") == Said("Answer: Peru", "unclosed")


@pytest.mark.parametrize(
    "text",
    [
        "<think>\n\n</think>\n\n{answer}",
        "<|START_RESPONSE|>{answer}<|END_RESPONSE|>",
        "</think>\n{answer}",
        "[THINK][/THINK]{answer}",
    ],
    ids=["empty", "without a thought", "closed at once", "empty in brackets"],
)
def test_markers_around_nothing_are_taken_out_and_are_no_reasoning(text: str) -> None:
    assert without_reasoning(text.format(answer="12")) == Said("12", "")


def test_reasoning_between_parts_of_an_answer_leaves_both() -> None:
    assert without_reasoning("First a. <think>b?</think> Then c.") == Said("First a. \n Then c.", "stripped")


@pytest.mark.parametrize(
    "text",
    [
        "The document calls them <think> and </think>.",
        "They are enclosed in <think> </think> and <answer> </answer> tags, respectively",
        "The tag is `<think>`, closed by `</think>`",
        'It prints "<think>" first and "</think>" last',
        "“<think>” is a token",
        "a <thinspace/> in <math><mi>think</mi></math>, <thinker>, <think-tank>, < think >",
        "&lt;think&gt;no&lt;/think&gt;",
        "The analysis is final. The assistantfinally said so; assistantfinal",
        "My analysis: Here is my response: 5. Here is my thought process: none",
        "Here is my thought process: it is 5",
        "I think 5 [think] (THINK)",
        "<|end|>",
        "",
    ],
)
def test_what_only_looks_like_it_is_untouched(text: str) -> None:
    assert without_reasoning(text) == Said(text, "")


def test_a_mention_behind_reasoning_stays() -> None:
    said = without_reasoning("<think>Which tags?</think>They are <think> and </think>, see `</think>`")
    assert said == Said("They are <think> and </think>, see `</think>`", "stripped")


PIECES = [
    *("<think>", "</think>", "<THINKING a=1>", "</thinking>", "◁think▷", "◁/think▷", "[THINK]", "[/THINK]"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|channel|>", "final<|message|>", "<|end|>"),
    *("<|start|>assistant", "<|return|>", "analysis", "assistantfinal", "A", "<thi", "nk>", "think", "<", ">", "`"),
    *('"', "“", " and ", "\n", " ", "\t", "x", "Mott", "Here is my thought process:", "Here is my response:", "|>"),
    *("<|channel>", "<channel|>", "<unused94>", "<unused95>", "<|END_RESPONSE|>", "<|START_RESPONSE|>", "ist", "fin"),
]
ANYTHING = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map("".join)


@given(ANYTHING)
def test_stripping_twice_is_stripping_once(text: str) -> None:
    once = without_reasoning(text)
    assert without_reasoning(once.answer) == Said(once.answer, "")


@given(st.text(), st.text(), st.text())
def test_any_text_between_markers_is_left_out_whatever_it_is(before: str, thought: str, answer: str) -> None:
    for text in (before, thought, answer):
        if without_reasoning(f"\0{text}").reasoning or "`" in text:
            return
    said = without_reasoning(f"<think>{thought}</think>\n{answer}")
    assert said == Said(answer.strip(), "stripped" if thought.strip() else "")


@given(st.text(alphabet=st.characters(exclude_characters="<[◁"), max_size=200))
def test_a_text_without_markers_is_untouched(text: str) -> None:
    if not text.startswith(("analysis", "Here")):
        assert without_reasoning(text) == Said(text, "")


SIZE = 400_000
HOSTILE = {
    "openings": "<think>" * (SIZE // 7),
    "closings": "</think>" * (SIZE // 8),
    "pairs": "<think></think>" * (SIZE // 15),
    "mentions": "x" + "<think> </think>" * (SIZE // 16),
    "quoted": "`<think>`" * (SIZE // 9),
    "half tags": "<think " * (SIZE // 7),
    "attributes": "<think " + "a" * SIZE,
    "prefixes": "<" + "a" * SIZE,
    "angles": "<" * SIZE,
    "channels": "<|channel|>" * (SIZE // 11),
    "half channels": "<|channel|>analysis " * (SIZE // 20),
    "ends": "<think>a</think>" + "<|end|>" * (SIZE // 7),
    "glued": "analysisA" * (SIZE // 9) + "assistantfinal" * (SIZE // 14),
    "prose": "Here is my thought process:</think>" * (SIZE // 35) + "Here is my response:",
    "lines": "<think>\n" * (SIZE // 8),
    "blanks": " " * SIZE + "</think>",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_long_texts_take_one_pass(kind: str) -> None:
    """Of the square of this length no test would see the end."""
    assert without_reasoning(HOSTILE[kind]).reasoning in ("", "stripped", "unclosed")
