"""A small version of MM-NIAH's own download: six annotation files and folders of pictures, all of them drawn.

Every form of the real rows occurs: answers that are lists or lists as text, equal statements, zeros, patterns first or
last in `images_list`, needles as paths or numbers, `</s>` between pages, Jigsaw and Multi-view rows. Pictures are
plain, so that a program can see from the pixels what a picture shows (see `CARTOONS`, `SLOTS`).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.task import Draws
from mmlongbench.task.advanced import ordinal_words
from tests.drawing.mm_niah.pages import sentence

CARTOONS: dict[str, tuple[int, int, int]] = {
    name: (250, 5 + 17 * number, 240 - 16 * number)
    for number, name in enumerate(
        ("kite", "owl", "drum", "bus", "anchor", "bell", "cup", "door", "egg", "fan", "gate", "hat", "ink", "jar")
    )
}
"""The colour of each of the fourteen cartoons; no other part of a drawn picture has so much red."""
SLOTS = ((8, 8), (46, 8))
"""The upper left corners, in pixels, of the squares that are pasted onto a page picture; each square is a cartoon."""
SQUARE = 24
"""The side of a pasted square in pixels."""
SIDE = 84
"""The side of a page picture in pixels, which gives 9 tokens."""
STAR = "\u2605"
FILES = ("retrieval-text", "retrieval-image", "counting-text", "counting-image", "reasoning-text", "reasoning-image")
BIRDS = ("penguin", "gannet", "puffin", "curlew", "plover", "grebe", "dunlin", "bittern")


def draw_upstream(
    folder: Path, rows: int = 8, pictures: int = 48, images: str = "mm_niah_dev/images", pages: int = 12
) -> dict[str, dict[str, Path]]:
    """Draw the download, and an OBELICS file of `pages` pages without pictures; return the sources for each annotation
    file, by its name.

    Args:
        folder: the folder to draw into.
        rows: the rows of each file; in `reasoning-image` a third of them are Multi-view rows.
        pictures: the number of page pictures, without needles, that all contexts of one file show together.
        images: the folder of the pictures; in the archive of the validation split it is `mm_niah_dev/images`.
        pages: the number of further web pages.

    """
    drawn = _Drawing(folder / images, Draws(("upstream",)), rows, pictures)
    drawn.draw_pictures()
    annotations = folder / "mm_niah_val" / "annotations"
    annotations.mkdir(parents=True, exist_ok=True)
    made = {name: [drawn.row(name, number) for number in range(rows)] for name in FILES}
    for name, lines in made.items():
        (annotations / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    more = folder / "obelics.jsonl"
    more.write_text("".join(json.dumps(page) + "\n" for page in drawn.further_pages(pages)), "utf-8")
    return {name: {"questions": annotations / f"{name}.jsonl", "images": folder, "obelics": more} for name in FILES}


@dataclass(frozen=True, slots=True)
class _Context:
    """A context that is being written: its texts, and its pictures, one for each marker in the texts."""

    parts: tuple[str, ...]
    images: tuple[str, ...]
    needles: tuple[int, ...] = ()
    """The places of the needle pictures among `images`."""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The state that the rows of all files share."""

    root: Path
    draws: Draws
    rows: int
    pictures: int

    def draw_pictures(self) -> None:
        """Draw page pictures, cartoons, pasted page pictures, and the pictures of puzzles."""
        (self.root / "obelics").mkdir(parents=True, exist_ok=True)
        for number in range(self.pictures):
            _save(self.root / _page_picture(number), self._ground("page", number))
        for name, colour in CARTOONS.items():
            _save(self.root / "abnormal_pic_val" / f"{name}.png", colour, side=56)
        for number in range(self.rows):
            colour, ground = _cartoon_colour(number), self._ground("pasted", number)
            _save(self.root / self._pasted(number), ground, [colour])
            for n, count in enumerate(_counts_of(number)):
                _save(self.root / _counted(number, n), self._ground("counted", 8 * number + n), [colour] * count)
            ground = self._ground("puzzle", number)
            _save(self.root / _puzzle(number, 1), ground, corner=True)
            right = number % 2
            for n in range(2):
                own = ground if n == right else self._ground("piece", number)
                _save(self.root / _puzzle(number, n + 2), own, side=SIDE // 2)
            for n in range(2):
                _save(self.root / _frame(number, n), self._ground("frame", 2 * number + n))

    def row(self, name: str, number: int) -> dict[str, object]:
        """Return one annotation row of a file."""
        made: dict[str, object] = {
            "retrieval-text": self._retrieval_text,
            "retrieval-image": self._retrieval_image,
            "counting-text": self._counting_text,
            "counting-image": self._counting_image,
            "reasoning-text": self._reasoning_text,
            "reasoning-image": self._reasoning_image,
        }[name](number)
        return made

    def further_pages(self, pages: int) -> Iterator[dict[str, object]]:
        """Yield web pages in OBELICS' form, with texts alone."""
        for number in range(pages):
            texts = [self._prose("further", f"{number} {n}", 12) for n in range(10)]
            general = json.dumps({"url": f"https://pages.invalid/{number}"})
            metadata = json.dumps([None] * len(texts))
            yield {"images": [None] * 10, "texts": texts, "metadata": metadata, "general_metadata": general}

    def _retrieval_text(self, number: int) -> dict[str, object]:
        bird = BIRDS[number % len(BIRDS)]
        needle = f"The {bird} of bay {number} keeps the word quince{number}."
        context = self._context("retrieval text", number, [needle])
        question = f"Which word does the {bird} of bay {number} keep?"
        return _row(number, context, question, f"quince{number}", "find-text", [needle])

    def _retrieval_image(self, number: int) -> dict[str, object]:
        context = self._context("retrieval image", number, [], [self._pasted(number)])
        things = tuple(CARTOONS)
        choices = [f"abnormal_pic_val/{things[(number + n) % len(things)]}.png" for n in range(4)]
        at = number % 4
        choices = [*choices[4 - at :], *choices[: 4 - at]]
        needles = [choices[at]]  # the cartoon is not among the pictures of the context
        question = "Which of these cartoons is seen in the document?"
        return _row(number, context, question, at, "find-image", needles, choices_image=choices)

    def _counting_text(self, number: int) -> dict[str, object]:
        bird, counts = BIRDS[number % len(BIRDS)], [[4], [2, 2], [1, 5, 3], [3, 1, 3]][number % 4]
        needles = [f"The little {bird} counted {count} {STAR} ." for count in counts]
        context = self._context("counting text", number, needles)
        listed = needles[::-1] if number % 4 == 2 else needles
        question = f"Collect the numbers of {STAR} in one list, such as [x, x]."
        return _row(number, context, question, _spelled(counts, number), "count-text", listed)

    def _counting_image(self, number: int) -> dict[str, object]:
        hidden = [_counted(number, n) for n in range(len(_counts_of(number)))]
        context = self._context("counting image", number, [], hidden)
        known = dict(zip(hidden, _counts_of(number), strict=True))
        counts = [known.get(name, 0) for name in context.images]
        pattern = f"abnormal_pic_val/{tuple(CARTOONS)[number % len(CARTOONS)]}.png"
        kinds: list[list[Any]] = [[count for count in counts if count], hidden, [0, *hidden]]
        question = "Count this in each picture of the document: \n<image>\n as a list"
        answer = _spelled(counts, number)
        return _row(number, context, question, answer, "count-image", kinds[number % 3], pattern=pattern)

    def _reasoning_text(self, number: int) -> dict[str, object]:
        names = [f"{BIRDS[(number + n) % len(BIRDS)]}{number}" for n in range(3)]
        needles = [
            f"On day {number} {names[0]} flew farther than {names[1]}.",
            f"On day {number} {names[1]} flew farther than {names[2]}.",
            f"Nobody else flew on day {number}.",
        ]
        context = self._context("reasoning text", number, needles)
        question, options = f"Who flew farthest on day {number}?", [names[2], names[0], names[1]]
        answer: object = 1 if number % 2 else names[0]
        given = options if number % 2 else None
        return _row(number, context, question, answer, "infer-choose", needles, choices=given)

    def _reasoning_image(self, number: int) -> dict[str, object]:
        if number % 3 == 2:
            context = self._context("frames", number, [], [_frame(number, n) for n in range(2)])
            first, second = (ordinal_words(place + 1) for place in context.needles)
            question = f"The {first} and {second} image are frames of one video. Does the camera turn left or right?"
            needles = [_frame(number, n) for n in range(2)]
            return _row(number, context, question, 0, "visual-reasoning", needles, choices=["left", "right"])
        context = self._context("puzzle", number, [], [_puzzle(number, 1)])
        place = ordinal_words(context.needles[0] + 1)
        asks = "tell which of the following images is the part that is missing."
        question = (
            f"Given the {place} image, whose lower right corner is missing, {asks}",
            f"Given the {place} image with the lower right corner missing, {asks}",
            f"Seeing the {place} image, which has its lower right corner cut out, can you say which of the following "
            "images belongs there?",
        )[(number - number // 3) % 3]
        needles = [_puzzle(number, 1) if number % 2 else _puzzle(number, 1).split("/")[-1]]
        choices = [_puzzle(number, n) for n in (2, 3)]
        return _row(number, context, question, number % 2, "visual-reasoning", needles, choices_image=choices)

    def _context(self, kind: str, number: int, sentences: Sequence[str], pictures: Sequence[str] = ()) -> _Context:
        """Return web pages with the sentences inside some texts, and with the pictures between the pages' own
        pictures.
        """
        own = [_page_picture(n) for n in range(number, self.pictures, self.rows)]
        images = list(own)
        at = self.draws.at(kind, number)
        for n, name in enumerate(pictures):
            images.insert(at.integer(f"picture {n}", 0, len(images)) if own else len(images), name)
        texts = [self._prose(kind, f"{number} {n}", 3) for n in range(max(len(images), len(sentences)) + 1)]
        for n, needle in enumerate(sentences):
            place = (2 * n + 1) * len(texts) // (2 * len(sentences))
            words = needle.split()
            shown = f"{words[0]}\n{' '.join(words[1:])}" if number % 5 == 4 else needle
            texts[place] = f"{texts[place]} {shown} {self._prose(kind, f'{number} after {n}', 1)}"
        if number % 2:
            texts[-1] = f"</s>{texts[-1]}"
        return _Context(tuple(texts), tuple(images), tuple(images.index(name) for name in pictures))

    def _prose(self, kind: str, name: str, count: int) -> str:
        draws = self.draws.at(kind, name)
        return " ".join(sentence(draws, str(n)) for n in range(count))

    def _ground(self, kind: str, number: int) -> tuple[int, int, int]:
        """Return a colour that no other picture has, with little red."""
        at = {"page": 0, "pasted": 1, "counted": 2, "puzzle": 3, "piece": 4, "frame": 5}[kind]
        return 20 + 20 * at + number // 10_000, number // 100 % 100 + 100, number % 100 + 100

    def _pasted(self, number: int) -> str:
        """Return the name of a page picture with one cartoon. Its folder is one of the two that the real data has for
        such pictures, or a third one.
        """
        folder = ("obelics_paste/find-image", "abnormal_pic_page", "composed")[number % 3]
        return f"{folder}/pasted{number}.png"


def _page_picture(number: int) -> str:
    return f"obelics/web{number:04d}.png"


def _counted(number: int, n: int) -> str:
    return f"obelics_paste/count-image/counted{number}-{n}.png"


def _puzzle(number: int, n: int) -> str:
    return f"reasoning/val_Jigsaw_{number}_image_{n}.png"


def _frame(number: int, n: int) -> str:
    return f"reasoning/val_Multi-view_Reasoning_{number}_image_{n + 1}.png"


def _cartoon_colour(number: int) -> tuple[int, int, int]:
    return tuple(CARTOONS.values())[number % len(CARTOONS)]


def _counts_of(number: int) -> tuple[int, ...]:
    """Return the number of cartoons on each of the pasted pictures of a row."""
    return ((1,), (2, 1), (1, 2, 1), (2,))[number % 4]


def _spelled(counts: Sequence[int], number: int) -> object:
    """Return a counting answer: for most rows a list as JSON text, as in the real data, for others the list itself."""
    return json.dumps(list(counts)) if number % 3 else list(counts)


def _row(
    number: int,
    context: _Context,
    question: str,
    answer: object,
    category: str,
    needles: Sequence[object],
    *,
    choices: Sequence[str] | None = None,
    choices_image: Sequence[str] | None = None,
    pattern: str = "",
) -> dict[str, object]:
    """Return a row with the fields of the real rows."""
    images = list(context.images)
    if pattern:
        images = [pattern, *images] if number % 4 == 1 else [*images, pattern]
    text = context.parts[0]
    for n, part in enumerate(context.parts[1:]):
        text += f"\n<image>\n{part}" if n < len(context.images) else f"\n\n{part}"
    depth = round((number % 10) / 10, 2)
    return {
        "id": number,
        "images_list": images,
        "context": text,
        "question": question,
        "answer": answer,
        "meta": {
            "placed_depth": depth if number % 4 == 3 else [depth],
            "context_length": len(text.split()) + 256 * len(images),
            "context_length_text": len(text.split()),
            "context_length_image": 256 * len(images),
            "num_images": len(images),
            "needles": list(needles),
            "choices": choices,
            "choices_image_path": choices_image,
            "category": category,
        },
    }


def _save(
    path: Path,
    ground: tuple[int, int, int],
    squares: Sequence[tuple[int, int, int]] = (),
    *,
    side: int = SIDE,
    corner: bool = False,
) -> None:
    """Write a picture of one colour (`ground`), with a square for each colour of `squares`; `corner` adds a black lower
    right corner.
    """
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", (side, side), ground)
    for (x, y), colour in zip(SLOTS, squares, strict=False):
        picture.paste(colour, (x, y, x + SQUARE, y + SQUARE))
    if corner:
        picture.paste((0, 0, 0), (side // 2, side // 2, side, side))
    picture.save(path, "PNG")
