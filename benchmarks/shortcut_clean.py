"""Clean questions for the shortcut audit: nothing tells, but much is awkward.

Golds, answers and right choices are drawn without a look at anything else, so that each null of the audit is true. All
else depends on the subject: a document has its own encoder, page size, words, number of pages and of questions, and its
own liking for answers. Features have few values, pictures and passages stand in many contexts, some golds are shared by
questions about different subjects, and clusters have very different sizes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image as Pillow

from mmlongbench.prompt import Image
from mmlongbench.shortcuts.measured import Floats, uniforms
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.task.builder import Choices

DOCUMENTS, PAGES, PHOTOGRAPHS = 160, 12, 400
"""How many documents and pages of each, and how many photographs, are drawn as files."""
_ENDINGS = ["na", "rel", "mit", "sor", "lun", "pek"]
WORDS = tuple(f"{first}{last}" for first in ["bodaku", "rime", "salo", "tevi"] for last in _ENDINGS)
NAMES = tuple(f"Qu{first}{last}" for first in ["ala", "eri", "otho", "ysta"] for last in _ENDINGS)
UNKNOWN = "Not answerable"
LEFT_OUT = 20
"""A free answer may be right in one question of this many; the drawn ones are as frequent as that."""
Questions: TypeAlias = list[AskedQuestion]
Draw: TypeAlias = Callable[[int, str], Questions]
_Shown: TypeAlias = tuple[tuple[str, ...], str]


def draw_files(folder: Path) -> None:
    """Write `page/<document>/<page>` and `photograph/<number>`: a document's pages have one encoder and one size."""
    for document in range(DOCUMENTS):
        of = uniforms(6, "document", document)
        size = 16 + 8 * int(of[0] * 3), 16 + 8 * int(of[1] * 2)
        for page in range(PAGES):
            _write(folder / f"page/d{document}/p{page:02}", size, of[2:], ("page", document, page))
    for number in range(PHOTOGRAPHS):
        of = uniforms(6, "photograph", number)
        size = ((24, 18), (18, 24), (24, 16), (20, 20))[int(of[0] * 4)]
        name = f"photograph/s{int(of[1] * 2)}/{int(of[2] * 1e6):06}{number:03}"
        _write(folder / name, size, of[2:], ("photograph", number))


def _write(path: Path, size: tuple[int, int], of: Floats, key: tuple[str | int, ...]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = (255 * uniforms(size[0] * size[1], "pixels", *key) ** 2).astype("u1").tobytes()
    picture, dots = Pillow.frombytes("L", size, noise), (72, 150, 300)[int(of[1] * 3)]
    if of[0] < 0.3:
        picture.save(path.with_suffix(".png"), dpi=(dots, dots))
    else:
        options: dict[str, Any] = {"quality": 60 + 10 * int(of[2] * 4), "progressive": bool(of[3] < 0.3)}
        (picture if of[3] < 0.5 else picture.convert("RGB")).save(path.with_suffix(".jpg"), dpi=(dots, dots), **options)


class Clean:
    """Draws clean datasets from the files of a folder."""

    def __init__(self, folder: Path) -> None:
        """The folder has what `draw_files` wrote."""
        pages = [sorted((folder / f"page/d{number}").iterdir()) for number in range(DOCUMENTS)]
        self._pages = [[path.relative_to(folder).as_posix() for path in each] for each in pages]
        found = sorted(path for path in (folder / "photograph").rglob("*.*"))
        self._photographs = [path.relative_to(folder).as_posix() for path in found]
        self.families: dict[str, Draw] = {
            "documents": self.documents,
            "texts": self.texts,
            "passages": self.passages,
            "needles": self.needles,
            "haystacks": self.haystacks,
            "choices": self.choices,
            "exemplars": self.exemplars,
        }
        """How to draw a dataset of some subjects, by its family."""

    def documents(self, subjects: int, key: str) -> Questions:
        """Questions about page images; the golds of a document's questions are drawn from its pages."""
        found: Questions = []
        for subject, document in enumerate(_order(DOCUMENTS, key, "documents")[:subjects]):
            pages = self._pages[document][: 4 + int(_one(key, "shown", subject) * (PAGES - 3))]
            padding = self._pages[(document + 1) % DOCUMENTS][: int(_one(key, "padding", subject) * 5)]
            found += self._asked_of(subject, key, [((), path) for path in pages], [((), path) for path in padding])
        return found

    def texts(self, subjects: int, key: str) -> Questions:
        """Questions about pages as texts."""
        found: Questions = []
        for subject in range(subjects):
            own = [
                ((_text(f"{key} {subject}", page, 0.4, subject),), "")
                for page in range(4 + int(12 * _one(key, "shown", subject)))
            ]
            padding = [((_text(key, page, 0.4, -1 - page % 5),), "") for page in range(int(20 * _one(key, subject)))]
            found += self._asked_of(subject, key, own, padding)
        return found

    def _asked_of(self, subject: int, key: str, own: Sequence[_Shown], padding: Sequence[_Shown]) -> Questions:
        """The questions about one document: up to 16, most documents have few."""
        questions = 1 + int(16 * _one(key, "questions", subject) ** 3)
        found: Questions = []
        for number in range(questions):
            of = uniforms(8, key, "question", subject, number)
            golds = set(_order(len(own), key, "golds", subject, number)[: 1 + int(of[0] ** 2 * 3)])
            answer = _answer(key, subject, number, clustered=True)
            is_answered = answer != UNKNOWN
            units = [
                _unit("own", texts, path, is_gold=is_answered and at in golds) for at, (texts, path) in enumerate(own)
            ]
            units += [_unit("padding", texts, path) for texts, path in padding]
            question = _question(key, subject, number)
            asked = _asked(f"d{subject:03}-{number:02}", question, f"doc {subject:03}", (answer,), units)
            first = int(_one(key, "first page", subject) * 20)
            found.append(replace(asked, pages=tuple(range(first, first + len(own)))))
        return found

    def passages(self, subjects: int, key: str) -> Questions:
        """Questions about entities with one to three gold passages; a fifth of the entities share one with the entity
        before it.
        """
        texts = [_text(key, at, 0.5, int(9 * _one(key, "style", at))) for at in range(subjects * 6)]
        found: Questions = []
        for subject in range(subjects):
            of = uniforms(8, key, "entity", subject)
            order = _order(len(texts), key, "passages", subject)[:40]
            golds = [f"{texts[subject * 3 + at]}" for at in range(1 + int(of[0] * 3))]
            if subject and of[1] < 0.2:
                golds[0] = texts[(subject - 1) * 3]
            drawn = [texts[at] for at in order if texts[at] not in golds]
            units = [_unit("gold", (text,), is_gold=True) for text in golds]
            units = _mixed([*units, *(_unit("negative", (text,)) for text in drawn)], key, subject)
            answers = (_answer(key, subject, 0, clustered=False, is_name=True),)
            found.append(_asked(f"e{subject:04}", _question(key, subject, 0), f"entity {subject}", answers, units))
        return found

    def needles(self, subjects: int, key: str) -> Questions:
        """Questions about one gold text among many of the same form, with images between them."""
        found: Questions = []
        for subject in range(subjects):
            texts = [_unit("padding", (_text(f"{key} {subject}", at, 0.3, at % 4),)) for at in range(30)]
            gold = int(_one(key, "gold", subject) * 30)
            texts[gold] = replace(texts[gold], role="needle", is_gold=True)
            images = [_unit("padding", (), self._photograph(key, "between", subject, at)) for at in range(6)]
            units = _mixed([*texts, *images], key, subject)
            answers = (_answer(key, subject, 0, clustered=False),)
            found.append(_asked(f"n{subject:04}", _question(key, subject, 0), f"needle {subject}", answers, units))
        return found

    def haystacks(self, subjects: int, key: str) -> Questions:
        """Yes and no about one to three photographs among fifty; photographs are needles of several questions."""
        found: Questions = []
        several = _one(key, "several") < 0.5
        for number in range(subjects):
            of = uniforms(4, key, "haystack", number)
            order = _order(PHOTOGRAPHS, key, "photographs", number)
            many = 1 + int(of[0] * 3) if several else 1
            needles = order[:many]
            if many > 1 and of[1] < 0.4:  # a needle of the question before
                needles[0] = _order(PHOTOGRAPHS, key, "photographs", max(0, number - 1))[0]
            others = [at for at in order[many:50] if at not in needles]
            units = [_unit("needle", (), self._photographs[at], is_gold=True) for at in needles]
            units += [_unit("negative", (), self._photographs[at]) for at in others]
            right = int(of[2] < 0.5)
            about = f"photograph {min(needles)}"
            asked = _asked(f"h{number:04}", _question(key, number, 0), about, (("Yes", "No")[right],), [])
            units = _mixed(units, key, number)
            depths = tuple(float(at) for at in range(3) if subjects % 2 or _one(key, "depth", number, at) < 0.9)
            asked = replace(asked, choices=Choices(("Yes", "No"), right), units=tuple(units))
            found.append(replace(asked, placements=depths or (0.0,)))
        return found

    def choices(self, subjects: int, key: str) -> Questions:
        """Which of some pictures or texts is right; the offered ones are shown nowhere else."""
        found: Questions = []
        are_pictures = _one(key, "pictures") < 0.6
        for number in range(subjects):
            of = uniforms(8, key, "choices", number)
            offered = 4 if of[0] < 0.7 else 3
            right = int(of[1] * offered)
            parts: tuple[Any, ...] = tuple(_text(f"{key} choice {number}", at, 0.1, 0) for at in range(offered))
            if are_pictures:
                parts = tuple(Image(self._photograph(key, "offered", number, at)) for at in range(offered))
            subject = f"set {int(of[2] * subjects * 0.7)}"
            asked = _asked(f"c{number:04}", _question(key, number, 0), subject, (f"choice {right}",), [])
            found.append(replace(asked, choices=Choices(parts, right)))
        return found

    def exemplars(self, subjects: int, key: str) -> Questions:
        """Which of ten classes a picture is of; two questions a subject, with equal answers."""
        labels = tuple(f"class {number}" for number in range(10))
        found: Questions = []
        for subject in range(subjects):
            right = int(_one(key, "class", subject) * 10)
            for number in range(2):
                asked = _asked(f"x{subject:04}-{number}", "Which class?", f"picture {subject}", (labels[right],), [])
                shown = 20 + int(_one(key, "shown", subject, number) * 10)
                units = [
                    _unit(
                        "exemplar",
                        (f"It is {labels[int(_one(key, 'label', subject, number, at) * 10)]}",),
                        self._photograph(key, "exemplar", subject, at),
                    )
                    for at in range(shown)
                ]
                found.append(replace(asked, choices=Choices(labels, right), units=tuple(units)))
        return found

    def _photograph(self, *key: str | int) -> str:
        return self._photographs[int(_one(*key) * PHOTOGRAPHS)]


def relabelled(questions: Sequence[AskedQuestion], key: str) -> Questions:
    """The questions of a release with other golds, answers and right choices, drawn: nothing tells, by construction.

    Golds are drawn among the units of a context that have the role and the medium of a gold. A subject has its own
    answers, of which none is too frequent.
    """
    names = {name: at for at, name in enumerate(sorted({each.cluster for each in questions}))}
    found: Questions = []
    for each in questions:
        subject, units = names[each.cluster], _redrawn(each, key)
        if each.choices:
            offered = each.choices.offered
            right = int(_one(key, "right", each.id) * len(offered))
            answer = offered[right] if isinstance(offered[right], str) else f"choice {right}"
            choices = Choices(offered, right)
            found.append(replace(each, choices=choices, answers=(str(answer),), units=units, needles=()))
        else:
            answer = _answer(key, subject, len(found), clustered=True)
            found.append(replace(each, answers=(answer,), units=units, needles=()))
    return found


def _redrawn(asked: AskedQuestion, key: str) -> tuple[ShownUnit, ...]:
    golds = [unit for unit in asked.units if unit.is_gold]
    if not golds:
        return asked.units
    first = golds[0]
    is_own = first.role == "own"
    places = [
        at
        for at, unit in enumerate(asked.units)
        if bool(unit.image) == bool(first.image) and (unit.role == "own" or not is_own)
    ]
    drawn = {places[at] for at in _order(len(places), key, "redrawn", asked.id)[: len(golds)]}
    return tuple(replace(unit, is_gold=at in drawn) for at, unit in enumerate(asked.units))


def _one(*key: str | int) -> float:
    return float(uniforms(1, "clean", *key)[0])


def _order(n: int, *key: str | int) -> list[int]:
    found: list[int] = np.argsort(uniforms(n, "clean", *key)).tolist()
    return found


def _mixed(units: Sequence[ShownUnit], *key: str | int) -> list[ShownUnit]:
    return [units[at] for at in _order(len(units), "mixed", *key)]


def _unit(role: str, texts: tuple[str, ...], image: str = "", *, is_gold: bool = False) -> ShownUnit:
    images = (image,) if image else ()
    return ShownUnit(image or texts[0], role, texts, images, is_gold=is_gold, is_evidence=is_gold and role == "own")


def _asked(id: str, question: str, subject: str, answers: tuple[str, ...], units: Sequence[ShownUnit]) -> AskedQuestion:
    form = "None" if answers[0] == UNKNOWN else "Integer" if answers[0].isdigit() else "String"
    return AskedQuestion(id, "clean", question, subject, answers, None, (), (), tuple(units), form)


def _answer(key: str, subject: int, number: int, *, clustered: bool, is_name: bool = False) -> str:
    """An answer: `Not answerable` in one of 20; otherwise a number below ten, or two words of which texts are made; two
    names, which stand in no text, if that is wanted. A subject may like some of them more.
    """
    of = uniforms(4, key, "answer", subject, number)
    likes = uniforms(3, key, "likes", subject) if clustered else np.full(3, 0.5)
    if of[0] < 2 * likes[0] / LEFT_OUT:
        return UNKNOWN
    if of[0] < 0.4:
        liked = likes[1] if of[1] < 0.5 and clustered else of[2]
        return str(int(10 * liked))
    words = NAMES if is_name else WORDS
    return f"{words[int(of[2] * len(words))]} {words[int(of[3] * len(words))]}"


def _question(key: str, subject: int, number: int) -> str:
    """A question of 6 to 25 words, of which some are those of its subject."""
    of = uniforms(30, key, "words", subject, number)
    own = uniforms(6, key, "own words", subject)
    n = 4 + int(20 * of[0] * own[0])
    words = [WORDS[int((own[1 + at % 5] if of[at + 1] < 0.3 else of[at + 1]) * len(WORDS))] for at in range(n)]
    return f"{('What', 'How many', 'Which')[int(own[5] * 3)]} {' '.join(words)}{'?' if of[29] < 0.9 else ''}"


def _text(key: str, number: int, spread: float, style: int) -> str:
    """A text with the style of its subject: length, capitals, digits, punctuation, line breaks."""
    of, own = uniforms(44, key, "text", number), uniforms(5, "style", style)
    n = 6 + int(30 * (own[0] * (1 - spread) + of[0] * spread))
    words = [WORDS[int(each * len(WORDS))] for each in of[2 : 2 + n]]
    words = [word.upper() if of[at + 2] < own[1] / 4 else word for at, word in enumerate(words)]
    words = [f"{word}{',' if of[at + 2] * 7 % 1 < own[2] / 3 else ''}" for at, word in enumerate(words)]
    title = f"{WORDS[int(of[1] * len(WORDS))]} {int(of[0] * 1000) if own[3] < 0.5 else ''}".strip()
    return f"{title}\n{' '.join(words)}{'.' if of[43] < own[4] else ''}"
