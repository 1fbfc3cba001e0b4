"""Answers that stand where they should not."""

from collections.abc import Iterable

import asked_questions
import pytest
from asked_questions import unit

from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.leakage import NEGATIVE, REST, TWICE, Leakage, in_other_questions, searched
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit


def asked(
    id: str, subject: str, answer: str | tuple[str, ...], question: str = "", *units: ShownUnit, is_free: bool = True
) -> AskedQuestion:
    answers = (answer,) if isinstance(answer, str) else answer
    return asked_questions.asked(id, question, *units, subject=subject, answers=answers, is_free=is_free)


def of_questions(questions: Iterable[AskedQuestion]) -> Finding | None:
    return in_other_questions("x", [searched(each) for each in questions])


def of_contexts(contexts: list[AskedQuestion]) -> dict[str, Finding]:
    leakage = Leakage("x")
    for context in contexts:
        leakage.add(context)
    return {each.kind: each for each in leakage.findings()}


NAMES = ("Oslo", "Bergen", "Narvik", "Molde", "Hamar", "Skien", "Alta", "Vard", "Larvik", "Moss Hill")


def pairs(leaks: int) -> list[AskedQuestion]:
    """Ten documents with two questions each; in the first ones, the second question has the answer of the first."""
    questions = []
    for n, name in enumerate(NAMES):
        questions.append(asked(f"{n}a", f"doc {n}", name, "Where did the mayor live?"))
        place = name if n < leaks else "the town"
        questions.append(asked(f"{n}b", f"doc {n}", f"{n} boats", f"How many boats did {place} have?"))
    return questions


def test_an_answer_in_another_question_about_the_same_thing_is_a_leak() -> None:
    finding = of_questions(pairs(6))
    assert finding is not None
    assert (finding.verdict, finding.questions, finding.clusters) == ("leak", 20, 10)
    assert finding.examples == ("0a", "1a", "2a", "3a", "4a", "5a")
    assert finding.chance == 0
    assert "'oslo' stands in 0b" in finding.evidence


def test_a_question_about_something_else_tells_no_answer() -> None:
    questions = [asked("a", "A", "Oslo", "Where?"), asked("b", "B", "Bergen", "How old is Oslo?")]
    assert of_questions(questions) is None  # no cluster has two questions


def test_words_that_stand_in_every_question_are_expected_by_chance() -> None:
    questions = []
    for n in range(20):
        questions.append(asked(f"{n}a", f"doc {n}", "the report", f"Which paper has {n} pages?"))
        questions.append(asked(f"{n}b", f"doc {n}", f"name {n}", f"Who wrote the report {n}?"))
    finding = of_questions(questions)
    assert finding is not None
    assert finding.found == 0.5
    assert finding.chance == pytest.approx(0.5)
    assert finding.verdict == "undecided"


@pytest.mark.parametrize("answer", ["1200", "Ulm", "42 %", "a b c"])
def test_short_answers_and_numbers_are_not_looked_for(answer: str) -> None:
    assert searched(asked("a", "A", answer)).answers == ()


def test_answers_to_choose_from_are_not_looked_for() -> None:
    assert searched(asked("a", "A", "Harbour", is_free=False)).answers == ()
    assert searched(asked("a", "A", "Harbour")).answers == (" harbour ",)


@pytest.mark.parametrize("text", ["They saw OSSERY  ridge.", "the Ossery-Ridge", "Ｏｓｓｅｒｙ Ridge range"])
def test_an_answer_in_a_negative_is_a_leak_in_any_spelling(text: str) -> None:
    contexts = [
        asked(
            "a", "A", ("Unknown hills", "Ossery Ridge"), "?", unit("gold", "Gold"), unit("negative", "Title: ", text)
        ),
        asked("b", "B", "Vorrin", "?", unit("gold", "Vorrin"), unit("negative", "Vorrington")),
    ]
    finding = of_contexts(contexts)[NEGATIVE]
    assert (finding.verdict, finding.examples, finding.questions) == ("leak", ("a",), 2)
    assert "'ossery ridge' stands in a unit (negative)" in finding.evidence


def test_the_answer_in_the_title_of_a_negative_is_found() -> None:
    contexts = [asked("a", "A", "Ossery Ridge", "?", unit("negative", "Document (Title: Ossery Ridge): ", "Hills."))]
    assert of_contexts(contexts)[NEGATIVE].examples == ("a",)


def test_common_words_of_padding_are_expected_by_chance() -> None:
    padding = unit("padding", "The total of Oslo, Bergen, Narvik, Molde, Hamar, Skien, Alta, Vard, Larvik, Moss Hill")
    common = [asked(name, name, name, "?", padding) for name in NAMES]
    finding = of_contexts(common)[REST]
    assert (finding.found, finding.chance, finding.verdict) == (1, 1, "clean")
    planted = [asked(name, name, name, "?", unit("padding", f"It is {name}, they say")) for name in NAMES]
    finding = of_contexts(planted)[REST]
    assert (finding.found, finding.chance, finding.verdict) == (1, 0, "leak")


def test_an_answer_of_many_questions_that_stands_everywhere_is_expected_by_chance() -> None:
    padding = unit("padding", "The ferry goes to Norway.")
    answers = ["Norway" if number % 2 else f"place {'abcdefgh'[number % 8] * 4} {number}" for number in range(400)]
    finding = of_contexts([asked(str(n), str(n), answer, "?", padding) for n, answer in enumerate(answers)])[REST]
    assert finding.found == 0.5
    assert finding.chance == pytest.approx(0.5, abs=0.03)
    assert finding.verdict != "leak"


def test_pages_of_the_document_itself_are_not_searched() -> None:
    contexts = [asked(name, name, name, "?", unit("own", f"It is {name}")) for name in NAMES]
    assert of_contexts(contexts) == {}


def test_a_gold_text_that_is_there_twice_is_found_under_another_title() -> None:
    text = "The old oak was planted by the gardener of the abbey."
    gold, again = unit("gold", "Title: Oak", text), unit("negative", "Title: Elm", text.upper())
    finding = of_contexts([asked("a", "A", "17", "?", gold, again), asked("b", "B", "18", "?", gold)])[TWICE]
    assert (finding.verdict, finding.examples) == ("leak", ("a",))


def test_a_needle_that_stands_in_another_text_is_found() -> None:
    needle = "The pass phrase of the pier is gannet 410."
    inside = ShownUnit("", "own", (f"{needle} More.",), (), is_gold=True)
    other = unit("padding", f"Before. {needle} After.")
    context = asked_questions.asked("a", "?", inside, other, answers=("gannet 410",), needles=(needle,))
    assert of_contexts([context])[TWICE].examples == ("a",)
