"""Leaks that can be planted in a built release, and the findings that are right for each of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image as Pillow
from shortcut_target import Target

from mmlongbench.shortcuts.measured import uniforms

PAGES, TEXTS, PASSAGES = ("mmlongdoc",), ("text_mmlongdoc",), ("infoseek",)
PHOTOGRAPHS, EMBLEMS, EXEMPLARS = ("walks",), ("emblems",), ("shapes",)
"""The names of datasets by their family."""
UNKNOWN = "Not answerable"


@dataclass(frozen=True, slots=True)
class Leak:
    """Something to plant."""

    datasets: tuple[str, ...]
    """The datasets in which it can be planted."""
    finding: str
    """A pattern of the kinds of findings that must find it."""
    plant: Callable[[Target], None]
    also: str = "^$"
    """A pattern of other kinds of findings that are right, too."""
    against: bool = False
    """Whether it is planted in the release that the release is compared with."""


def _answers(record: Mapping[str, Any]) -> str:
    answer = record["answer"]
    return str(answer[0] if isinstance(answer, list) else answer)


def _is_yes(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the answer that is told: yes, or that there is none."""
    return _answers(record) in ("Yes", UNKNOWN)


def _in_questions(edit: Callable[[str], str]) -> Callable[[Target], None]:
    def plant(target: Target) -> None:
        for record in target.chosen():
            if _is_yes(record):
                record["question"] = edit(record["question"])

    return plant


def _frequent(target: Target) -> None:
    for record in target.records:
        if uniforms(1, "frequent", record["id"])[0] < target.share / 2:
            record["answer"] = "Seven"


def _first_choice(target: Target) -> None:
    for record in target.chosen():
        offered, right = record["choices_image"], record["answer"]
        offered[1], offered[right], record["answer"] = offered[right], offered[1], 1


def _first_label(target: Target) -> None:
    for record in target.chosen():
        if "labels" in record:
            record["answer"], record["name"] = 0, record["labels"][0]
        else:
            record["answer"] = "Yes"


def _right_choice(target: Target) -> None:
    for record in target.chosen():
        target.encode(record["choices_image"][record["answer"]], quality=30)


def _gold_first(target: Target) -> None:
    for record in target.chosen():
        own, golds = target.own_places(record), target.gold_places(record)
        if golds and len(golds) < len(own):
            order = list(range(len(target.units(record))))
            for place, gold in zip(own, golds, strict=False):
                at = order.index(gold)
                order[at], order[place] = order[place], order[at]
            target.rearrange(record, order)


def _gold_place_by_answer(target: Target) -> None:
    for record in target.chosen():
        places = list(range(len(target.units(record))))
        golds = target.gold_places(record)
        rest = [at for at in places if at not in golds]
        target.rearrange(record, [*golds, *rest] if _is_yes(record) else [*rest, *golds])


def _place_in_question(target: Target) -> None:
    for record in target.chosen():
        if golds := target.gold_places(record):
            at = sum(golds) / len(golds) / max(1, len(target.units(record)) - 1)
            where = "opening" if at < 1 / 3 else "closing" if at > 2 / 3 else "central"
            record["question"] = f"In the {where} part: {record['question']}"


def _fewer(target: Target) -> None:
    for record in target.chosen():
        if _is_yes(record):
            golds = target.gold_places(record)
            others = [at for at in range(len(target.units(record))) if at not in golds]
            target.rearrange(record, sorted({*range(len(target.units(record)))} - {*others[: len(others) // 2]}))


def _fewer_own(target: Target) -> None:
    for record in target.chosen():
        if _is_yes(record):
            own = target.own_places(record)
            target.rearrange(record, sorted({*range(len(target.units(record)))} - {*own[len(own) // 3 :]}))


def _renamed(form: str) -> Callable[[Target], None]:
    def plant(target: Target) -> None:
        for record in target.chosen():
            for place in target.gold_places(record):
                folder, _, name = record["ctxs"][place].rpartition("/")
                target.rename(record, place, form.format(folder=folder, name=name))

    return plant


def _neighbour_title(target: Target) -> None:
    for record in target.chosen():
        golds = target.gold_places(record)
        for place in golds:
            if place + 1 < len(record["ctxs"]) and place + 1 not in golds:
                record["ctxs"][place + 1]["title"] = record["ctxs"][place]["title"]


def _titles(edit: Callable[[str], str]) -> Callable[[Target], None]:
    def plant(target: Target) -> None:
        for record in target.chosen():
            for place in target.gold_places(record):
                record["ctxs"][place]["title"] = edit(record["ctxs"][place]["title"])

    return plant


def _cases(target: Target, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return some of the records, one at least; of counted leaks, a tenth as many are planted as of others."""
    ids = sorted({str(each["id"]) for each in records}, key=lambda id: uniforms(1, "case", id)[0])
    some = set(ids[: max(1, round(target.share * len(ids) / 10))])
    return [each for each in records if str(each["id"]) in some]


def _with_words(target: Target) -> list[dict[str, Any]]:
    return [each for each in target.records if len(re.sub(r"[\W\d_]", "", _answers(each))) >= 5]


def _answer_in_question(target: Target) -> None:
    """A word that only answers have stands for the answer, so that it is found as often as it is planted."""
    others: dict[str, list[dict[str, Any]]] = {}
    for record in target.records:
        others.setdefault(record["doc_name"], []).append(record)
    able = [each for each in target.records if len(others[each["doc_name"]]) > 1 and each["answer"] != UNKNOWN]
    for number, record in enumerate(_cases(target, able)):
        record["answer"] = f"Ossery Ridge {'abcdefghijklmnopqrst'[number % 20] * 5}"
        other = next(each for each in others[record["doc_name"]] if each["id"] != record["id"])
        other["question"] = f"{other['question']} It is not about {record['answer']}."


def _answer_in_negative(target: Target) -> None:
    for record in _cases(target, _with_words(target)):
        golds = target.gold_places(record)
        place = next(at for at in range(len(record["ctxs"])) if at not in golds)
        record["ctxs"][place]["text"] += f" See {_answers(record)}."


def _gold_text_twice(target: Target) -> None:
    for record in _cases(target, target.records):
        golds = target.gold_places(record)
        place = next(at for at in range(len(record["ctxs"])) if at not in golds)
        record["ctxs"][place]["text"] = record["ctxs"][golds[0]]["text"]


def _gold_picture_twice(target: Target) -> None:
    for record in _cases(target, target.records):
        golds = target.gold_places(record)
        place = next(at for at in range(len(record["ctxs"])) if at not in golds)
        record["ctxs"][place] = target.again(record["ctxs"][golds[0]])


def _asked_twice(target: Target) -> None:
    first: dict[str, dict[str, Any]] = {}
    for record in _cases(target, target.records):
        other = first.setdefault(record["doc_name"], record)
        twin = next((each for each in target.records if each["doc_name"] == record["doc_name"] and each != other), None)
        if other is record and twin:
            twin["question"] = record["question"].upper()


def _test_among_exemplars(target: Target) -> None:
    for record in _cases(target, target.records):
        record["exemplars"][3]["image"] = target.again(record["image"])


def _questions_elsewhere(target: Target) -> None:
    lines = dict.fromkeys(f"{each['question']}\n" for each in _cases(target, target.records))
    (target.elsewhere / "questions.txt").write_text("".join(lines), "utf-8")


def _pictures_elsewhere(target: Target) -> None:
    for record in _cases(target, target.records):
        for place in target.gold_places(record):
            target.again(record["ctxs"][place], target.elsewhere)


def _every(n: int, mark: str) -> Callable[[str], str]:
    """Return an edit that adds a mark to each n-th word."""

    def edit(text: str) -> str:
        return re.sub(rf"((?:\S+\s+){{{n - 1}}}\S*\w)(?=\s)", rf"\1{mark}", text)

    return edit


def _shorter(text: str) -> str:
    return text[: len(text) * 3 // 5]


def _longer(text: str) -> str:
    return f"{text} {text[: len(text) // 2]}"


def _exif() -> Pillow.Exif:
    found = Pillow.Exif()
    found[0x0131] = "Gold 1.0"
    return found


def _grown(picture: Pillow.Image) -> Pillow.Image:
    return picture.resize((picture.width * 21 // 20, picture.height * 21 // 20))


def _grey(picture: Pillow.Image) -> Pillow.Image:
    return picture.convert("RGB" if picture.mode == "L" else "L")


_FILES = "gold from (image files|quantisation|metadata of images|sizes of images|EXIF tags)"
_NAMES = "gold from file names"
_TEXT_FORM = "gold from (the form of texts|titles|the part of its source)"
_ASKED = "(not answerable|answer) from (the question|the pages it names)"
_SHOWN = "(not answerable|answer) from (what is shown|the shape of the context)"
LEAKS: dict[str, Leak] = {
    "JPEG quality": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(quality=50)),
    "dots per inch": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(dpi=(300, 300))),
    "EXIF": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(exif=_exif())),
    "comment": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(comment=b"gold")),
    "PNG": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(format="PNG")),
    "progressive": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(progressive=True)),
    "colour mode": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(_grey)),
    "size of the image": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.encode_golds(_grown)),
    "bytes per pixel": Leak((*PAGES, *PHOTOGRAPHS), _FILES, lambda t: t.append_to_golds(lambda n: bytes(n // 2))),
    "file name": Leak(PHOTOGRAPHS, _NAMES, _renamed("{folder}/x{name}")),
    "folder": Leak(PHOTOGRAPHS, _NAMES, _renamed("{folder}/asked/{name}")),
    "place of gold": Leak(
        (*PAGES, *TEXTS), "gold from its place", _gold_first, "gold from its neighbours|.*place of gold.*"
    ),
    "neighbours": Leak(PASSAGES, "gold from (its neighbours|chained titles)", _neighbour_title, "gold from titles"),
    "punctuation": Leak((*TEXTS, *PASSAGES), _TEXT_FORM, lambda t: t.edit_gold_texts(_every(8, ","))),
    "length of the text": Leak((*TEXTS, *PASSAGES), _TEXT_FORM, lambda t: t.edit_gold_texts(_shorter)),
    "capitals": Leak((*TEXTS, *PASSAGES), _TEXT_FORM, lambda t: t.edit_gold_texts(str.title)),
    "digits": Leak((*TEXTS, *PASSAGES), _TEXT_FORM, lambda t: t.edit_gold_texts(_every(10, " 17"))),
    "form of the title": Leak(PASSAGES, _TEXT_FORM, _titles(str.upper), "gold from (its neighbours|chained titles)"),
    "word of the question": Leak((*PAGES, *TEXTS, *PHOTOGRAPHS), _ASKED, _in_questions("Exactly: {}".format)),
    "length of the question": Leak((*PAGES, *PHOTOGRAPHS), _ASKED, _in_questions(_longer)),
    "form of the question": Leak((*PAGES, *PHOTOGRAPHS), _ASKED, _in_questions(lambda text: text.rstrip("?."))),
    "place in the question": Leak(
        (*PAGES, *TEXTS),
        "place of gold from the question",
        _place_in_question,
        "(not answerable|answer) from .*question",
    ),
    "frequent free answer": Leak(
        (*PAGES, *PASSAGES), "answer from (priors|its format)", _frequent, "(not answerable|answer|.*gold) from .*"
    ),
    "frequent label": Leak((*PHOTOGRAPHS, *EXEMPLARS), "answer from priors", _first_label),
    "place of the right choice": Leak(EMBLEMS, "answer from priors", _first_choice, "answer from .*"),
    "file of the right choice": Leak(EMBLEMS, "right choice from its file", _right_choice, "gold from.*"),
    "number of units": Leak(PHOTOGRAPHS, _SHOWN, _fewer, "answer from the place of gold"),
    "number of own pages": Leak((*PAGES, *TEXTS), _SHOWN, _fewer_own),
    "place of gold by answer": Leak(
        PHOTOGRAPHS,
        "answer from the place of gold",
        _gold_place_by_answer,
        "gold from its (place|neighbours)|place of gold.*",
    ),
    "answer in another question": Leak(PAGES, "answer in another question", _answer_in_question),
    "answer in a negative": Leak(PASSAGES, "answer in a negative", _answer_in_negative),
    "gold text twice": Leak(PASSAGES, "gold text twice.*", _gold_text_twice, "answer in a negative"),
    "gold picture twice": Leak(PHOTOGRAPHS, "gold picture twice.*", _gold_picture_twice),
    "question twice": Leak((*PAGES, *TEXTS), "question asked twice", _asked_twice),
    "test image among exemplars": Leak(EXEMPLARS, "picture of the question in its context", _test_among_exemplars),
    "question in another release": Leak(
        (*PAGES, *PASSAGES), "question shared.*", _questions_elsewhere, ".* shared.*", against=True
    ),
    "picture in another release": Leak(
        PHOTOGRAPHS, "picture shared.*", _pictures_elsewhere, ".* shared.*", against=True
    ),
}
"""What can be planted, by name. Where it fits, the same leak is planted in drawn and in real files."""
