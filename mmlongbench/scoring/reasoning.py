"""Removes reasoning from a model's output, so that the answer is left. It knows the markers, but no metric.

The markers are those that models use today: `<think>` and its variants (`<thinking>`, `<thought>`, `<reasoning>`,
`<scratchpad>`, in upper or lower case, also with attributes or with a prefix such as `seed:`), Kimi's `◁think▷`,
Mistral's `[THINK]`, Command's `<|START_THINKING|>`, Apertus's `<|inner_prefix|>`, `<|begin_of_thought|>`, MedGemma's
`<unused94>`, Gemma's `<|channel>`, harmony's channels (also where the special tokens were not printed:
"analysis… assistantfinal…", "commentary… assistantfinal…") and Granite's "Here is my thought process: … Here is my
response: …".

A closing marker without an opening one ends reasoning that the chat template opened: everything before it is reasoning.
An opening marker without a closing one begins reasoning that was cut off: everything after it is reasoning. If a tag
is opened twice and closed only once, everything after the first tag is reasoning, too. But if the model announces an
answer after the last closing tag ("Answer:", "The answer is", "label:", "Summary:", a box), the reasoning ends at this
tag.

Some markers are part of the answer: markers in quotation marks, a pair of markers within a line with at most
punctuation, "and" or "or" between them ("the tags <think> and </think>"), and a marker that is the only text after the
last "Answer:".
"""

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, TypeAlias

Reasoning: TypeAlias = Literal["", "stripped", "unclosed", "kept"]
"""What was done with reasoning. `stripped`: it was removed; `unclosed`: it was cut off, so only the text before it can
be an answer; `kept`: it is scored, because the user asked for this; empty: there was none."""

_NAME = r"(?:[a-z]{1,20}[:_])?(?:think(?:ing)?|thoughts?|reasoning|scratchpad)(?::[a-z]{1,20})?"
_HARMONY = (
    r"(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>{name}[^<\n]{{0,100}}(?:<\|constrain\|>[^<\n]{{0,40}})?"
)
_ANSWERS = _HARMONY.format(name="final") + r"<\|message\|>"
_THINKS = _HARMONY.format(name=r"(?!final)[a-z]{1,20}") + r"<\|message\|>"
_MARKER = re.compile(
    r"(?=[<◁\[acH])(?:"
    rf"(?P<open>(?i:<(?P<opened>{_NAME})(?:[ \t][^<>\n]{{0,200}})?>)|◁think▷|\[THINK\]|<\|START_THINKING\|>"
    rf"|<\|inner_prefix\|>|<\|begin_of_thought\|>|<unused94>|<\|channel>|{_THINKS})"
    rf"|(?P<close>(?i:</(?P<closed>{_NAME})[ \t]{{0,20}}>)|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|START_RESPONSE\|>"
    rf"|<\|inner_suffix\|>|<\|end_of_thought\|>|<\|begin_of_solution\|>|<unused95>|<channel\|>|{_ANSWERS})"
    r"|(?P<glued>analysis|commentary)|(?P<glued_end>assistantfinal)"
    r"|(?P<prose>Here(?:'s| is) my thought process:)|(?P<prose_end>Here(?:'s| is) my response:))"
)
"""Matches one marker. Each alternative looks at a bounded number of characters, and none spans lines."""
_HINTS = ("<", "◁", "THINK]", "my thought process:")
"""A text has markers only if it contains one of these, or if `_GLUED` matches its beginning. This check is fast."""
_GLUED = re.compile(r"\s*(?:analysis|commentary)")
_KINDS = ("open", "close", "glued", "glued_end", "prose", "prose_end")
_QUOTES = "`'\"“”‘’«»"
_NOTHING = re.compile(r"[\s.,;:…/|&-]*(?:and|or)?[\s.,;:…/|&-]*", re.IGNORECASE)
"""Matches the text between two markers that are only mentioned."""
_MAX_NOTHING = 20
_ANSWER = re.compile(r"answer\*{0,2}:", re.IGNORECASE)
_ANNOUNCED = re.compile(r"\b(?:answer|summary|label)\*{0,2}:|\banswer\*{0,2} is\b|<answer>|\\boxed\{", re.IGNORECASE)
"""Matches the words with which models announce an answer."""
_ENDS = ("<|return|>", "<|end|>", "<|END_RESPONSE|>", "<|end_of_solution|>")
"""Tokens after an answer that belong to the format of reasoning."""


@dataclass(frozen=True, slots=True)
class Said:
    """The answer of a model, and what was done with its reasoning."""

    answer: str
    reasoning: Reasoning
    """What was done with the reasoning; empty if there was none. If it is empty, the answer is the whole output
    without markers that enclose nothing."""


def without_reasoning(text: str) -> Said:
    r"""Return the answer in a text, in one pass.

    >>> without_reasoning("<think>Peru? No.</think>\nAnswer: Chile")
    Said(answer='Answer: Chile', reasoning='stripped')
    >>> without_reasoning("It is Peru.</think>Chile"), without_reasoning("<think>It is Peru, I th")
    (Said(answer='Chile', reasoning='stripped'), Said(answer='', reasoning='unclosed'))
    >>> without_reasoning("the tags <think> and </think>").reasoning, without_reasoning("a < b").reasoning
    ('', '')
    """
    may_have_markers = any(hint in text for hint in _HINTS) or _GLUED.match(text)
    markers = list(_MARKER.finditer(text)) if may_have_markers else []
    if not markers:
        return Said(text, "")
    last_response = max((marker.start() for marker in markers if marker["prose_end"]), default=-1)
    last_final = max((marker.start() for marker in markers if marker["glued_end"]), default=-1)
    scan = _Scan(text, last_response, last_final, _answered(text))
    for marker, following in zip_longest(markers, markers[1:]):
        scan.step(marker, following)
    return scan.end()


@dataclass(slots=True)
class _Scan:
    """Processes the markers of a text one by one. What a marker means depends on the answer so far and on the text
    after the marker.
    """

    text: str
    last_response: int
    """The position of the last "Here is my response:"; -1 if there is none."""
    last_final: int
    """The position of the last "assistantfinal"; -1 if there is none."""
    answered: int
    """The position of a marker that is the answer itself; -1 if there is none."""
    answer: list[str] = field(default_factory=list)
    """The parts of the answer so far."""
    start: int = 0
    """The position of the first character that was not processed yet."""
    seen: int = 0
    """The end of the text that `has_text` and `has_text_on_line` are about."""
    inside: str = ""
    """The kind of the marker that opened the current reasoning; empty outside reasoning."""
    name: str = ""
    """The spelling of the marker that opened the current reasoning."""
    nested: Counter[str] = field(default_factory=Counter)
    """How many markers within this reasoning are still open, by spelling; closing one of them does not end the
    reasoning."""
    inner_end: int = -1
    """The end of the last marker that closed a nested pair with the spelling `name`; -1 if there is none, or if an
    opening marker follows it."""
    has_text: bool = False
    """Whether the answer so far has anything but blanks."""
    has_text_on_line: bool = False
    """Whether the last line of the answer so far has anything but blanks."""
    has_mention: bool = False
    """Whether the answer so far mentions an opening marker."""
    is_glued: bool = False
    """Whether harmony's channels occur here without their special tokens."""
    mentioned: int = -1
    """The position of the closing marker of the last pair that the answer only mentions; -1 if there is none."""
    is_changed: bool = False
    has_reasoning: bool = False
    """Whether anything except blanks was removed."""

    def step(self, marker: re.Match[str], following: re.Match[str] | None) -> None:
        """Process one marker."""
        if self.inside and self._is_nested(marker):
            return
        if not self.inside:
            self._look(marker.start())
        if self._is_open(marker, following):
            self._keep(marker.start())
            self.inside, self.name, self.is_changed = _kind(marker), _name(marker), True
            self.nested.clear()
            self.inner_end = -1
            self.is_glued |= self.inside == "glued"
            self.start = marker.end()
        elif self._is_close(marker):
            if self.inside:
                self.has_reasoning |= bool(self.text[self.start : marker.start()].strip())
            else:  # the chat template had opened the reasoning
                self.answer.clear()
                self.has_reasoning |= self.has_text
                self.has_text = self.has_mention = False
            self.inside, self.is_changed, self.has_text_on_line = "", True, False
            self.start = self.seen = marker.end()

    def end(self) -> Said:
        """Return the answer."""
        if not self.is_changed:
            return Said(self.text, "")
        reasoning: Reasoning = "unclosed" if self.inside else "stripped" if self.has_reasoning else ""
        if not self.inside:
            self._keep(len(self.text))
        elif self.inner_end >= 0 and _ANNOUNCED.search(self.text, self.inner_end):
            rest = without_reasoning(self.text[self.inner_end :])
            self.answer.append(rest.answer)
            reasoning = rest.reasoning or "stripped"
        return Said(_without_ends("\n".join(self.answer).strip()), reasoning)

    def _is_open(self, marker: re.Match[str], following: re.Match[str] | None) -> bool:
        if self.inside:
            return False
        match _kind(marker):
            case "open":
                is_mention = self._is_quoted(marker, _QUOTES) or self._is_empty_pair(marker, following)
                is_mention |= marker.start() == self.answered
                self.has_mention |= is_mention
                return not is_mention
            case "glued":
                is_cut_off = "A" <= self.text[marker.end() : marker.end() + 1] <= "Z"
                return not self.has_text and (is_cut_off or marker.start() < self.last_final)
            case "prose":
                return not self.has_text and marker.start() < self.last_response
        return False

    def _is_close(self, marker: re.Match[str]) -> bool:
        match _kind(marker):
            case "close":
                return not (self._is_quoted(marker, "`") if self.inside else self._is_mentioned(marker))
            case "glued_end":
                return self.is_glued
            case "prose_end":
                return self.inside == "prose"
        return False

    def _is_nested(self, marker: re.Match[str]) -> bool:
        """Return whether a marker opens or closes a nested pair within the current reasoning, or is only quoted there.

        Channels are not nested: a channel ends where the next begins.
        """
        kind, name = _kind(marker), _name(marker)
        if name == self.name == "" or kind not in ("open", "close"):
            return False
        if self._is_quoted(marker, _QUOTES):
            quoted = f"quoted {name}"
            if kind == "open" or self.nested[quoted]:
                self.nested[quoted] += 1 if kind == "open" else -1
                return True
            if self._is_quoted(marker, "`"):
                return True
        if kind == "open":
            if self.inner_end < 0 or marker.start() != self.answered:
                self.nested[name] += 1
                self.inner_end = -1
            return True
        if not self.nested[name]:
            return False
        self.nested[name] -= 1
        if name == self.name:
            self.inner_end = marker.end()
        return True

    def _is_mentioned(self, marker: re.Match[str]) -> bool:
        """Return whether a closing marker outside reasoning is part of the answer."""
        if marker.start() in (self.mentioned, self.answered) or self._is_quoted(marker, "`"):
            return True
        if not self._is_quoted(marker, _QUOTES):
            return False
        around = self.text[max(self.start, marker.start() - 2) : marker.start() - 1]
        around += self.text[marker.end() + 1 : marker.end() + 2]
        return self.has_mention or not any(letter.isalnum() for letter in around)

    def _is_quoted(self, marker: re.Match[str], quotes: str) -> bool:
        before, behind = marker.start() - 1, marker.end()
        if before < self.start or behind >= len(self.text):
            return False
        return self.text[before] in quotes and self.text[behind] in quotes

    def _is_empty_pair(self, marker: re.Match[str], following: re.Match[str] | None) -> bool:
        """Return whether a marker in the middle of a line is followed by a closing marker, with at most punctuation,
        "and" or "or" between them.
        """
        if not self.has_text_on_line or following is None or _kind(following) != "close":
            return False
        if following.start() - marker.end() > _MAX_NOTHING:
            return False
        is_empty = bool(_NOTHING.fullmatch(self.text, marker.end(), following.start()))
        self.mentioned = following.start() if is_empty else -1
        return is_empty

    def _look(self, upto: int) -> None:
        """Update `has_text` and `has_text_on_line` from the text before a marker; each character is read once."""
        _, newline, line = self.text[self.seen : upto].rpartition("\n")
        self.has_text_on_line = bool(line.strip()) or (self.has_text_on_line and not newline)
        self.has_text |= bool(self.text[self.seen : upto].strip())
        self.seen = max(self.seen, upto)

    def _keep(self, upto: int) -> None:
        part = self.text[self.start : upto]
        if part.strip():
            self.answer.append(part)


def _kind(marker: re.Match[str]) -> str:
    """Return the kind of a marker: the name of the outermost group that it matched."""
    return next(kind for kind in _KINDS if marker[kind])


def _name(marker: re.Match[str]) -> str:
    """Return the spelling of a marker, without the slash of a closing one; empty for markers that cannot be nested."""
    if marker[0][0] in "◁[":
        return marker[0].replace("/", "").lower()
    return (marker["opened"] or marker["closed"] or "").lower()


def _answered(text: str) -> int:
    """Return the position of a marker that is the only text after the last "Answer:"; -1 if there is none."""
    last = deque(_ANSWER.finditer(text), maxlen=1)
    if not last:
        return -1
    begin, rest = last[0].end(), _without_ends(text[last[0].end() :].rstrip())
    alone = rest.strip().strip(f"{_QUOTES}*.").strip()
    marker = _MARKER.fullmatch(alone)
    return begin + rest.index(alone) if marker and _kind(marker) in ("open", "close") else -1


def _without_ends(answer: str) -> str:
    """Return an answer without the tokens of `_ENDS` at its end, and without the blanks before these tokens."""
    end = len(answer)
    while ending := next((ending for ending in _ENDS if answer.endswith(ending, 0, end)), ""):
        end -= len(ending)
        while end and answer[end - 1].isspace():
            end -= 1
    return answer[:end]
