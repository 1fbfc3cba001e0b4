"""Extracts the concise answer from a model's output by rules alone: MMLongBench-Doc's second stage without a judge.

In the public protocol a judge extracts the answer (the metric `judge-mmlongbench-doc` does so). The rules know the
requested format, and work well if a model was told to be concise. They read the part after the last "answer:".
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from mmlongbench.answers import NOT_ANSWERABLE, flat_list

FAIL_TO_ANSWER = "Fail to answer"
"""What is extracted if a model says that it cannot see, open or read the pages."""
MAX_CHARACTERS = 10_000
"""The maximum characters of an answer that are read; they begin after the last "answer:"."""
_MARKER = re.compile(r".*\banswer\s?:", re.DOTALL | re.IGNORECASE)
"""Finds the last "answer:": `.*` takes as much text as it can, so one pass is enough."""
_FORMAT = re.compile(r"\banswer format\s?:", re.IGNORECASE)
_INTRODUCTION = re.compile(r"(?:so,? |thus,? |therefore,? )?(?:the )?(?:final |correct )?answer is:? ", re.IGNORECASE)
_DOCUMENT = r"(?:the |this |these |those |any |your )?(?:\w+ ){0,2}(?:documents?|pages?|images?|reports?|texts?|files?)"
_CANNOT = r"(?:can ?not|could not|unable to|not able to)"
_LOOK = "(?:read|see|view|access|open|display|process)"
_FAILED = re.compile(rf"\b{_CANNOT} (?:\w+ ){{0,2}}{_LOOK} {_DOCUMENT}\b|\bfail to answer\b")
_HOLD = "(?:mention|provide|specify|contain|state|include|give)"
_KNOWN = "(?:mentioned|specified|provided|stated|given|available)"
_UNANSWERABLE = re.compile(
    r"\bnot answerable\b|\bunanswerable\b|^\W?n/a[\]).:]?(?:\s|$)"
    rf"|\b{_CANNOT} (?:be )?(?:answer|determine|tell|find)"
    rf"|\b(?:does|do) not (?:{_HOLD}|answer)\b.{{0,80}}\b(?:information|question)"
    rf"|\b{_DOCUMENT} (?:does|do) not {_HOLD}\b"
    r"|\b(?:does|do|did) not (?:mention|specify|state)\b"
    rf"|\bnot (?:{_KNOWN}|included) (?:in|by|on) {_DOCUMENT}\b"
    rf"|(?:^|\b(?:is|are|was|were|information) )not {_KNOWN}[.!]?$"
    r"|\b(?:no|not any|not enough) (?:\w+ )?information(?: (?:about|in|on|regarding|to|is|was|given|provided)\b|[.!]?$)"
)
_NUMBER = re.compile(r"(?:(?<!\w)[-+−])?(?:[$£€](?=\.?\d))?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)\s?%?")
_ALONE = re.compile(rf"(?<![\w.])(?<!\w[-−]){_NUMBER.pattern}")
"""Matches a number that is not part of a name, unlike the 19 of COVID-19."""
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS.split())})\b", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+(.*)")
_BETWEEN = re.compile(r",\s*and\s|,\s|\sand\s")


def extract_answer(response: str, answer_format: str) -> str:
    r"""Return the concise answer of a response, or "Not answerable" or "Fail to answer" if the response means that.

    The elements of a List are returned as JSON; a list in brackets is returned unchanged.

    >>> extract_answer("It rose.\nAnswer: **1,577 visitors**", "Integer")
    '1577'
    >>> extract_answer("- red\n- blue", "List"), extract_answer("The answer is red and blue.", "List")
    ('["red", "blue"]', '["red", "blue"]')
    >>> extract_answer("The document does not mention it.", "String"), extract_answer("I cannot read the image", "None")
    ('Not answerable', 'Fail to answer')
    """
    answer = concise(response)
    lowered = answer.lower().replace("’", "'").replace("can't", "can not").replace("n't", " not")
    if _FAILED.search(lowered):
        return FAIL_TO_ANSWER
    if _UNANSWERABLE.search(lowered):
        return NOT_ANSWERABLE
    return _BY_FORMAT.get(answer_format, _string)(answer)


def concise(response: str) -> str:
    """Return the text after the last "answer:" and before "answer format:".

    Bold type and an introduction such as "The answer is" are removed.
    """
    found = _MARKER.match(response)
    answer = (response[found.end() :] if found else response).strip()[:MAX_CHARACTERS]
    ended = _FORMAT.search(answer)
    answer = (answer[: ended.start()] if ended else answer).replace("**", "").strip("` \n\t")
    introduced = _INTRODUCTION.match(answer)
    return answer[introduced.end() :] if introduced else answer


def _number(answer: str) -> str:
    """Return the first number, without commas and currency; a number in a name counts only if there is no other number.

    Without a number, return the first word such as "three" as digits; without such a word, return the text (see
    `_string`).
    """
    if found := _ALONE.search(answer) or _NUMBER.search(answer):
        return re.sub(r"[,$£€\s+]", "", found[0]).replace("−", "-")
    if word := _NUMBER_WORD.search(answer):
        return str(_WORDS.split().index(word[0].lower()))
    return _string(answer)


def _integer(answer: str) -> str:
    return _number(answer).removesuffix("%")


def _string(answer: str) -> str:
    """Return the first paragraph, without brackets around it and a full stop at its end."""
    first = answer.split("\n\n", 1)[0].strip()
    if first.startswith("[") and first.endswith("]"):
        first = first[1:-1].strip()
    return first.removesuffix(".")


def _list(answer: str) -> str:
    """Return the elements as JSON: the lines with bullets or, without bullets, the parts between separators. A list in
    brackets is returned unchanged.
    """
    if flat_list(answer) is not None:
        return answer
    return json.dumps(list(_elements(answer)), ensure_ascii=False)


def _elements(answer: str) -> Sequence[str]:
    bullets = [found[1] for line in answer.splitlines() if (found := _BULLET.match(line))]
    if bullets:
        return [_string(element) for element in bullets]
    text = _string(answer)
    if ";" in text or "\n" in text:
        return [element.strip() for element in re.split(r"[;\n]", text) if element.strip()]
    return [element.strip(" '\"") for element in _BETWEEN.split(text) if element.strip()]


_BY_FORMAT: Mapping[str, Callable[[str], str]] = {
    "Int": _integer,
    "Integer": _integer,
    "Float": _number,
    "List": _list,
}
