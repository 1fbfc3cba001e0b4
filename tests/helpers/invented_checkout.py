"""A checkout in the form of the public code's: the same files, names and places, every word invented here."""

from pathlib import Path

SUMMARIES, DOCUMENTS = "scripts/eval_gpt4_summ.py", "utils_prompt.py"
EXECUTED = "executed.txt"
"""Appears beside a file that was run."""
HEAD = f'''import argparse
import not_installed_anywhere
from pathlib import Path

Path(__file__).with_name("{EXECUTED}").write_text("run")
LIMIT: int = 5
'''
FLUENCY = 'Reads {kind} well? {{{{"fluency": 1}}}} or {{{{"fluency": 0}}}}.\n\nText: "{{text}}"\n'
RECALL = 'Points of a {kind}: {{{{"recall": 6}}}}.\n\nKey points:\n{{keypoints}}\n\nSummary: <{{summary}}>\n'
PRECISION = (
    'Sentences of a {kind}: {{{{"precision": 5, "sentence_count": 11}}}}.\n\n'
    "Expert: <{{expert_summary}}>\n\nProvided: <{{summary}}>\n"
)
CASE = "[Case]\n<Q>: {question}\n<Gold>: {reference}\n<Said>: {prediction}\n\n"


def summary_prompts() -> dict[str, str]:
    """The six prompts about summaries, by name."""
    asked = {"fluency": FLUENCY, "recall": RECALL, "precision": PRECISION}
    kinds = {"gov": "report", "lexsum": "lawsuit"}
    return {
        f"{call}_prompt_{end}": text.format(kind=kind) for end, kind in kinds.items() for call, text in asked.items()
    }


def document_prompts() -> dict[str, str]:
    """The four prompts about document questions, by name; the rubrics have braces of their own."""
    return {
        "DOC_QA_JUDGE_PROMPT": 'Mark it.\n[Score]: x points\n[JSON]:\n{"answer_score": <0 or 1>}\n\n',
        "CURRENT_CASE_PROMPT": CASE,
        "DOC_QA_LIST_F1_JUDGE_PROMPT": 'Count.\n[JSON]:\n{"student_answer_count": <n>, "covered_count": <n>}\n\n',
        "CURRENT_LIST_CASE_PROMPT": CASE,
    }


def source(prompts: dict[str, str]) -> str:
    """A Python file that assigns them."""
    assigned = "".join(f'{name}="""{text}"""\n# about it\n\n' for name, text in prompts.items())
    return (
        f"{HEAD}\n{assigned}def main(text=fluency_prompt_gov):\n    filled = text.format(text='x')\n    return filled\n"
    )


def draw_checkout(folder: Path) -> Path:
    """Write both files, with code around the prompts that must not run."""
    for file, prompts in ((SUMMARIES, summary_prompts()), (DOCUMENTS, document_prompts())):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(source(prompts), "utf-8")
    return folder
