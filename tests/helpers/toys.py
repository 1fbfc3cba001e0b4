"""Five toy tasks, one a family, each with a draft of some ten lines: what the engine's types must be able to say."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import mmlongbench as mm

Sizes = Mapping[str, tuple[int, int]]
SEPARATORS = {"vrag": "\n\n", "vh": "\n", "icl": "\n\n", "summary": "\n\n", "docqa": "\n\n"}


class OneObject:
    """Many questions over one context, as one JSON object: the shape of the public ICL files."""

    def bundle(self, records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        found = list(records)
        shared = {key: found[0][key] for key in ("shots", "separator")}
        tests = [{key: record[key] for key in record if key not in shared} for record in found]
        yield json.dumps({"toy": {**shared, "test_example": tests}}).encode()

    def unbundle(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        for domain, data in json.loads(path.read_bytes()).items():
            for number, test in enumerate(data["test_example"]):
                yield f"{domain}/{number}", {**test, "shots": data["shots"], "separator": data["separator"]}


@dataclass(frozen=True)
class Toy:
    """A toy task is a drafting function; its record holds the units as they stand."""

    name: str
    write: Callable[[str, Sizes, mm.Draws], mm.Draft]
    spec: ClassVar[mm.TaskSpec] = mm.TaskSpec(mm.FilePattern("toy/{name}_K{k}.jsonl"), metric="none")

    def record(self, example: mm.Example) -> dict[str, Any]:
        units = [[u.head, _body(u.body), u.tail] for u in example.units]
        return {
            "id": example.id,
            "shots": units,
            "question": [_body(part) for part in example.question.parts],
            "separator": SEPARATORS[self.name],
        }

    def prompt(self, record: dict[str, Any]) -> mm.Prompt:
        units = [
            mm.Unit(str(number), "own", _part(body), (0,), head=head, tail=tail)
            for number, (head, body, tail) in enumerate(record["shots"])
        ]
        question = [_part(part) for part in record["question"]]
        return mm.assemble((f"Instruction of {self.name}.\n\n",), units, record["separator"], question)


def vrag(row: str, sizes: Sizes, draws: mm.Draws) -> mm.Draft:
    """A gold passage at a depth, ranked negatives in a drawn order, one image in the question."""
    texts = {f"p{i}": f"Passage {i}. " + "grasshopper " * draws.integer(f"words {i}", 1, 60) for i in range(120)}
    negatives = (mm.Unit(id, "negative", text, (draws.rank("place", id),), "Document: ") for id, text in texts.items())
    gold = mm.Unit("gold", "gold", "The gold passage.", None, "Document: ")
    question = mm.Question(row, ("\n\nQuestion: ", mm.Image("q.jpg"), "where does it live?\nAnswer:"))
    frame = ("Instruction of vrag.\n\n",)
    return mm.Draft(row, frame, (question,), (gold,), mm.InOrder(tuple(negatives)), closing=mm.Closing())


def vh(row: str, sizes: Sizes, draws: mm.Draws) -> mm.Draft:
    """Two needle photographs among others of different sizes, in a drawn order."""
    photos = draws.order("pile", (path for path in sizes if path.startswith("photo")))
    units = [mm.Unit(path, "negative", mm.Image(path), (number,)) for number, path in enumerate(photos)]
    needles = tuple(mm.Unit(path, "needle", mm.Image(path), None) for path in ("needle0.jpg", "needle1.jpg"))
    question = mm.Question(row, ("\n\nQuestion: is there a cat?\nAnswer:",))
    frame = ("Instruction of vh.\n\n",)
    take_order = mm.InOrder(tuple(units))
    return mm.Draft(row, frame, (question,), needles, take_order, separator="\n", closing=mm.Closing(last=2))


def icl(row: str, sizes: Sizes, draws: mm.Draws) -> mm.Draft:
    """Many test images over one context of rounds; an exemplar's label stands after its picture."""
    classes = tuple(draws.order("classes", (f"class{c:02d}" for c in range(60))))

    def unit(name: str, picture: str, label: int, turn: int) -> mm.Unit:
        return mm.Unit(picture, "exemplar", mm.Image(picture), (), tail=f"\nlabel: {label}", group=name)

    rounds = mm.Rounds(classes, lambda name: [f"{name}/{i}.jpg" for i in range(12)], unit, draws.order)

    def question(name: str) -> mm.Question:
        parts = ("\n\nNow classify this image: ", mm.Image(f"test/{name}.jpg"), "\nlabel:")
        return mm.Question(f"{row}/{name}", parts, group=name)

    questions = tuple(map(question, classes))
    return mm.Draft(row, ("Instruction of icl.\n\n",), questions, (), rounds)


def summary(row: str, sizes: Sizes, draws: mm.Draws) -> mm.Draft:
    """Three documents, each cut evenly from its end; no question but the closing request."""
    documents = [
        [_page(name, index, (number, index)) for index in range(count)]
        for number, (name, count) in enumerate((("alpha", 21), ("beta", 4), ("gamma", 40)))
    ]
    question = mm.Question(row, ("\n\nNow please summarize the case.\nSummary:",))
    return mm.Draft(row, ("Instruction of summary.\n\n",), (question,), (), mm.by_divisor(documents))


def docqa(row: str, sizes: Sizes, draws: mm.Draws) -> mm.Draft:
    """Two answer pages with a gap between them, then the rest inside out, then padding left and right."""
    required, rest = mm.inside_out([_page("alpha", i, (0, i)) for i in range(21)], (9, 13))
    others = [[_page(name, i, (0, i)) for i in range(count)] for name, count in (("beta", 4), ("gamma", 40))]
    question = mm.Question(row, ("\n\nQuestion: Based on Document alpha, how many?\nAnswer:",))
    take_order = mm.Chain((rest, lambda: mm.alternate_sides(others)))
    return mm.Draft(row, ("Instruction of docqa.\n\n",), (question,), required, take_order)


TOYS = tuple(Toy(write.__name__, write) for write in (vrag, vh, icl, summary, docqa))


def sizes_of(seed: int) -> dict[str, tuple[int, int]]:
    """Sizes of every picture a toy shows, drawn."""
    draws = mm.Draws((seed, "sizes"))
    paths = ["q.jpg", "needle0.jpg", "needle1.jpg", *(f"photo{i}.jpg" for i in range(300))]
    paths += [f"{name}/{i}.jpg" for name in ("alpha", "beta", "gamma") for i in range(40)]
    paths += [f"class{c:02d}/{i}.jpg" for c in range(60) for i in range(12)]
    paths += [f"test/class{c:02d}.jpg" for c in range(60)]
    return {path: (draws.integer(f"{path} w", 1, 700), draws.integer(f"{path} h", 1, 700)) for path in paths}


def _page(name: str, index: int, place: tuple[int, ...]) -> mm.Unit:
    path = f"{name}/{index}.jpg"
    return mm.Unit(path, "own", mm.Image(path), place, f"Document {name} (page {index}): ", group=name)


def _body(part: mm.Part) -> Any:
    return part if isinstance(part, str) else {"image": part.path}


def _part(value: Any) -> mm.Part:
    return value if isinstance(value, str) else mm.Image(value["image"])
