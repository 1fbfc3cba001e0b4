"""The benchmark's own metrics, chosen by name; the functions that compute them are in the other modules of this folder.

The public code puts the prompt's last words ("Answer:") before a model's output. Most of its metrics score both this
whole text and the part after these words; the better score counts. If the output for a yes/no question contains
neither "yes" nor "no", the public code takes an answer that depends on the question's place in the file. The profile
`official` does the same. So does the profile `paper`, but it reads only the rest of the line after "Answer:", as the
public code did when the paper's figures were made. The profile `ours` puts nothing before an output. For a yes/no
question, it counts an output with neither "yes" nor "no" as wrong; it reads answers about documents as a person would
(`own.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mmlongbench.answers import after_prefix, flattened, normalised, rest_of_line
from mmlongbench.metrics.benchmark.answers import (
    MAX_SUMMARY,
    Scorer,
    binary_acc,
    class_label,
    cls_acc,
    mc_acc,
    option_letter,
    rouge,
    rouge_scorer,
    soft_acc,
    sub_em,
    total_count,
    yes_or_no,
)
from mmlongbench.metrics.benchmark.documents import FORMATS, doc_qa, format_fault
from mmlongbench.metrics.benchmark.own import own_doc_qa
from mmlongbench.task.metric import Profile, RuleMetric, Score, ScoringInput, Settings

PUBLIC_CODE = "EdinburghNLP/MMLongBench@22b9f27"
"""The version of the public code that `official` follows."""
PAPER = "arXiv:2505.10610"
"""The paper whose figures `paper` follows."""
ANSWER, LABEL, SUMMARY = "Answer:", "label:", "Summary:"
"""The last words of the tasks' prompts."""
LETTERS = "ABCDEFGHIJ"
"""The letters of options that are read in an output, in their order."""
LONG_ANSWER = "the answer has more than five words, for which token F1 says little; `--metrics judge` scores it"
"""Why `doc_qa` does not apply to an example with a long answer."""
DEFAULTS = (0, 1, 1, 0)
"""The answers (1 is yes) that the public code takes in turn for outputs that contain neither "yes" nor "no"."""


class BenchmarkMetric(RuleMetric):
    """A metric of the public code; `prefix` holds the last words of the prompts of the tasks that it scores."""

    profiles: ClassVar[Mapping[Profile, str]] = {"official": PUBLIC_CODE, "paper": PAPER, "ours": ""}
    prefix: ClassVar[str] = ANSWER

    def whole_text(self, asked: ScoringInput) -> str:
        """Return the whole text that is scored: the prompt's last words and the prediction. Under `ours` it is the
        prediction alone.
        """
        return asked.prediction if self.profile == "ours" else (asked.lead or self.prefix) + asked.prediction

    def parsed(self, text: str, prefix: str) -> str:
        """Return the text after a prefix; under `paper`, return only the rest of the line (see `rest_of_line`)."""
        return rest_of_line(text, prefix) if self.profile == "paper" else after_prefix(text, prefix)

    def texts_scored(self, asked: ScoringInput) -> tuple[str, ...]:
        """Return the texts that are scored; the best score counts."""
        whole = self.whole_text(asked)
        if self.profile == "ours":
            return (whole,)
        return tuple(dict.fromkeys((whole, self.parsed(whole, self.prefix))))

    def compared_answer(self, asked: ScoringInput) -> str:
        """Return the text after the prompt's last words as the metric reads it (see `read`)."""
        return self.read(self.parsed(self.whole_text(asked), self.prefix))

    def read(self, text: str) -> str:
        """Return the answer in a text; by default, the text as SQuAD compares answers."""
        return normalised(text)

    def best(self, function: Callable[[str, Any], float], asked: ScoringInput) -> Score:
        """Return the best score of the texts that are scored."""
        return Score(max(function(text, asked.answer) for text in self.texts_scored(asked)))


class SubstringExactMatch(BenchmarkMetric):
    """Whether an answer is part of the output, after both are normalised.

    The whole text and its part after "Answer:" are scored, and the better score counts.
    """

    name: ClassVar[str] = "sub_em"

    def score(self, asked: ScoringInput) -> Score:
        """Return 1 or 0."""
        whole = self.whole_text(asked)
        return Score(max(sub_em(text, asked.answer) for text in dict.fromkeys((whole, self.parsed(whole, ANSWER)))))


class YesNo(BenchmarkMetric):
    """Whether the last "yes" or "no" of the output is right; an output with neither word is a refusal.

    Under `official` and `paper` refusals count as No, Yes, Yes, No … in turn, by the question's place in the file;
    under `ours` a refusal is wrong.
    """

    name: ClassVar[str] = "binary_acc"

    def read(self, text: str) -> str:
        """Return the last "yes" or "no" as 1 or 0; None for a refusal."""
        return f"{yes_or_no(text)}"

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why no output can be right: the answer has neither "yes" nor "no"."""
        return "expected yes or no" if yes_or_no(str(asked.answer)) is None else ""

    def score(self, asked: ScoringInput) -> Score:
        """Return 1 or 0, with the detail `refused`: whether the output is a refusal."""
        text = self.whole_text(asked)
        default = DEFAULTS[asked.place % len(DEFAULTS)] if self.profile != "ours" else None
        return Score(binary_acc(text, str(asked.answer), default), {"refused": yes_or_no(text) is None})


class TotalCount(BenchmarkMetric):
    """Whether the counts in the output have the same sum as those of the answer."""

    name: ClassVar[str] = "soft_acc"

    def read(self, text: str) -> str:
        """Return the sum of the counts, in hexadecimal because it may have too many digits for a decimal number."""
        total = total_count(text)
        return "" if total is None else f"{total:x}"

    def full_answer(self, asked: ScoringInput) -> str:
        """Return all counts."""
        return str(asked.answer)

    def score(self, asked: ScoringInput) -> Score:
        """Return 1 or 0."""
        gold = asked.answer
        if not isinstance(gold, list) or not all(isinstance(count, int) for count in gold):
            return _mistyped(gold, "a list of whole numbers")
        return self.best(soft_acc, asked)


class OptionLetter(BenchmarkMetric):
    """Whether the letter of the option is right."""

    name: ClassVar[str] = "mc_acc"

    def read(self, text: str) -> str:
        """Return the place of the option; None if no letter is found."""
        return f"{option_letter(text)}"

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer cannot be scored: it is no number, or no letter that is read stands for it."""
        is_read = not isinstance(asked.answer, int) or 0 <= asked.answer < len(LETTERS)
        expected = f"expected the place of an option, from 0 to {len(LETTERS) - 1} (A to {LETTERS[-1]})"
        return super().answer_fault(asked) if is_read else expected

    def full_answer(self, asked: ScoringInput) -> str:
        """Return the letter of the option."""
        gold = asked.answer
        return LETTERS[gold] if isinstance(gold, int) and 0 <= gold < len(LETTERS) else str(gold)

    def score(self, asked: ScoringInput) -> Score:
        """Return 1 or 0."""
        if not isinstance(asked.answer, int):
            return _mistyped(asked.answer, "the place of an option")
        return self.best(mc_acc, asked)


class ClassLabel(BenchmarkMetric):
    """Whether the label is right."""

    name: ClassVar[str] = "cls_acc"
    prefix: ClassVar[str] = LABEL

    def read(self, text: str) -> str:
        """Return the label; None if no number is found."""
        return f"{class_label(text)}"

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer cannot be scored: it is no number, or below 0, and a sign is not read."""
        is_read = not isinstance(asked.answer, int) or asked.answer >= 0
        return super().answer_fault(asked) if is_read else "expected a label, which is at least 0"

    def score(self, asked: ScoringInput) -> Score:
        """Return 1 or 0."""
        if not isinstance(asked.answer, int):
            return _mistyped(asked.answer, "a label")
        return self.best(cls_acc, asked)


class DocumentAnswer(BenchmarkMetric):
    """Scores answers about documents by the format of the gold answer; the text after "Answer:" is compared.

    Today the public code uses a judge by default; `official` does what this code does with `--docqa_llm_judge
    False`, and `choices` says so. The paper's figures were made without a judge.
    """

    name: ClassVar[str] = "doc_qa"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.choices = ("docqa_llm_judge off",) if self.profile == "official" else ()

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return that the answer is long if the builder puts the example into this group; token F1 of a long answer
        says little. The public datasets have no such group.
        """
        return LONG_ANSWER if "long" in asked.facets.get("answer length", ()) else ""

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return why the answer cannot be scored by its format; empty if it can."""
        return super().answer_fault(asked) or format_fault(asked.answer, str(asked.answer_format))

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1."""
        kind = asked.answer_format
        if not isinstance(kind, str) or kind not in FORMATS:
            return Score(None, failure=f"answer_format is {kind!r:.80}, expected one of {', '.join(FORMATS)}")
        compare = own_doc_qa if self.profile == "ours" else doc_qa
        return Score(compare(self.parsed(self.whole_text(asked), ANSWER), asked.answer, kind))


class RougeL(BenchmarkMetric):
    """The F1 of the longest common subsequence of a summary and its reference (rougeL of rouge-score, stemmed)."""

    name: ClassVar[str] = "rouge"
    prefix: ClassVar[str] = SUMMARY

    def answer_fault(self, asked: ScoringInput) -> str:
        """Return nothing: every answer has a score, and to load nltk and scipy for it would take a build a second."""
        return ""

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1, with the four figures of the public code as details."""
        answers = list(flattened(asked.answer))
        texts = self.texts_scored(asked)
        texts = texts if self.profile == "paper" else _needed(texts, answers)
        each = [rouge(self._scorer, text, answers) for text in texts]
        figures = {key: max(found[key] for found in each) for key in each[0]}
        is_cut = any(len(text) > MAX_SUMMARY for text in texts)
        return Score(figures["rougeL_f1"], {**figures, **({"cut": True} if is_cut else {})})

    @cached_property
    def _scorer(self) -> Scorer:
        return rouge_scorer()


def _needed(texts: tuple[str, ...], answers: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that can give the best score, so that a summary is compared only once if that is enough.

    The whole text differs from the part after "Summary:" by this word only. If no reference has the word, the word
    matches nothing and makes the text longer, so the whole text never scores better.
    """
    has_word = any("summar" in answer.lower() for answer in answers)
    return texts if has_word or any(len(text) > MAX_SUMMARY for text in texts) else texts[-1:]


def _mistyped(gold: object, expected: str) -> Score:
    return Score(None, failure=f"the answer is {gold!r:.80}, expected {expected}")
