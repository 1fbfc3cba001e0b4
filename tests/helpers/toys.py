"""Five small tasks, one for each family, with drafts of about ten lines, which the engine's types must express."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import mmlongbench.task as mt

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
    write: Callable[[str, Sizes, mt.Draws], mt.advanced.ContextDraft]
    spec: ClassVar[mt.advanced.TaskSpec] = mt.advanced.TaskSpec(
        mt.readers.FilePattern("toy/{name}_K{k}.jsonl"), metric="none"
    )

    def record(self, example: mt.PackedExample) -> dict[str, Any]:
        units = [[u.head, _body(u.body), u.tail] for u in example.units]
        return {
            "id": example.id,
            "shots": units,
            "question": [_body(part) for part in example.question.parts],
            "separator": SEPARATORS[self.name],
        }

    def prompt(self, record: dict[str, Any]) -> mt.Prompt:
        units = [
            mt.Unit(str(number), _part(body), (0,), "own", head=head, tail=tail)
            for number, (head, body, tail) in enumerate(record["shots"])
        ]
        question = [_part(part) for part in record["question"]]
        return mt.advanced.assemble((f"Instruction of {self.name}.\n\n",), units, record["separator"], question)


def vrag(row: str, sizes: Sizes, draws: mt.Draws) -> mt.advanced.ContextDraft:
    """A gold passage at a depth, ranked negatives in a drawn order, one image in the question."""
    texts = {f"p{i}": f"Passage {i}. " + "grasshopper " * draws.integer(f"words {i}", 1, 60) for i in range(120)}
    negatives = (mt.Unit(id, text, (draws.rank("place", id),), "negative", "Document: ") for id, text in texts.items())
    gold = mt.Unit("gold", "The gold passage.", None, "gold", "Document: ")
    question = mt.advanced.Question(row, ("\n\nQuestion: ", mt.Image("q.jpg"), "where does it live?\nAnswer:"))
    frame = ("Instruction of vrag.\n\n",)
    return mt.advanced.ContextDraft(
        (gold,), mt.InOrder(tuple(negatives)), id=row, instruction=frame, questions=(question,), closing=mt.Closing()
    )


def vh(row: str, sizes: Sizes, draws: mt.Draws) -> mt.advanced.ContextDraft:
    """Two needle photographs among others of different sizes, in a drawn order."""
    photos = draws.order("pile", (path for path in sizes if path.startswith("photo")))
    units = [mt.Unit(path, mt.Image(path), (number,), "negative") for number, path in enumerate(photos)]
    needles = tuple(mt.Unit(path, mt.Image(path), None, "needle") for path in ("needle0.jpg", "needle1.jpg"))
    question = mt.advanced.Question(row, ("\n\nQuestion: is there a cat?\nAnswer:",))
    frame = ("Instruction of vh.\n\n",)
    take_order = mt.InOrder(tuple(units))
    return mt.advanced.ContextDraft(
        needles,
        take_order,
        id=row,
        instruction=frame,
        questions=(question,),
        separator="\n",
        closing=mt.Closing(last=2),
    )


def icl(row: str, sizes: Sizes, draws: mt.Draws) -> mt.advanced.ContextDraft:
    """Many test images over one context of rounds; an exemplar's label stands after its picture."""
    classes = tuple(draws.order("classes", (f"class{c:02d}" for c in range(60))))

    def unit(name: str, picture: str, label: int, turn: int) -> mt.Unit:
        return mt.Unit(picture, mt.Image(picture), (), "exemplar", tail=f"\nlabel: {label}", group=name)

    rounds = mt.advanced.Rounds(classes, lambda name: [f"{name}/{i}.jpg" for i in range(12)], unit, draws.order)

    def question(name: str) -> mt.advanced.Question:
        parts = ("\n\nNow classify this image: ", mt.Image(f"test/{name}.jpg"), "\nlabel:")
        return mt.advanced.Question(f"{row}/{name}", parts, group=name)

    questions = tuple(map(question, classes))
    return mt.advanced.ContextDraft((), rounds, id=row, instruction=("Instruction of icl.\n\n",), questions=questions)


def summary(row: str, sizes: Sizes, draws: mt.Draws) -> mt.advanced.ContextDraft:
    """Three documents, each cut evenly from its end; no question but the closing request."""
    documents = [
        [_page(name, index, (number, index)) for index in range(count)]
        for number, (name, count) in enumerate((("alpha", 21), ("beta", 4), ("gamma", 40)))
    ]
    question = mt.advanced.Question(row, ("\n\nNow please summarize the case.\nSummary:",))
    return mt.advanced.ContextDraft(
        (), mt.by_divisor(documents), id=row, instruction=("Instruction of summary.\n\n",), questions=(question,)
    )


def docqa(row: str, sizes: Sizes, draws: mt.Draws) -> mt.advanced.ContextDraft:
    """Two answer pages with a gap between them, then the rest inside out, then padding left and right."""
    required, rest = mt.inside_out([_page("alpha", i, (0, i)) for i in range(21)], (9, 13))
    others = [[_page(name, i, (0, i)) for i in range(count)] for name, count in (("beta", 4), ("gamma", 40))]
    question = mt.advanced.Question(row, ("\n\nQuestion: Based on Document alpha, how many?\nAnswer:",))
    take_order = mt.Chain((rest, lambda: mt.alternate_sides(others)))
    return mt.advanced.ContextDraft(
        required, take_order, id=row, instruction=("Instruction of docqa.\n\n",), questions=(question,)
    )


TOYS = tuple(Toy(write.__name__, write) for write in (vrag, vh, icl, summary, docqa))


def sizes_of(seed: int) -> dict[str, tuple[int, int]]:
    """Sizes of every picture a toy shows, drawn."""
    draws = mt.Draws((seed, "sizes"))
    paths = ["q.jpg", "needle0.jpg", "needle1.jpg", *(f"photo{i}.jpg" for i in range(300))]
    paths += [f"{name}/{i}.jpg" for name in ("alpha", "beta", "gamma") for i in range(40)]
    paths += [f"class{c:02d}/{i}.jpg" for c in range(60) for i in range(12)]
    paths += [f"test/class{c:02d}.jpg" for c in range(60)]
    return {path: (draws.integer(f"{path} w", 1, 700), draws.integer(f"{path} h", 1, 700)) for path in paths}


def _page(name: str, index: int, place: tuple[int, ...]) -> mt.Unit:
    path = f"{name}/{index}.jpg"
    return mt.Unit(path, mt.Image(path), place, "own", f"Document {name} (page {index}): ", group=name)


def _body(part: mt.Part) -> Any:
    return part if isinstance(part, str) else {"image": part.path}


def _part(value: Any) -> mt.Part:
    return value if isinstance(value, str) else mt.Image(value["image"])
