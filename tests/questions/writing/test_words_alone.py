"""Whether the words of questions tell that they have no answer."""

from question_world import Doc

from mmlongbench.questions.writing.lines import Candidate
from mmlongbench.questions.writing.words_alone import MOST, told, words_alone

DOCS = [Doc(f"harbours-{number}", 9) for number in range(30)]


def asked(doc: Doc, page: int, n: int, *, edit: str = "") -> Candidate:
    fact = doc.cell(page, n)
    is_edit = bool(edit)
    return Candidate(
        slot=f"{doc.name}-{page}-{n}-{is_edit}",
        doc=doc.name,
        kind="unanswerable" if is_edit else "table",
        author="gpt-4o",
        question=fact.question.replace(fact.question[-5:-1], edit) if is_edit else fact.question,
        answer=fact.answers,
        answer_format="None" if is_edit else "Integer",
        pages=(),
        about=(page,),
    )


def questions(*, tells: bool) -> list[Candidate]:
    found = []
    for at, doc in enumerate(DOCS):
        other = next(each for each in DOCS[at + 1 :] + DOCS[:at] if each.years != doc.years)
        found += [asked(doc, page, page) for page in range(2, 9)]
        found += [asked(doc, page, page + 3, edit="1804" if tells else str(other.years[page % 4])) for page in (3, 6)]
    return found


def test_an_edit_like_the_questions_of_other_documents_is_not_told() -> None:
    found = words_alone(questions(tells=False))
    assert found.area is not None
    assert found.area <= MOST
    assert not found.is_told


def test_a_word_that_only_edits_have_is_told() -> None:
    found = words_alone(questions(tells=True))
    assert found.area is not None
    assert found.area > 0.9
    assert found.is_told


def test_few_documents_say_nothing() -> None:
    assert words_alone([asked(DOCS[0], 2, 0)]).area is None


def test_edits_that_are_told_are_dropped_until_no_word_tells() -> None:
    """The edits of every other document have a word of their own; the others are like questions of other documents."""
    plain, telling = questions(tells=False), questions(tells=True)
    edits = [each.slot for each in plain if not each.is_answerable]
    marked = {slot for at, slot in enumerate(edits) if at // 2 % 2}
    mixed = [new if new.slot in marked else old for old, new in zip(plain, telling, strict=True)]
    assert words_alone(mixed).is_told
    dropped = told(mixed)
    assert dropped.keys() <= set(edits)
    assert len(dropped.keys() & marked) > 0.8 * len(dropped)
    left = words_alone([each for each in mixed if each.slot not in dropped])
    assert not left.is_told
    assert told(mixed[::-1]) == dropped


def test_nothing_is_dropped_if_no_word_tells() -> None:
    assert told(questions(tells=False)) == {}


def test_few_questions_are_undecided() -> None:
    few = [asked(DOCS[0], 2, 0)]
    assert words_alone(few).is_undecided
    assert told(few) == {}
