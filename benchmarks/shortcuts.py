"""The shortcut audit: which planted leaks it finds, and how often it accuses clean questions.

Clean questions: golds, answers and right choices are drawn without a look at anything else, so that each null of the
audit is true. All else depends on the subject: a document has its own encoder, page size, words, number of pages and of
questions, and its own liking for answers. Features have few values, pictures and passages stand in many contexts, some
golds are shared by questions about different subjects, and clusters have very different sizes.
"""

import multiprocessing
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from PIL import Image as Pillow

from mmlongbench.draws import digest
from mmlongbench.likeness import Pictures
from mmlongbench.prompt import Image
from mmlongbench.shortcuts.counted import ASKED_TWICE, GOLD, OFFERED, UNEVEN, Depths, Leakage, Overlap
from mmlongbench.shortcuts.findings import Finding, Measured, judge, uniforms
from mmlongbench.shortcuts.image_features import ImageFacts
from mmlongbench.shortcuts.probes import Kept, measure
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.statistics import Floats, wilson
from mmlongbench.task.builder import Choices

# ---- Clean questions

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
        are_pictures = "file" in key or _one(key, "pictures") < 0.6
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


# ---- What is planted


def _golds(change: Callable[[ShownUnit, Path], ShownUnit]) -> "Plant":
    """Plant in each gold of a question."""

    def plant(asked: AskedQuestion, folder: Path) -> AskedQuestion:
        units = (change(unit, folder) if unit.is_gold else unit for unit in asked.units)
        return replace(asked, units=tuple(units))

    return plant


def _encoded(**how: object) -> "Plant":
    """Write the picture of each gold again, under a name of the same form."""
    return _golds(lambda unit, folder: replace(unit, images=(_written(folder, unit.image, how),)))


def _written(folder: Path, name: str, how: Mapping[str, Any]) -> str:
    """Write a picture with options of Pillow, `larger` by a factor, or with `more` bytes at its end."""
    path, digits = Path(name), f"{int.from_bytes(digest(repr(how), name)[:6]):015}"
    stem = re.sub(r"\d", lambda place: digits[place.start() % 15], path.stem)
    out = folder / path.with_name(f"{stem}{path.suffix}")
    if not out.exists():
        options = dict(how)
        larger, more = options.pop("larger", 1), options.pop("more", 0)
        with Pillow.open(folder / name) as picture:
            kept = {"dpi": picture.info["dpi"], **({"quality": 75} if picture.format == "JPEG" else {})}
            size = int(picture.width * larger), int(picture.height * larger)
            picture.resize(size).save(out, picture.format, **{**kept, **options})
        out.write_bytes(out.read_bytes() + bytes(more))
    return out.relative_to(folder).as_posix()


def _texts(edit: Callable[[str], str]) -> "Plant":
    return _golds(lambda unit, _: replace(unit, texts=tuple(map(edit, unit.texts))))


def _in_folder(asked: AskedQuestion, folder: Path) -> AskedQuestion:
    units = []
    for unit in asked.units:
        if unit.is_gold:
            path = Path(unit.image)
            moved = path.parent / "asked" / path.name
            (folder / moved.parent).mkdir(exist_ok=True)
            if not (folder / moved).exists():
                (folder / moved).hardlink_to(folder / path)
            unit = replace(unit, images=(moved.as_posix(),))
        units.append(unit)
    return replace(asked, units=tuple(units))


def _gold_first(asked: AskedQuestion, _: Path) -> AskedQuestion:
    return replace(asked, units=tuple(sorted(asked.units, key=lambda unit: not unit.is_gold)))


def _says(asked: AskedQuestion) -> bool:
    """Whether the answer is the one that something tells."""
    return asked.answer in ("Yes", UNKNOWN)


def _exactly(asked: AskedQuestion, _: Path) -> AskedQuestion:
    return replace(asked, question=f"Exactly: {asked.question}") if _says(asked) else asked


def _fewer(asked: AskedQuestion, _: Path) -> AskedQuestion:
    others = [at for at, unit in enumerate(asked.units) if not unit.is_gold]
    left_out = set(others[: len(others) // 2]) if _says(asked) else set()
    return replace(asked, units=tuple(unit for at, unit in enumerate(asked.units) if at not in left_out))


def _frequent(asked: AskedQuestion, _: Path) -> AskedQuestion:
    if asked.choices is None:
        return replace(asked, answers=("bodana",), format="String")
    return replace(asked, choices=Choices(asked.choices.offered, 0))


def _right_file(asked: AskedQuestion, folder: Path) -> AskedQuestion:
    choices = asked.choices
    right = choices.offered[choices.right] if choices else None
    if choices is None or not isinstance(right, Image):
        return asked
    offered = list(choices.offered)
    name = _written(folder, right.path, {"dpi": (600, 600)})
    offered[choices.right] = Image(name)
    return replace(asked, choices=Choices(tuple(offered), choices.right))


def _last_exemplar(asked: AskedQuestion, _: Path) -> AskedQuestion:
    last = replace(asked.units[-1], texts=(f"It is {asked.answer}",))
    return replace(asked, units=(*asked.units[:-1], last))


def _other(asked: AskedQuestion, change: Callable[[ShownUnit, ShownUnit], ShownUnit]) -> AskedQuestion:
    """Change the first unit that is no gold; it is given the first gold, too."""
    golds = [unit for unit in asked.units if unit.is_gold]
    place = next(at for at, unit in enumerate(asked.units) if not unit.is_gold)
    units = [change(unit, golds[0]) if golds and at == place else unit for at, unit in enumerate(asked.units)]
    return replace(asked, units=tuple(units))


def _answer_in_negative(asked: AskedQuestion, _: Path) -> AskedQuestion:
    asked = replace(asked, answers=("Ossery Ridge",), format="String")
    return _other(asked, lambda unit, _: replace(unit, texts=(f"{unit.text} See Ossery Ridge.",)))


def _gold_twice(asked: AskedQuestion, _: Path) -> AskedQuestion:
    return _other(asked, lambda unit, gold: replace(gold, role=unit.role, is_gold=False, is_evidence=False))


Plant: TypeAlias = Callable[[AskedQuestion, Path], AskedQuestion]


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that tells, planted in one question after another."""

    families: tuple[str, ...]
    finding: str
    """Matches the kinds of the findings that may show it."""
    plant: Plant


_FILES = "gold from (image files|quantisation|metadata of images|sizes of images|EXIF tags)"
_FORM = "gold from (the form of texts|titles|the part of its source)"
_PICTURES, _OF_TEXTS = ("documents", "haystacks"), ("texts", "passages", "needles")
LEAKS: dict[str, Leak] = {
    "JPEG quality": Leak(("haystacks",), _FILES, _encoded(quality=15)),
    "dots per inch": Leak(_PICTURES, _FILES, _encoded(dpi=(600, 600))),
    "size of the image": Leak(_PICTURES, _FILES, _encoded(larger=1.25)),
    "bytes per pixel": Leak(_PICTURES, _FILES, _encoded(more=2000)),
    "folder": Leak(("haystacks",), "gold from file names", _in_folder),
    "punctuation": Leak(_OF_TEXTS, _FORM, _texts(lambda text: text.replace(" ", ", "))),
    "length of the text": Leak(_OF_TEXTS, _FORM, _texts(lambda text: f"{text} {text}")),
    "capitals": Leak(_OF_TEXTS, _FORM, _texts(str.title)),
    "digits": Leak(_OF_TEXTS, _FORM, _texts(lambda text: f"{text} 17 18 19 20")),
    "place of gold": Leak(("texts", "passages"), "gold from its (place|neighbours)", _gold_first),
    "word of the question": Leak((*_PICTURES, "texts"), "(not answerable|answer) from the question", _exactly),
    "number of units": Leak(("haystacks",), "(not answerable|answer) from (what is shown|the shape.*)", _fewer),
    "frequent answer": Leak(("needles", "haystacks", "choices"), "answer from (priors|its format)", _frequent),
    "file of the right choice": Leak(("choices",), "right choice from its file", _right_file),
    "last exemplar": Leak(("exemplars",), "right label from its exemplars", _last_exemplar),
    "answer in a negative": Leak(("passages",), "answer in a negative", _answer_in_negative),
    "gold text twice": Leak(("passages",), "gold text twice.*", _gold_twice),
    "gold picture twice": Leak(("haystacks",), "gold picture twice.*", _gold_twice),
}
STRENGTHS = {"weak": 0.2, "medium": 0.5, "strong": 1.0}
"""The share of questions that carry a leak. What is counted is planted a tenth as often."""
SUBJECTS = 60
SIZES = ((6, 12), (12, 30), (30, 60))
"""How many subjects a dataset of a clean release has: few, some, or many, equally often."""


# ---- Auditing


_folder: list[Path] = []
"""The folder with the drawn files; set once in each process."""


def _start(folder: Path) -> None:
    _folder[:] = [folder]


def audited(datasets: Sequence[tuple[str, Questions]]) -> tuple[list[Finding], float | None]:
    """Return the findings about some datasets of a release, and its p."""
    measured, findings = list[tuple[str, str, Measured]](), list[Finding]()
    for at, (name, questions) in enumerate(datasets):
        kept, images = Kept(), ImageFacts(_folder[0])
        counting = (Leakage(f"{at}"), Overlap(f"{at}", Pictures(_folder[0])), Depths(f"{at}"))
        for asked in questions:
            kept.add(asked, images, has_depths=name == "haystacks")
            for counter in counting:
                counter.add(asked)
        measured += [(f"{at}", "drawn", probe) for probe in measure(kept)]
        findings += [finding for counter in counting for finding in counter.findings()]
    estimated, p = judge(measured)
    return [*estimated, *findings], p


def _one_clean(number: int) -> tuple[list[tuple[str, float | None, str]], float | None]:
    """Draw a release of 1 to 3 datasets of different families and sizes, and audit it."""
    families, of = Clean(_folder[0]).families, uniforms(10, "clean release", number)
    datasets = []
    for at in range(1 + int(of[0] * 3)):
        family, size, extra = of[1 + 3 * at : 4 + 3 * at]
        name, (low, high) = sorted(families)[int(family * len(families))], SIZES[int(size * len(SIZES))]
        datasets.append((name, families[name](low + int(extra * (high - low)), f"{number} {at}")))
    findings, p = audited(datasets)
    # Drawn questions lack placements, offer equal texts and have equal words by chance.
    drawn = (UNEVEN, OFFERED, GOLD, ASKED_TWICE)
    return [(each.kind, each.p, each.verdict) for each in findings if each.kind not in drawn], p


def _one_planted(job: tuple[str, str, str]) -> tuple[str, str, str, bool, float | None, float]:
    name, family, strength = job
    leak, questions = LEAKS[name], Clean(_folder[0]).families[family](SUBJECTS, f"planted {name}")
    is_counted = "twice" in name or name == "answer in a negative"
    share = STRENGTHS[strength] / (10 if is_counted else 1)
    chosen = uniforms(len(questions), "carries", name, family) < share
    chosen[0] |= is_counted
    planted = [leak.plant(asked, _folder[0]) if at else asked for asked, at in zip(questions, chosen, strict=True)]
    right = [each for each in audited([(family, planted)])[0] if re.fullmatch(leak.finding, each.kind)]
    best = min(right, key=lambda each: (each.verdict != "leak", each.p or 0, -each.excess))
    return name, family, strength, best.verdict == "leak", best.p, best.excess


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure `mmlongbench shortcuts` on drawn questions."""


@main.command()
@click.option("--only", default="", help="Leaks whose names begin so.")
@click.option("--processes", default=2, show_default=True)
def planted(only: str, processes: int) -> None:
    """Plant leaks at three strengths, and say which are found."""
    jobs = [
        (name, family, strength)
        for name, leak in LEAKS.items()
        if name.startswith(only)
        for family in leak.families
        for strength in STRENGTHS
    ]
    shares: dict[str, list[bool]] = defaultdict(list)
    for name, family, strength, is_found, p, excess in _mapped(_one_planted, jobs, processes):
        shares[strength].append(is_found)
        said = "counted" if p is None else f"p {p:.4f}"
        click.echo(
            f"{name:<26} {family:<10} {strength:<7} {'found ' if is_found else 'missed'} {100 * excess:+5.1f}  {said}"
        )
    for strength, hits in shares.items():
        click.echo(_share(strength, hits))


@main.command()
@click.option("--releases", default=1000, show_default=True, help="How many clean releases are drawn.")
@click.option("--first", default=0, show_default=True, help="The number of the first release; others draw others.")
@click.option("--processes", default=2, show_default=True)
def clean(releases: int, first: int, processes: int) -> None:
    """Audit clean releases: the share with p ≤ 0.05, the share with a leak, and both by kind of probe."""
    done = list(_mapped(_one_clean, range(first, first + releases), processes))
    p = [each for _, each in done if each is not None]
    click.echo(f"{len(done)} clean releases, {len(p)} with p; {sum(len(tried) for tried, _ in done)} findings")
    click.echo(_share("p of the release at most 0.05", [each <= 0.05 for each in p]))
    for name, counted in (("an estimated leak", False), ("a counted leak", True)):
        click.echo(
            _share(name, [any((p is None) is counted and v == "leak" for _, p, v in tried) for tried, _ in done])
        )
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, _, verdict in (each for tried, _ in done for each in tried):
        verdicts[kind][verdict] += 1
    for kind, times in sorted(verdicts.items()):
        click.echo(f"  {kind:<50} {', '.join(f'{times[v]} {v}' for v in ('leak', 'clean', 'undecided'))}")


def _mapped(function: Callable[[Any], Any], jobs: Sequence[Any], processes: int) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        draw_files(Path(folder))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context, _start, (Path(folder),)) as pool:
            yield from pool.map(function, jobs)


def _share(name: str, hits: Sequence[bool]) -> str:
    """A line with a share and its Wilson interval.

    >>> _share("heads", [True, False]).split()
    ['heads', '2', '50.0', '%', '(9.5', 'to', '90.5)']
    """
    share = sum(hits) / max(1, len(hits))
    low, high = wilson(share, len(hits))
    return f"{name:<40} {len(hits):>5} {100 * share:5.1f} % ({100 * low:.1f} to {100 * high:.1f})"


if __name__ == "__main__":
    main()
