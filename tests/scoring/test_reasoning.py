"""Reasoning is separated from the answer in every form that models print, in one pass, and never by accident."""

from typing import Any

import pytest
from hypothesis import given, settings
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
    "harmony without tokens, with a tool": (
        "analysis{thought}assistantcommentary to=functions.look json{thought}assistantfinal{answer}"
    ),
    "harmony without tokens, a commentary": "commentary{thought}assistantfinal{answer}",
    "granite": "Here is my thought process: {thought} Here's my response: {answer}",
    "opened by the template": "{thought}</think>\n{answer}",
    "opened by the template of kimi": "{thought}◁/think▷{answer}",
    "several": "<think>{thought}</think>\n<think>{thought}</think> {answer}",
    "nested": "<think>{thought}<think>{thought}</think>{thought}</think>{answer}",
    "nested in kimi's": "◁think▷{thought}◁think▷{thought}◁/think▷{thought}◁/think▷{answer}",
    "mentioning both tags": "<think>{thought} the tags <think> and </think> {thought}</think>{answer}",
    "quoting an opening tag": '<think>{thought} "<think>" is a token. {thought}</think>{answer}',
    "quoting both tags": "<think>{thought} '<think>' … '</think>' {thought}</think>{answer}",
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


@pytest.mark.parametrize("form", [form for form in FORMS if not form.startswith(("granite", "opened", "closed"))])
def test_what_is_cut_off_has_no_answer(form: str) -> None:
    whole = FORMS[form].format(thought=THOUGHT, answer="\0")
    ends = [end for end in range(whole.index("It might") + 9, len(whole)) if whole[:end].endswith("no: 12")]
    assert ends
    for end in ends:
        assert without_reasoning(whole[:end]) == Said("", "unclosed")


UNTOUCHED = (
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
    *("analysis of the chart: 5", "commentary, 5", "analysis", "analysis\nOf it"),
    "It closes so. Answer: </think>",
    "Answer: [/THINK]<|end|>",
)
"""What only looks like reasoning; an answer may also begin with the name of a channel, or be a marker alone."""
TAGS = (("<think>", "</think>"), ("◁think▷", "◁/think▷"), ("[THINK]", "[/THINK]"))
LEFT: tuple[tuple[str, str, str], ...] = (
    # what stands before reasoning that is cut off is the answer
    ("Answer: Peru\n<think>Or was it Ch", "Answer: Peru", "unclosed"),
    ("Answer: Peru <think>Or was it Ch", "Answer: Peru", "unclosed"),
    ("Answer: <think> opens it, I think", "Answer:", "unclosed"),
    # markers around nothing are taken out and are no reasoning
    ("<think>\n\n</think>\n\n12", "12", ""),
    ("<|START_RESPONSE|>12<|END_RESPONSE|>", "12", ""),
    ("</think>\n12", "12", ""),
    ("[THINK][/THINK]12", "12", ""),
    ("First a. <think>b?</think> Then c.", "First a. \n Then c.", "stripped"),
    # a channel without tokens is known whatever its first letter
    *(
        (f"{lead}{channel}{letter}, Peru. assistantfinal{answer}", answer.strip(), "stripped")
        for channel in ("analysis", "commentary")
        for letter in ("it", "3", '"x"', "\n", " It", "It", "(a)", "é")
        for lead, answer in (("", "Chile"), ("\n ", " Answer: Chile"))
    ),
    # a marker that is all that is answered is the answer, outside of reasoning
    *(
        (before + text, text, "stripped" if before else "")
        for before in ("", "<think>Which tag?</think>", "Which tag?</think>\n", "<think>a<think>b</think>")
        for text in ("Answer: <think>", "It opens so.\n**Answer:** `</think>`", 'answer: "<think>".')
    ),
    ("<think>It may be. Answer: </think>", "", "stripped"),
    # a closing tag in backticks closes nothing within reasoning
    ("<think>a `</think>` b</think>12", "12", "stripped"),
    ("<think>a <think>b `</think>` c</think> so it is Peru", "", "unclosed"),
    # a quoted closing tag behind reasoning stays, as a mention does
    *(
        (
            f"{before}It prints {quotes[0]}</think>{quotes[1]} last",
            f"It prints {quotes[0]}</think>{quotes[1]} last",
            "stripped",
        )
        for quotes in ('""', "''", "“”", "``", "«»")
        for before in ("<think>Which tag?</think>", "Which tag?</think>")
    ),
    (
        "<think>Which tags?</think>They are <think> and </think>, see `</think>`",
        "They are <think> and </think>, see `</think>`",
        "stripped",
    ),
    # reasoning within reasoning that is closed once was cut off, unless an answer is announced behind it
    *(
        case
        for begin, end in TAGS
        for case in (
            (f"{begin}Let me {begin}hmm{end} so it is Peru, I th", "", "unclosed"),
            (f"First. {begin}Let me {begin}hmm{end} so it is Peru", "First.", "unclosed"),
            (f"{begin}a {begin}b{end} c {begin}d{end} Peru", "", "unclosed"),
            (f"{begin}a {begin}b{end} Answer: c {begin}d", "", "unclosed"),
        )
    ),
    *(
        (f"<think>{THOUGHT}<think>{THOUGHT}</think>{answer}", answer, "stripped")
        for answer in (
            *("Answer: 12", "So the answer is 12.", "**Answer:** 12", "label: 12", "Summary: 12", r"\boxed{12}"),
        )
    ),
)
"""A text, the answer in it, and what was done with its reasoning."""


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_only_looks_like_reasoning_is_untouched(text: str) -> None:
    assert without_reasoning(text) == Said(text, "")


@pytest.mark.parametrize(("text", "answer", "kind"), LEFT)
def test_what_is_left_of_a_text_is_its_answer(text: str, answer: str, kind: Any) -> None:
    assert without_reasoning(text) == Said(answer, kind)


PIECES = [
    *("<think>", "</think>", "<THINKING a=1>", "</thinking>", "◁think▷", "◁/think▷", "[THINK]", "[/THINK]"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|channel|>", "final<|message|>", "<|end|>"),
    *("<|start|>assistant", "<|return|>", "analysis", "assistantfinal", "A", "<thi", "nk>", "think", "<", ">", "`"),
    *('"', "“", " and ", "\n", " ", "\t", "x", "Mott", "Here is my thought process:", "Here is my response:", "|>"),
    *("Answer:", "commentary", "answer is", ".", "'"),
    *("<|channel>", "<channel|>", "<unused94>", "<unused95>", "<|END_RESPONSE|>", "<|START_RESPONSE|>", "ist", "fin"),
]
ANYTHING = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map("".join)


@settings(max_examples=60)
@given(ANYTHING)
def test_stripping_twice_is_stripping_once(text: str) -> None:
    once = without_reasoning(text)
    assert without_reasoning(once.answer) == Said(once.answer, "")


@settings(max_examples=60)
@given(st.text(), st.text(), st.text())
def test_any_text_between_markers_is_left_out_whatever_it_is(before: str, thought: str, answer: str) -> None:
    for text in (before, thought, answer):
        if without_reasoning(f"\0{text}").reasoning or "`" in text:
            return
    said = without_reasoning(f"<think>{thought}</think>\n{answer}")
    assert said == Said(answer.strip(), "stripped" if thought.strip() else "")


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_characters="<[◁"), max_size=200))
def test_a_text_without_markers_is_untouched(text: str) -> None:
    if not text.lstrip().startswith(("analysis", "commentary", "Here")):
        assert without_reasoning(text) == Said(text, "")


SIZE = 200_000
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
    "answers": "Answer: <think>" * (SIZE // 15),
    "nested": "<think>" * (SIZE // 16) + "</think>Answer:" * (SIZE // 16),
    "prose": "Here is my thought process:</think>" * (SIZE // 35) + "Here is my response:",
    "lines": "<think>\n" * (SIZE // 8),
    "blanks": " " * SIZE + "</think>",
}


WHAT_IS_LEFT = {
    **dict.fromkeys(("openings", "lines"), Said("", "unclosed")),
    **dict.fromkeys(("closings", "pairs", "blanks"), Said("", "")),
    **dict.fromkeys(("ends", "glued"), Said("", "stripped")),
    "answers": Said("Answer:", "unclosed"),
    "nested": Said("Answer:", "stripped"),
    "prose": Said("Here is my response:", ""),
}
"""The answer that is left of a hostile text; other texts do not change."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_long_texts_take_one_pass(kind: str) -> None:
    """If the time grew with the square of this length, the test would not end."""
    assert without_reasoning(HOSTILE[kind]) == WHAT_IS_LEFT.get(kind, Said(HOSTILE[kind], ""))
