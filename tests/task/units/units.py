"""Small tasks, each for one thing that units may be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import mmlongbench.task as mt


class Card(mt.Row):
    """A postcard: two pictures, and who wrote it."""

    writer: str
    front: str
    back: str


class Postcards(mt.Task[Card]):
    """A needle of several parts: a text, a picture, a text and a picture."""

    metric = "sub_em"
    instruction = "Look at the postcards.\n\n"
    sources: ClassVar = {"cards": mt.Table, "pictures": mt.Folder}
    placements = mt.Placements(mt.Depth, (0.0, 0.5, 1.0))

    def question(self, row: Card) -> str:
        """Ask for the writer of a card."""
        return f"Who wrote the card number {row.id}?"

    def draft(self, row: Card, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the card among all others."""
        cards = [self.card(other, sources) for other in draws.order("others", self.others(row, sources), _id)]
        return mt.Draft((self.card(row, sources),), mt.InOrder(cards), answer=row.writer)

    def card(self, row: Card, sources: mt.Sources) -> mt.Unit:
        """Return a card as it is shown."""
        front, back = (mt.Image(sources.images[name].path) for name in (row.front, row.back))
        head, body, further = f"Card {row.id}, front: ", front, ("\nBack: ", back, f"\nFrom {row.writer}.")
        return mt.Unit(row.id, body, head=head, further=further, label=f"card of {row.writer}")


class BarePostcards(Postcards):
    """The same cards, which begin with a picture."""

    def card(self, row: Card, sources: mt.Sources) -> mt.Unit:
        """Return a card that begins with a picture."""
        front, back = (mt.Image(sources.images[name].path) for name in (row.front, row.back))
        return mt.Unit(row.id, front, further=(f"\nFrom {row.writer}.\n", back))


class Step(mt.Row):
    """A recipe, whose steps are asked about, or a line of other texts."""

    recipe: str = ""
    steps: tuple[str, ...] = ()
    line: str = ""


class Steps(mt.Task[Step]):
    """Three needles that keep their order, each at least a tenth of the haystack from the next."""

    metric = "sub_em"
    instruction = "Read the notes.\n\n"
    placements = mt.Placements(mt.Permutation, (0, 1, 2), in_order=True, apart=0.1)

    def selects(self, sources: mt.Sources) -> Callable[[Step], bool]:
        """Ask about recipes."""
        return lambda row: bool(row.recipe)

    def question(self, row: Step) -> str:
        """Ask for the last step."""
        return f"What is the last step of {row.recipe}?"

    def draft(self, row: Step, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the steps in their order, and lines around them."""
        steps = tuple(mt.Unit(f"{row.id}-{n}", f"{row.recipe}: {step}") for n, step in enumerate(row.steps))
        lines = [other for other in self.rows(sources) if other.line]
        hay = [mt.Unit(other.id, other.line) for other in draws.order("lines", lines, _id)]
        return mt.Draft(steps, mt.InOrder(hay), answer=row.steps[-1])


class Moment(mt.Row):
    """A span of frames of a film, and what is seen there."""

    film: str
    first: int
    last: int
    seen: str


class Films(mt.Task[Moment]):
    """Frames of a film in which nothing moves for a while, taken evenly; one of the span must be shown."""

    metric = "sub_em"
    instruction = "These are frames of a film, each with its number.\n\n"
    separator = "\n"
    sources: ClassVar = {"moments": mt.Table, "films": mt.Folder}
    repeats_pictures = True

    def question(self, row: Moment) -> str:
        """Ask what is seen in a span."""
        return f"Which colour is seen from frame {row.first} to frame {row.last}?"

    def draft(self, row: Moment, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Take the frames evenly."""
        frames = [name for name in sources.images.names if name.startswith(f"{row.film}/")]
        units = [
            mt.Unit(f"frame {n}", mt.Image(sources.images[name].path), head=f"[{n}] ") for n, name in enumerate(frames)
        ]
        shown = units[row.first : row.last + 1]
        return mt.Draft((), mt.spread(units), answer=row.seen, one_of=shown)


class Stills(Films):
    """The same, without leave to show a picture twice."""

    repeats_pictures = False


class Reasoned(Postcards):
    """The postcards, with another form of the prompt."""

    variants: ClassVar = ("reasoned",)
    variant_reserve = 8

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        """Ask for reasons."""
        return self.prompt({**record, "question": f"{record['question']} Think step by step."})


class Moody(Reasoned):
    """The postcards, with a form of the prompt that another process does not give."""

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        """Ask for reasons."""
        return self.prompt({**record, "question": f"{record['question']} {hash(variant)}"})


class Wordy(Postcards):
    """The postcards, with forms of the prompt that are too long, or tell the answer."""

    variants: ClassVar = ("long", "telling")

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        """Add to the question."""
        added = "Think step by step. " * 200 if variant == "long" else f"It is {record['answer']}."
        return self.prompt({**record, "question": f"{record['question']} {added}"})


class Bare(Postcards):
    """The postcards, with a form of the prompt that has no needle."""

    variants: ClassVar = ("bare",)

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        """Leave the needle out."""
        return self.prompt({**record, "units": [unit for unit in record["units"] if unit["role"] != "needle"]})


class Pair(mt.Options):
    """What the notes of a dataset are about."""

    says: str = "agree"
    """Whether a later note says the same (`agree`) or another thing (`differ`)."""


class Paired(mt.Task[Step]):
    """Two datasets of the same contexts that differ in one unit."""

    metric = "sub_em"
    instruction = "Read the notes.\n\n"
    placements = mt.Placements(mt.Permutation, (0,), in_order=True)
    options_type = Pair
    options: Pair

    def selects(self, sources: mt.Sources) -> Callable[[Step], bool]:
        """Ask about recipes."""
        return lambda row: bool(row.recipe)

    def question(self, row: Step) -> str:
        """Ask for the first step."""
        return f"What was the first step of {row.recipe} at first?"

    def draft(self, row: Step, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put a first note and a later one among other lines."""
        later = row.steps[0] if self.options.says == "agree" else row.steps[1]
        notes = [mt.Unit("note", f"{row.recipe}: {row.steps[0]}"), mt.Unit("later", f"{row.recipe}, later: {later}")]
        lines = [other for other in self.rows(sources) if other.line]
        hay = [mt.Unit(other.id, other.line) for other in draws.order("lines", lines, _id)]
        return mt.Draft(tuple(notes), mt.InOrder(hay), answer=row.steps[0])


class Book(mt.Row):
    """A book and its shelf."""

    title: str
    shelf: str
    answer: str = ""


class Catalogue(mt.Task[Book], mt.advanced.SharedContextBuilder[Book]):
    """All questions share one context. The places of its lines are drawn apart from the order of taking."""

    metric = "sub_em"
    instruction = "This is a catalogue.\n\n"
    separator = "\n"

    def question(self, row: Book) -> str:
        """Ask for the shelf of a book."""
        return f"On which shelf is {row.title}?"

    def answer(self, example: mt.PackedExample) -> str:
        """Return the shelf, if the context has the book."""
        if example.row.id not in [unit.id for unit in example.units]:
            raise mt.Rejected("the catalogue ends before this book")
        return str(example.row.shelf)

    def contexts(self, rows: Sequence[Book], sources: mt.Sources) -> Sequence[mt.advanced.ContextDraft]:
        """Return the catalogue, about which all rows are asked."""
        draws, asked = sources.draws, [row.id for row in rows]
        lines = [
            mt.Unit(book.id, f"{book.title}: shelf {book.shelf}", (draws.rank("place", book.id),))
            for book in draws.order("taken", self.rows(sources), _id)
        ]
        required = tuple(line for line in lines if line.id in asked)
        rest = [line for line in lines if line.id not in asked]
        return [self.shared("catalogue", mt.Draft(required, mt.InOrder(rest)), rows)]

    def draft(self, row: Book, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """Return the catalogue with the question of one row."""
        return self.contexts([row], sources)[0]


class NoneOf(Catalogue):
    """No book is one of those that a context must show, so every row is rejected."""

    def draft(self, row: Book, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """Return the catalogue with an empty `one_of`."""
        return replace(super().draft(row, sources, draws), one_of=())


class Careless(Catalogue):
    """The catalogue without the lines that are asked about, as its take order has them."""

    answer = mt.Task.answer  # type: ignore[assignment]

    def contexts(self, rows: Sequence[Book], sources: mt.Sources) -> Sequence[mt.advanced.ContextDraft]:
        """Return the catalogue."""
        books = enumerate(self.rows(sources))
        lines = [mt.Unit(book.id, f"{book.title}: shelf {book.shelf}", (place,)) for place, book in books]
        return [self.shared("catalogue", mt.Draft((), mt.InOrder(lines)), rows)]


def _id(row: mt.Row) -> str:
    return row.id


class Quiz(mt.Row):
    """A text with a question about it, and options."""

    text: str
    question: str
    right: str
    wrong: tuple[str, ...]


class Quizzes(mt.Task[Quiz]):
    """A question with options about one of many texts."""

    metric = "mc_acc"
    instruction = "Read the texts and answer with a letter.\n\n"
    placements = mt.Placements(mt.Depth, (0, 1))

    def draft(self, row: Quiz, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        options = draws.order("options", (row.right, *row.wrong))
        question = "\n".join((row.question, *map("{}. {}".format, "ABCD", options)))
        hay = mt.InOrder([mt.Unit(other.id, other.text) for other in self.others(row, sources)])
        needle = mt.Unit(row.id, row.text)
        return mt.Draft((needle,), hay, question, options.index(row.right), {"options": options})

    def choices(self, record: mt.Record) -> mt.Choices:
        return mt.Choices(tuple(record["options"]), record["answer"])


class Entry(mt.Row):
    """A number."""

    number: int


class Entries(mt.Task[Entry]):
    """Three needles whose texts begin other units, too: `Line 1` and `Line 10`."""

    metric = "sub_em"
    instruction = "Read the lines.\n\n"
    sources: ClassVar = {"entries": mt.Table, "pictures": mt.Folder}
    placements = mt.Placements(mt.Permutation, (0, 1, 2), in_order=True, apart=0.1)
    repeats_pictures = True

    def question(self, row: Entry) -> str:
        """Ask for a number."""
        return f"Which line is about {row.id}?"

    def draft(self, row: Entry, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put three units between all others."""
        units = [self.unit(number, sources) for number in range(200)]
        return mt.Draft(tuple(units[1:4]), mt.InOrder(units[4:]), answer=f"{row.number}")

    def unit(self, number: int, sources: mt.Sources) -> mt.Unit:
        """Return a line."""
        return mt.Unit(f"u{number}", f"Line {number}")


class Repeats(Entries):
    """Three needles that are the same picture as all other units."""

    def unit(self, number: int, sources: mt.Sources) -> mt.Unit:
        """Return a picture."""
        return mt.Unit(f"u{number}", mt.Image(sources.images["000.png"].path))


class Echoes(Entries):
    """Three needles that are the same text as all other units."""

    def unit(self, number: int, sources: mt.Sources) -> mt.Unit:
        """Return a text."""
        return mt.Unit(f"u{number}", "It rained all day.")
