"""Under `ours`, an answer about a document is right if a person would accept it, however it is written."""

import pytest

from mmlongbench.metrics.benchmark import DocumentAnswer, doc_qa
from mmlongbench.metrics.benchmark.own import own_doc_qa
from mmlongbench.task.metrics import ScoringInput, Settings

SAME = [
    ("−5", "-5", "Integer"),
    ("1 234", "1234", "Integer"),
    ("1\u202f234", "1234", "Integer"),
    ("12,500", "12500", "Integer"),
    ("1,234,567.5", "1234567.5", "Float"),
    ("12,5", "12.5", "Float"),
    ("1.2e6", "1200000", "Integer"),
    ("1e3", "1e3", "Float"),
    ("½", "0.5", "Float"),
    ("2½ miles", "2.5", "Float"),
    ("0.21", "21%", "Float"),
    ("about 4 or 5", "5", "Integer"),
    ("Zu\u0308rich", "Zürich", "String"),
    ("oﬃce", "office", "String"),
    ("office", "oﬃce", "String"),
    ("the mayor’s house", "the mayor's house", "String"),
    ("اﻹﻧﺘﺎﺟﻴﺔ", "الإنتاجية", "String"),
    ("答案是艾勒里。", "艾勒里", "String"),
    ("The answer is 2.3 Mbps.", "2.3 Mbps", "String"),
    ("The answer is Not answerable.", "Not answerable", "None"),
    ('["a","b"]', '["b", "a"]', "List"),
    ("b and a", '["a", "b and"]', "List"),
    ('["2", "red"]', '["red", "2"]', "List"),
    ("4200000", "$4.2 million", "String"),
    ("$4,200,000", "$4.2 million", "String"),
    ("4.2", "4.2 million", "String"),
    ("5", "€5", "String"),
    ("(17)%", "17%", "Float"),
    ("There are 42 people.", "42", "String"),
    ("US$4.2 million", "$4.2 million", "String"),
    ("30 percent", "30%", "String"),
    ("4.2B", "4.2 billion", "String"),
    ("10-15", "10–15", "String"),
    ("–5", "-5", "Integer"),
    ("12.345,67", "12345.67", "Float"),
    ("1 and 234", "[1,234]", "List"),
    ("[10,20]", "[10, 20]", "List"),
    ("100 200 300", '["100","200","300"]', "List"),
    ("2\n150\n300", '["2","150","300"]', "List"),
]
OTHER = [
    ("4.2 billion", "$4.2 million", "String"),
    ("€5", "$5", "String"),
    ("-3", "3", "Integer"),
    ("125", "12.5", "Float"),
    ("1 235", "1234", "Integer"),
    ('["2", "blue"]', '["red", "3"]', "List"),
    ("艾勒", "東京都", "String"),
    ("里勒艾", "艾勒里", "String"),
    ("", "A", "String"),
    ("The", "A", "String"),
    ("", "%", "String"),
    ("-", "+", "String"),
    ("", "[]", "List"),
    ("1234", "[1,234]", "List"),
    ("10.2", "[10,20]", "List"),
    ("10⁶", "106", "Integer"),
    ("3-5", "5", "Integer"),
]


@pytest.mark.parametrize(("said", "gold", "form"), SAME)
def test_the_same_value_is_right_however_it_is_written(said: str, gold: str, form: str) -> None:
    assert own_doc_qa(said, gold, form) == 1.0
    assert own_doc_qa(gold, gold, form) == 1.0


@pytest.mark.parametrize(("said", "gold", "form"), OTHER)
def test_another_value_is_wrong(said: str, gold: str, form: str) -> None:
    assert own_doc_qa(said, gold, form) == 0.0


def test_words_are_compared_by_f1_and_elements_by_their_mean() -> None:
    assert own_doc_qa("eight degrees", "up to eight degrees", "String") == pytest.approx(2 / 3)
    assert own_doc_qa("red, 4", '["red", "3"]', "List") == 0.5
    assert own_doc_qa("5", '["A", "5"]', "List") == 0.5
    assert own_doc_qa("red, green, blue, 3, 4, 5", '["red", "3"]', "List") == pytest.approx(0.75)


def test_the_profiles_of_the_public_code_keep_its_rules_to_the_letter() -> None:
    for said, gold, form in [*SAME, *OTHER]:
        asked = ScoringInput("documentQA/a_K8.jsonl", "a", "1", gold, said, answer_format=form)
        assert DocumentAnswer(Settings(profile="official")).score(asked).score == doc_qa(said, gold, form)
        assert DocumentAnswer(Settings(profile="ours")).score(asked).score == own_doc_qa(said, gold, form)
