"""From a scripted server over `run` to the table: a model that looks, and answers one question without looking."""

from dataclasses import replace
from pathlib import Path

from counting_server import sizes_in, text_in, tokens_of
from model_server import Request, Said
from runs import NUMBER, OPTIONS, asked

from mmlongbench.io.progress import Progress
from mmlongbench.shortcuts.contexts.audit import audit_contexts

BLIND = {"What is its wood?": "hard"}
"""The answers that the model knows without its pages."""
SEEN = {**BLIND, "What is its bark?": "white", "Who planted it?": "Not answerable"}
"""The answers that it gives if it is shown pages."""
CONTEXTS = ("", "none", "text-only", "images-only", "shuffled", "oracle")


def looking(request: Request) -> Said:
    """Answer as a model that reads pages, and knows one answer without them."""
    known = SEEN if sizes_in(request) else BLIND
    words = next((answer for question, answer in known.items() if question in text_in(request)), "nothing")
    return Said(words, prompt_tokens=tokens_of(request))


def test_the_table_of_a_run_equals_the_script_of_the_server(finished: Path, tmp_path: Path) -> None:
    for context in CONTEXTS:
        out = tmp_path / "predictions" / f"m.{context or 'full'}.jsonl"
        asked(finished, out, looking, replace(OPTIONS, context=context))
    audit = audit_contexts(finished, [tmp_path / "predictions"], Progress(False))
    found = audit.rows[0]
    means = {each.context: (each.mean, each.questions) for each in found.means}
    of_all = len(SEEN) / NUMBER
    assert means == {
        "": (of_all, NUMBER),
        "none": (1 / NUMBER, NUMBER),
        "text-only": (1 / NUMBER, NUMBER),
        "images-only": (of_all, NUMBER),
        "shuffled": (of_all, NUMBER),
        "oracle": (2 / 5, 5),  # the question that cannot be answered has no page that holds the answer
    }
    differences = {each.context: (each.mean, each.examples) for each in found.differences}
    assert differences["none"] == (of_all - 1 / NUMBER, NUMBER)
    assert differences["oracle"] == (0.0, 5)
    assert {each.need and each.need.verdict for each in found.differences} == {None, "undecided"}
    assert (audit.blind_counts[0].right, audit.blind_counts[0].listed) == (1, 0)
    assert audit.notes == ()
