"""What each probe looks at: planted leaks are found and named, and drawn contexts are no leak."""

import importlib.util
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_questions import asked, found, golds, judged, leaks, unit
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.corpus.retrieval.dense import ModelError, Reranker, SentenceEncoder
from mmlongbench.draws import Draws
from mmlongbench.io.progress import Progress
from mmlongbench.shortcuts import audit
from mmlongbench.shortcuts.answerable import DETECTORS, measure_answerable, shown_in, shown_of
from mmlongbench.shortcuts.counted import UNEVEN, Depths, Tenths
from mmlongbench.shortcuts.difficulty import (
    Difficulties,
    Difficulty,
    Search,
    enough,
    searches_of,
)
from mmlongbench.shortcuts.findings import Finding, judge, uniforms
from mmlongbench.shortcuts.image_features import META, QUANTISATION, TAGS, ImageFacts, of_tables, of_tags
from mmlongbench.shortcuts.learners import Group, find_golds
from mmlongbench.shortcuts.probes import Kept, measure, measure_depths
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit, asked_questions
from mmlongbench.shortcuts.tenths import right_tenths
from mmlongbench.shortcuts.text_features import (
    CHAIN,
    LABEL,
    NEIGHBOURS,
    PART,
    of_chain,
    of_labels,
    of_neighbours,
    of_parts,
    table,
    titles_of,
    written,
)
from mmlongbench.task.builder import Choices

WORDS = ("barley", "copper", "drift", "ember", "flint", "gravel", "harbour", "iris", "juniper", "kelp", "larch", "moss")


# Titles and first passages of articles.

NAMES = ("Ardent", "Brook", "Cobalt", "Dune", "Elder", "Fallow", "Gannet", "Heron", "Inlet", "Jasper")
PLACES = ("Mill", "Pond", "Quay", "Ridge", "Stone", "Tower", "Vale", "Wharf", "Yard", "Abbey")
UNITS = 12


def passage(role: str, title: str, text: str) -> ShownUnit:
    return unit(role, f"Document (Title: {title}): ", text)


def of_passages(number: int, *, chained: float = 0.0, first: float = 0.0) -> AskedQuestion:
    """A question with 12 passages. One of them names the title of another, and one is the first of its article; in some
    shares of contexts, these are gold's title and gold.
    """
    drawn = uniforms(4 * UNITS + 6, "titles", number).tolist()
    pairs = zip(drawn[: 2 * UNITS : 2], drawn[1 : 2 * UNITS : 2], strict=True)
    titles = [f"{NAMES[int(10 * a)]} {PLACES[int(10 * b)]} {at}{number}" for at, (a, b) in enumerate(pairs)]
    gold = int(drawn[-1] * UNITS)
    texts = [f"Near the {PLACES[int(10 * each)]} it has rained since noon." for each in drawn[2 * UNITS : 3 * UNITS]]
    beginning = gold if drawn[-2] < first else int(UNITS * drawn[-5])
    texts[beginning] = f"{titles[beginning]} (1821) is a village near the sea."
    named = gold if drawn[-3] < chained else int(UNITS * drawn[-6])
    texts[(named + 1 + int(drawn[-4] * (UNITS - 1))) % UNITS] += f" Many walk to {titles[named]} then."
    roles = ["gold" if at == gold else "negative" for at in range(UNITS)]
    units = map(passage, roles, titles, texts)
    return asked(f"q{number}", "Where?", *units, subject=f"s{number}", answers=(f"a{number}",))


@pytest.mark.parametrize(
    ("planted", "kind"), [("chained", "gold from chained titles"), ("first", "gold from the part of its source")]
)
def test_titles_that_others_name_and_first_passages_of_articles_are_leaks(planted: str, kind: str) -> None:
    assert found(of_passages(number, **{planted: 0.4}) for number in range(60))[kind].verdict == "leak"
    clean = found(of_passages(number) for number in range(60))
    assert kind in clean
    assert leaks(clean) == []


def of_notes(number: int, *, marked: float = 0.0) -> AskedQuestion:
    """A question with 12 notes; in a share of contexts, a word at the beginning of gold is not that of the others."""
    drawn = uniforms(4 * UNITS + 2, "notes", number).tolist()
    gold, is_marked = int(drawn[-1] * UNITS), drawn[-2] < marked
    notes = list[ShownUnit]()
    for at in range(UNITS):
        said = " ".join(WORDS[int(each * len(WORDS))] for each in drawn[4 * at : 4 * at + 4])
        word = "[gold]" if is_marked and at == gold else "[hay]"
        notes.append(unit("gold" if at == gold else "padding", f"{word} {said} of note {at}{number}"))
    return asked(f"q{number}", "Where?", *notes, subject=f"s{number}", answers=(f"a{number}",))


def test_words_that_gold_alone_has_are_a_leak_and_are_named() -> None:
    leak = found(of_notes(number, marked=0.7) for number in range(60))["gold from its words"]
    assert leak.verdict == "leak"
    assert {"the word 'gold' (more)", "the word 'hay' (less)"} & {*leak.evidence.split("by ")[1].split(", ")}
    clean = found(of_notes(number) for number in range(60))
    assert "gold from its words" in clean
    assert leaks(clean) == []


@pytest.mark.parametrize(("mark", "verdict"), [("!", "leak"), ("", None)])
def test_a_mark_in_the_heads_of_gold_images_is_a_leak_and_the_length_of_numbers_is_not(
    mark: str, verdict: str | None, tmp_path: Path
) -> None:
    def frames(number: int) -> AskedQuestion:
        heads = [(at, f"Frame {at + 1}{mark if at == number % 9 else ''} ") for at in range(UNITS)]
        for at, _ in heads:
            Image.new("RGB", (8, 8), "white").save(tmp_path / f"{number}-{at}.png")
        units = [unit("gold" if at == number % 9 else "own", head, image=f"{number}-{at}.png") for at, head in heads]
        return asked(f"q{number}", "When?", *units, subject=f"s{number}", answers=(f"a{number}",))

    kept, images = Kept(), ImageFacts(tmp_path)
    for number in range(36):
        kept.add(frames(number), images, has_depths=True)
    measured = {each.kind: each for each in judge([("set", "file", each) for each in measure(kept)])[0]}
    finding = measured.get("gold from the form of heads")
    assert (finding and finding.verdict) == verdict
    assert finding is None or "punctuation (more)" in finding.evidence


class Tally(mt.Task[mt.Row]):
    """The colour that most units have."""

    metric = "sub_em"

    def draft(self, row: mt.Row, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        raise NotImplementedError

    def answer(self, example: mt.PackedExample) -> str:
        return Counter(str(unit.data["colour"]) for unit in example.units).most_common(1)[0][0]


@pytest.mark.parametrize(
    ("colours", "expected"),
    [
        ("r" * 30, (True, True, True)),
        ("r" * 5 + "g" * 35, (False, True, True)),
        ("r" * 22 + "g" * 18, (True, False, True)),
        ("r" * 9, "its contexts have fewer than 10 units"),
    ],
)
def test_an_answer_of_the_context_is_computed_again_from_tenths_of_it(
    colours: str, expected: tuple[bool, ...] | str
) -> None:
    units = [{"role": "padding", "shown": ["A dot."], "data": {"colour": colour}} for colour in colours]
    task = Tally("dots", Tally.options_type())
    record = {"id": "q1", "answer": Counter(colours).most_common(1)[0][0], "units": units}
    assert right_tenths(task, record) == expected
    assert isinstance(right_tenths(task, {**record, "answer": "b"}), str)


class OneLine(Tally):
    """The colour of the unit that has the id of the row."""

    def answer(self, example: mt.PackedExample) -> str:
        for each in example.units:
            if each.id == example.id:
                return str(each.data["colour"])
        raise mt.Rejected("the line is not shown")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([f"q{n}" for n in range(20)], (True, False)),
        ([], "the line is not shown; the release has no items, so units have no ids"),
    ],
)
def test_units_have_their_ids_when_an_answer_is_computed_again(
    ids: list[str], expected: tuple[bool, ...] | str
) -> None:
    units = [{"role": "padding", "shown": [f"A dot of {n}."], "data": {"colour": f"c{n}"}} for n in range(20)]
    given = right_tenths(OneLine("dots", OneLine.options_type()), {"id": "q1", "answer": "c1", "units": units}, ids)
    assert given[:2] == expected if ids else str(given).endswith(str(expected))


@pytest.mark.parametrize(("right", "verdict"), [(1.0, "leak"), (0.2, "clean"), (0.6, "undecided")])
def test_a_tenth_is_enough_if_it_gives_most_answers_that_a_guess_has_wrong(right: float, verdict: str) -> None:
    counting = Tenths("dots")
    for number in range(60):
        each = asked(f"q{number}", "Which?", answers=("r" if number % 2 else "g",))
        counting.add(replace(each, tenths=(number < 30 + 30 * right, False, False)))
    first, last, _ = counting.findings()
    assert (first.kind, first.verdict, first.chance) == ("answer from the first tenth of its context", verdict, 0.5)
    assert last.verdict == "clean"


def test_titles_in_other_titles_and_texts_are_counted_without_what_all_titles_share() -> None:
    units = [passage("gold", "Tern Rock", "x"), passage("negative", "Tern Quay", "y"), unit("padding", "no title")]
    assert titles_of(units) == [" rock ", " quay ", ""]
    units = [
        passage("gold", "Tern Rock", "Birds."),
        passage("negative", "Tern Rock Light", "It stands on Tern Rock."),
        passage("negative", "Mill Pond", "Water."),
    ]
    rows = [dict(zip(CHAIN, row, strict=True)) for row in of_chain(units, [0, 1, 2])]
    assert list(rows[0].values()) == [1, 1, 1, 0]
    assert rows[1]["other titles in it"] == 1
    assert list(rows[2].values()) == [0, 0, 0, 0]


def test_a_first_passage_is_recognised_by_its_form() -> None:
    first = passage("gold", "Tern Rock", "Tern Rock (1821) is a rock.")
    later = passage("negative", "Mill Pond", "of the water, much was lost.")
    rows = [dict(zip(PART, row, strict=True)) for row in of_parts([first, later])]
    assert [list(row.values()) for row in rows] == [[1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]]


# Choices, and labels of exemplars.


def choosing(number: int, planted: str = "", share: float = 0.0) -> AskedQuestion:
    """A question with four choices of three words; in a share of questions, the right one differs."""
    drawn = uniforms(14, "offers", number, planted)
    offered = [f"{number} " + " ".join(WORDS[int(12 * each)] for each in drawn[3 * at : 3 * at + 3]) for at in range(4)]
    right = int(4 * drawn[12])
    others = [each for at, each in enumerate(offered) if at != right]
    if drawn[13] < share:
        if planted == "longest":
            offered[right] += " and more of it"
        if planted == "overlap":
            offered[right] = f"{number} {' '.join(each.split()[1] for each in others)}"
        if planted == "order":
            right = 0 if right == 3 else right
            offered = [*sorted(others)[:right], f"zebra {number}", *sorted(others)[right:]]
    question = asked(f"q{number}", f"Which one, {number}?", subject=f"s{number}", answers=(offered[right],))
    return replace(question, choices=Choices(tuple(offered), right))


@pytest.mark.parametrize(
    ("planted", "share", "kind", "evidence"),
    [
        ("longest", 0.4, "right choice from its text", ""),
        ("overlap", 0.4, "right choice from the other choices", ""),
        ("order", 1.0, "right choice from the other choices", "places out of order"),
    ],
)
def test_a_right_choice_that_differs_is_a_leak(planted: str, share: float, kind: str, evidence: str) -> None:
    finding = found(choosing(number, planted, share) for number in range(100))[kind]
    assert finding.verdict == "leak"
    assert evidence in finding.evidence


def test_drawn_choices_are_no_leak() -> None:
    assert leaks(found(choosing(number) for number in range(100))) == []


def shots(number: int, share: float) -> AskedQuestion:
    """A question with 24 exemplars of 6 labels; in a share of contexts, the last one has the right label."""
    drawn = uniforms(26, "shots", number)
    labels = [int(6 * each) for each in drawn[:24]]
    right = labels[-1] if drawn[24] < share else int(6 * drawn[25])
    units = [replace(unit("exemplar", f"\nlabel: {each}"), id=f"{number}-{at}") for at, each in enumerate(labels)]
    question = asked(f"q{number}", "", *units, subject=f"s{number}", answers=(str(right),))
    return replace(question, choices=Choices(tuple(map(str, range(6))), right))


def test_a_label_that_the_last_exemplar_tells_is_a_leak_and_a_drawn_one_is_not() -> None:
    kind = "right label from its exemplars"
    assert found(shots(number, 0.4) for number in range(100))[kind].verdict == "leak"
    assert found(shots(number, 0.0) for number in range(100))[kind].verdict != "leak"
    first = shots(0, 1.0)
    again = [replace(first, id=f"again{number}", subject=f"t{number}") for number in range(30)]
    kinds = found([*again, *(shots(number, 1.0) for number in range(1, 10))])
    assert kinds[kind].questions == 10, "questions that share a context and a label are compared once"


def test_labels_are_read_from_exemplars() -> None:
    units = [unit("exemplar", f"label: {label}") for label in ("1", "11", "11")]
    one, eleven, none = (dict(zip(LABEL, row, strict=True)) for row in of_labels(units, ["1", "11", "2"]))
    assert (one["exemplars"], one["place of the last exemplar"]) == (1, 0)
    assert list(eleven.values()) == [2, 0.5, 1, 0.75, 1]
    assert none["exemplars"] == 0
    assert of_labels([unit("exemplar", "no label here")], ["1", "2"]) == []


# Questions that have no answer.

SHOWN, QUESTION = "not answerable from what is shown", "not answerable from the question"
NAMED = "not answerable from the pages it names"


def unanswerable(number: int, planted: str = "", share: float = 0.0) -> AskedQuestion:
    """A question about a document of six pages, three to five of which are shown; a third has no answer."""
    drawn = uniforms(40, "answerable", number)
    is_no, tells = drawn[0] < 1 / 3, drawn[1] < share
    terms = [WORDS[int(12 * each)] for each in drawn[2:6]]
    shown = 3 + int(3 * drawn[6])
    if planted == "pages" and tells:
        shown = 1 if is_no else 4
    pages = [[WORDS[int(12 * each)] for each in drawn[7 + 3 * at : 10 + 3 * at]] for at in range(shown)]
    if planted == "words" and tells:
        pages = [[] for _ in pages] if is_no else [terms, *pages[1:]]
    question = f"How much {' '.join(terms)}?"
    if planted == "question" and tells:
        question = f"{'Which colour' if is_no else 'How many'} {' '.join(terms)}?"
    if planted == "named" and tells and is_no:
        question = f"How much {' '.join(terms)} on page {30 + number}?"
    texts = [f"{' '.join(each)} of the year {at}" for at, each in enumerate(pages)]
    units = [*(unit("own", "Document d: ", text) for text in texts)]
    padding = [unit("padding", "Document e: ", "nothing")] * (8 - shown)
    answers = ("Not answerable",) if is_no else (f"a{number}",)
    asking = asked(f"q{number}", question, *units, *padding, subject=f"d{number // 2}", answers=answers)
    return replace(asking, pages=tuple(range(shown)))


def refusals(questions: list[AskedQuestion]) -> dict[str, Finding]:
    measured = measure_answerable(
        [each.id for each in questions],
        [each.cluster for each in questions],
        [each.question for each in questions],
        [each.answer for each in questions],
        [shown_in(each, None) for each in questions],
    )
    return {each.kind: judged(each) for each in measured if each}


@pytest.mark.parametrize(
    ("planted", "kind", "evidence"),
    [
        ("words", SHOWN, ""),
        ("pages", SHOWN, "own pages shown (less)"),
        ("question", QUESTION, ""),
        ("named", NAMED, "pages named (more)"),
    ],
)
def test_what_tells_that_there_is_no_answer_is_a_leak_and_is_named(planted: str, kind: str, evidence: str) -> None:
    assert refusals([unanswerable(number, planted, 0.5) for number in range(90)])[kind].verdict == "leak"
    if evidence:
        assert evidence in refusals([unanswerable(number, planted, 1.0) for number in range(90)])[kind].evidence


def test_drawn_contexts_do_not_tell_that_there_is_no_answer() -> None:
    kinds = refusals([unanswerable(number) for number in range(90)])
    assert {SHOWN, QUESTION} <= kinds.keys()
    assert leaks(kinds) == []
    assert refusals([replace(unanswerable(number), answers=(f"a{number}",)) for number in range(30)]) == {}


def test_detectors_know_what_they_do_not_know() -> None:
    shown = shown_of("Which boats left the harbour?", [frozenset({"boats"}), frozenset({"other"})], {0: 4}, document=9)
    values = {name: detect(shown) for name, detect in DETECTORS.items()}
    assert values["number of the question's words on the best page"] == 1
    assert values["pages of other documents are shown"] == 1
    assert values["own pages are off the document's middle"] == 0
    assert values["the document is cut"] == 1
    images = [unit("own", image="1.jpg"), unit("own", image="2.jpg")]
    unknown = shown_in(replace(asked("q", "Which boats?", *images), pages=(4, 5)), None)
    assert unknown is not None
    assert DETECTORS["share of the question's words on the best page"](unknown) is None
    assert DETECTORS["own pages shown"](unknown) == 2
    some = shown_in(replace(asked("q", "Which boats?", images[0], unit("own", "boats")), pages=(4, 5)), None)
    assert some is not None
    assert DETECTORS["share of the question's words on the best page"](some) == 1


# Requested placements.

SIX = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
YES_OR_NO = ["Yes" if each < 0.5 else "No" for each in uniforms(120, "answers")]


def of_placements(placements: Sequence[Sequence[float]]) -> dict[str, Finding]:
    ids = [f"q{number}" for number in range(len(placements))]
    return {each.kind: judged(each) for each in measure_depths(ids, ids, YES_OR_NO, placements) if each}


def drawn_depths(share: float, *, is_told: bool) -> list[tuple[float]]:
    """One depth a question, drawn; in a share of questions it is 0, or follows from the answer."""
    depths = []
    for number, answer in enumerate(YES_OR_NO):
        first, second = uniforms(2, "depth", number)
        planted = SIX[3 * (answer == "Yes")] if is_told else 0.0
        depths.append((planted if second < share else SIX[int(6 * first)],))
    return depths


def test_a_depth_that_tells_the_answer_or_is_requested_too_often_is_a_leak() -> None:
    told = of_placements(drawn_depths(0.4, is_told=True))
    assert told["answer from requested placements"].verdict == "leak"
    often = of_placements(drawn_depths(0.4, is_told=False))["requested placement from priors"]
    assert often.verdict == "leak"
    assert "placement 0 is requested for" in often.evidence
    assert leaks(of_placements(drawn_depths(0, is_told=False))) == []
    assert of_placements([SIX] * 120) == {}


def test_a_question_that_lacks_a_depth_is_named_unless_each_has_one_depth() -> None:
    depths, single = Depths("walks"), Depths("walks")
    for number in range(20):
        depths.add(replace(asked(f"q{number}"), placements=SIX if number != 7 else SIX[:4]))
        single.add(replace(asked(f"q{number}"), placements=(SIX[number % 6],)))
    finding = next(depths.findings())
    assert (finding.kind, finding.verdict, finding.examples) == (UNEVEN, "leak", ("q7",))
    assert "lacks placement 0.8, 1" in finding.evidence
    assert list(single.findings()) == []


# Files of images.

MAKERS = ("Ardent", "Brook", "Cobalt")


def tables(**options: Any) -> tuple[float, ...]:
    file = io.BytesIO()
    Image.effect_noise((32, 32), 60).convert("RGB").save(file, "JPEG", **options)
    with Image.open(file) as picture:
        return of_tables(picture)


def tags(**values: str | int) -> bytes:
    exif = Image.Exif()
    for name, value in values.items():
        exif[{"Make": 271, "Software": 305, "Orientation": 274}[name]] = value
    return exif.tobytes()


@pytest.mark.parametrize("exif", [b"", None, b"Exif\0\0broken", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff", "text"])
def test_exif_that_cannot_be_read_counts_as_none(exif: object) -> None:
    assert set(of_tags(exif)[1:]) == {-1.0}


def of_files(share: float, gold: tuple[float, ...], others: list[tuple[float, ...]]) -> list[Group]:
    """60 contexts of 16 pictures: others are drawn; in a share of contexts, gold is of its own kind."""
    groups = []
    for number in range(60):
        drawn = uniforms(18, "encoding", number)
        rows = [others[int(each * len(others))] for each in drawn[:16]]
        place = int(drawn[-1] * 16)
        if drawn[-2] < share:
            rows[place] = gold
        is_gold = tuple(at == place for at in range(16))
        groups.append(Group(f"q{number}", f"c{number}", (f"g{number}",), np.array(rows), is_gold))
    return groups


def test_tags_and_tables_that_only_gold_has_are_leaks_and_drawn_ones_are_not() -> None:
    makers = [of_tags(tags(Make=maker)) for maker in MAKERS]
    finding = judged(golds(of_files(0.4, of_tags(tags(Make="Ardent", Software="painter")), makers), *TAGS))
    assert finding.verdict == "leak"
    assert "EXIF Software" in finding.evidence
    assert judged(golds(of_files(0, makers[0], makers), *TAGS)).verdict != "leak"
    others = [tables(quality=80), tables(quality=75, subsampling=0), tables(quality=90)]
    flat = tables(qtables=[[16] * 64, [16] * 64])
    assert judged(golds(of_files(0.4, flat, others), *QUANTISATION)).verdict == "leak"
    assert judged(golds(of_files(0, others[0], others), *QUANTISATION)).verdict != "leak"


def dots(folder: Path, name: str, **options: Any) -> float:
    Image.new("RGB", (20, 20), "red").save(folder / name, **options)
    return ImageFacts(folder).of(name)["meta"][META.index("dots per inch")]


def test_dots_per_inch_are_read_and_what_is_no_number_counts_as_none(tmp_path: Path) -> None:
    text, tags = PngInfo(), ImageFileDirectory_v2()
    text.add_text("dpi", "many")
    tags[282] = tags[283] = IFDRational(0, 0)
    assert dots(tmp_path, "a.jpg", dpi=(300, 300)) == 300
    assert dots(tmp_path, "b.jpg") == 0
    assert dots(tmp_path, "text.png", pnginfo=text) == 0
    assert dots(tmp_path, "none.tif", tiffinfo=tags) == 0


def test_numbers_that_are_infinite_or_none_are_compared() -> None:
    assert table([(math.inf, math.nan, -math.inf, 2.0)]).tolist() == [[1e15, 0.0, -1e15, 2.0]]
    assert written("bytes", table([(math.inf,)])[0, 0]) == "1,000,000,000,000,000"


# Neighbours of gold.


def test_a_unit_at_an_end_has_its_one_neighbour_on_both_sides() -> None:
    image, text = unit("", image="a.png"), unit("", "A text.")
    rows = of_neighbours([image, text, image, image], range(4))
    assert [row[:2] for row in rows] == [(0, 0), (1, 1), (0, 1), (1, 1)]
    assert of_neighbours([image], [0])[0][:2] == (1, 1)


def context_of_pages(question: int) -> Group:
    """A context of four own pages between padding; any of them may hold the answer."""
    gold = 3 + Draws(("pages", question)).integer("gold", 0, 3)
    roles = ["padding"] * 3 + ["own"] * 4 + ["padding"] * 3
    units = [ShownUnit("", role, ("A page.",), (), at == gold, at == gold) for at, role in enumerate(roles)]
    is_gold = tuple(at == gold for at in range(3, 7))
    return Group(f"{question}", f"{question}", (f"{question}",), table(of_neighbours(units, range(3, 7))), is_gold)


def context_of_roles(question: int) -> Group:
    """A context of negatives and padding in a drawn order, with a needle at a drawn place."""
    draws = Draws(("roles", question))
    roles, gold = draws.order("roles", ["negative"] * 5 + ["padding"] * 5), draws.integer("gold", 0, 10)
    units = [unit(role, "A text.") for role in (*roles[:gold], "needle", *roles[gold:])]
    is_gold = tuple(each.is_gold for each in units)
    return Group(f"{question}", f"{question}", (f"{question}",), table(of_neighbours(units, range(11))), is_gold)


def test_pages_at_an_edge_and_units_of_several_roles_do_not_look_like_gold() -> None:
    finding = judged(golds([context_of_pages(number) for number in range(120)], *NEIGHBOURS))
    assert finding.verdict != "leak"
    assert abs(finding.excess) < 0.06
    groups = [context_of_roles(number) for number in range(120)]
    assert find_golds("gold from its neighbours", NEIGHBOURS, groups) is None


# What a search finds.


def difficulties(*contexts: AskedQuestion, searches: Sequence[Search] = (Search(),)) -> list[Difficulty]:
    found = Difficulties("x", 8192, searches)
    for context in contexts:
        found.add(context)
    return list(found.lines())


def ranked(number: int, rank: int) -> AskedQuestion:
    """A question whose gold has a rank among ten units: the units above it have more of the question's words."""
    better = [unit("negative", f"the old ferry crossed in {at}") for at in range(rank - 1)]
    worse = [unit("padding", f"nothing of note in {at}") for at in range(10 - rank)]
    return asked(f"q{number}", "When was the old ferry built?", *worse, unit("gold", "a ferry, 1821"), *better)


def test_ranks_of_gold_and_the_units_to_read_are_counted() -> None:
    [line] = difficulties(*(ranked(number, rank) for number, rank in enumerate([1, 1, 1, 2, 2, 3, 3, 4, 6, 9])))
    assert (line.kind, line.search, line.length, line.questions, line.golds) == ("difficulty", "BM25", 8192, 10, 10)
    assert (line.units, line.found, line.median_rank, line.k_50, line.k_90) == (10, 1, 2.5, 2, 6)
    assert [enough([5], 90), enough([1, 2], 50), enough([1] * 9 + [7], 90)] == [5, 1, 1]
    others = [unit("padding", "Something"), unit("padding", "More")]
    [line] = difficulties(asked("q", "Who?", unit("gold", "Nobody"), *others))
    assert (line.median_rank, line.found) == (3, 0), "a gold without a word of its question ranks last"
    image = asked("a", "Who?", unit("needle", image="a.jpg"), unit("padding", "text"))
    assert difficulties(image, asked("b", "", unit("gold", "text"), unit("padding", "text"))) == []


def test_the_same_questions_are_searched_for_at_each_length(families: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, ids = mm.open_release(families), dict[tuple[str, int], list[str]]()

    class Noting(Difficulties):
        def add(self, asked: AskedQuestion) -> None:
            ids.setdefault((self._dataset, self.length), []).append(asked.id)

    monkeypatch.setattr(audit, "Difficulties", Noting)
    monkeypatch.setattr(audit, "MAX_QUESTIONS", 1)
    audit.audit_shortcuts(release, Progress(is_shown=False), ["infoseek", "viquae"])
    assert len(ids) == 4
    for name in ("infoseek", "viquae"):
        short, long = (ids[name, length] for length in release.lengths(name))
        assert short == long
        assert len(short) == 1


class Letters(SentenceEncoder):
    """An encoder: the vector of a text says how often it has each letter."""

    def __init__(self) -> None:
        self.fingerprint, self.dtype, self.width = "letters", "float32", 26

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.passages(texts)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[text.count(chr(97 + at)) for at in range(26)] for text in texts], np.float32)
        found: NDArray[np.float32] = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        return found


def test_a_search_by_meaning_has_lines_of_its_own(tmp_path: Path) -> None:
    reranker = Reranker(Letters(), tmp_path)
    by_letters = Search(reranker, "letters")
    context = asked("a", "zzz?", unit("gold", "Zürich, zoo, zz"), unit("padding", "other"), unit("padding", "more"))
    words, meaning = difficulties(context, searches=(Search(), by_letters))
    reranker.close()
    assert (words.search, words.found, words.median_rank) == ("BM25", 0, 3)
    assert (meaning.search, meaning.found, meaning.median_rank, meaning.units) == ("letters", 1, 1, 3)


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_without_the_extra_a_search_by_meaning_names_it() -> None:
    with pytest.raises(ModelError, match=r"mmlongbench\[dense\]"), searches_of("some/model"):
        pass


# Questions of a release.


def test_each_question_is_read_once_with_its_context_and_the_roles_of_its_units(families: Path) -> None:
    release = mm.open_release(families)
    every = list(asked_questions(release, "infoseek"))
    assert len({each.id for each in every}) == len(every) == 2
    for each in every:
        assert {unit.role for unit in each.units} >= {"gold", "negative"}
        assert all(unit.is_gold == (unit.role == "gold") for unit in each.units)
        assert each.images
        assert each.question
        assert each.placements == (0, 1, 2)
    for each in asked_questions(release, "text_mmlongdoc"):
        assert all(unit.is_gold == unit.is_evidence for unit in each.units)
        assert any(unit.role == "own" for unit in each.units)
