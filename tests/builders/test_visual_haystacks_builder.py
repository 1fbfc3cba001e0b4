"""Visual Haystacks as it is packed: templates, fields, depths, and never a distractor with the anchor object."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from builders.samples.visual_haystacks import draw_several, draw_single
from builders.visual_haystacks import Photographs, VisualHaystack, VisualHaystacks
from builders.visual_haystacks.rows import PhotographQuestion
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.pictures import Pictures
from mmlongbench.lengths import K, TokenBudget
from mmlongbench.packing.pack import examples
from mmlongbench.packing.pricing import Pricer
from mmlongbench.task import Draws, Images, PackedExample, Rejected, Sources
from tokenization import CrossModalCounter, PatchRule, load_tokenizer

pytestmark = pytest.mark.slow

OPENING = (
    "You are given a set of images. Please answer the question in Yes or No based on the given images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule())
RESERVE = 128
DRAWS = Draws((42, "vh"))
Reader = VisualHaystacks | Photographs


@dataclass(frozen=True)
class Haystack:
    """A sample, opened."""

    sources: Sources
    rows: tuple[PhotographQuestion, ...]
    shown: Mapping[str, set[str]]
    """Objects by released path, read from the annotations without the reader."""


def builder(**options: str) -> VisualHaystack:
    return VisualHaystack("vh", VisualHaystack.options_type.model_validate(options))


def opened(reader: Reader, sources: Mapping[str, Path]) -> Sources:
    pictures = Pictures(reader.image_folder, partial(reader.image, sources), 10**8)
    return Sources(images=Images(pictures, reader.shows(sources)))


def made(task: VisualHaystack, row: PhotographQuestion, sources: Sources, length: int = 8 * K) -> list[PackedExample]:
    draws = DRAWS.at(row.id)
    placements = task.spec.placements
    assert placements is not None
    pricer = Pricer(COUNTER, sources.sizes)
    return examples(task.draft(row, sources, draws), TokenBudget(length, RESERVE), placements.all(), pricer, draws)


def taken(task: VisualHaystack, row: PhotographQuestion, sources: Sources) -> list[tuple[str, str]]:
    """(id, why it is excluded) of each unit of the take order, in the order of being taken."""
    return [(unit.id, unit.excluded) for unit in task.draft(row, sources, DRAWS.at(row.id)).take_order.units(0)]


def annotated(path: Path) -> dict[str, set[str]]:
    data = json.loads(path.read_bytes())
    names = {category["id"]: category["name"] for category in data["categories"]}
    files = {image["id"]: f"vh/train2017/{image['file_name']}" for image in data["images"]}
    shown: dict[str, set[str]] = {file: set() for file in files.values()}
    for instance in data["annotations"]:
        shown[files[instance["image_id"]]].add(names[instance["category_id"]])
    return shown


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Haystack]:
    found = {}
    readers: dict[str, Reader] = {"single": VisualHaystacks(), "several": Photographs()}
    for (kind, reader), draw in zip(readers.items(), (draw_single, draw_several), strict=True):
        sources = draw(tmp_path_factory.mktemp(kind))
        rows = tuple(row for row in read_rows(reader, sources) if isinstance(row, PhotographQuestion))
        found[kind] = Haystack(opened(reader, sources), rows, annotated(sources["annotations"]))
    return found


@pytest.fixture
def tiny(tmp_path: Path) -> Sources:
    """Eight pictures of 112 × 112 pixels, 16 tokens each; of the pool, d shows a kite, and f is broken."""
    for name in "abcdefgh":
        Image.new("RGB", (112, 112), (ord(name), 90, 90)).save(tmp_path / f"{name}.png")
    (tmp_path / "f.png").write_bytes(b"no picture")
    (tmp_path / "q.jsonl").write_text("")
    reader = Photographs()
    shown = {f"{name}.png": frozenset({"kite"} if name == "d" else ()) for name in "cdefgh"}
    sources = {"questions": tmp_path / "q.jsonl", "images": tmp_path}
    return Sources(images=Images(Pictures(reader.image_folder, partial(reader.image, sources), 10**8), shown))


def asked(needles: Sequence[str] = ("a.png",), negatives: Sequence[str] = (), anchor: str = "kite") -> Any:
    question = "For the image with a kite, is there a dog?"
    given = {"needles": tuple(needles), "negatives": tuple(negatives), "anchor": anchor}
    return PhotographQuestion(id="vh_single-0", question=question, answer="No", **given)  # type: ignore[arg-type]


def every(samples: Mapping[str, Haystack]) -> Iterator[tuple[Haystack, PhotographQuestion, PackedExample]]:
    for kind, haystack in samples.items():
        for row in haystack.rows:
            for example in made(builder(needles=kind), row, haystack.sources):
                yield haystack, row, example


def test_the_small_example_is_this_to_the_character(tiny: Sources) -> None:
    task = builder(finish="none")
    example = made(task, asked(negatives=["b.png", "missing.png"]), tiny, 1 * K)[2]
    shown = ["vh/b.png", "vh/c.png", "vh/a.png", "vh/g.png", "vh/e.png", "vh/h.png"]
    record = task.record(example)
    assert record == {
        "id": "vh_single-0",
        "question": "For the image with a kite, is there a dog?",
        "answer": "No",
        "ctxs": shown,
        "needles": ["vh/a.png"],
    }
    images = "\n".join("<image>" for _ in shown)
    ask = "\n\nQuestion: For the image with a kite, is there a dog?\nAnswer:"
    assert example.prompt.rendered() == OPENING + images + ask
    assert example.prompt.images == tuple(shown)
    assert example.count == COUNTER.count(example.prompt.text, [(112, 112)] * 6)
    assert example.ran_dry
    assert dict(example.left_out) == {"broken-image": 1, "missing-image": 1}


def test_a_released_line_gives_the_prompt_again(samples: dict[str, Haystack]) -> None:
    for haystack, row, example in every(samples):
        record = json.loads(json.dumps(builder().record(example)))
        assert builder().prompt({**record, "depth": 0.2, "unknown": None}) == example.prompt
        assert (record["id"], record["answer"], record["question"]) == (row.id, row.answer, row.question)
        assert record["needles"] == [haystack.sources.images[name].path for name in row.needles]


def test_no_distractor_shows_the_anchor_object_and_none_stands_twice(samples: dict[str, Haystack]) -> None:
    for haystack, row, example in every(samples):
        record = builder().record(example)
        assert len(set(record["ctxs"])) == len(record["ctxs"])
        with_anchor = [path for path in record["ctxs"] if row.anchor in haystack.shown[path]]
        assert sorted(with_anchor) == sorted(record["needles"])
        assert not example.ran_dry


def test_one_needle_stands_at_six_depths_and_several_in_three_permutations(samples: dict[str, Haystack]) -> None:
    for kind, expected in (("single", 6), ("several", 3)):
        haystack = samples[kind]
        found = made(builder(needles=kind), haystack.rows[0], haystack.sources)
        assert len(found) == expected
        assert len({frozenset(example.prompt.images) for example in found}) == 1
        assert len({example.prompt for example in found}) == expected
        for example in found:
            others = [unit.id for unit in example.units if unit.role == "negative"]
            assert others == [unit.id for unit in found[0].units if unit.role == "negative"]


def test_closing_photographs_fill_the_budget_and_the_plain_way_stops_at_the_first_misfit(
    samples: dict[str, Haystack],
) -> None:
    haystack = samples["single"]
    fills = []
    for row in haystack.rows:
        closed, plain = (
            made(builder(finish=finish), row, haystack.sources, 16 * K)[0] for finish in ("closing", "none")
        )
        fills.append((closed.count.total + RESERVE) / (16 * K))
        assert closed.count.total >= plain.count.total
        order = [id for id, _ in taken(builder(), row, haystack.sources)]
        assert [unit.id for unit in plain.units[1:]] == order[: len(plain.units) - 1]
        assert [unit.id for unit in closed.units[1:-3]] == order[: len(closed.units) - 4]
    assert min(fills) >= 0.99
    assert sum(fills) / len(fills) >= 0.997


def test_a_longer_context_begins_with_a_shorter_one_but_for_the_closing(samples: dict[str, Haystack]) -> None:
    haystack = samples["several"]
    for row in haystack.rows[:4]:
        contexts = [made(builder(needles="several"), row, haystack.sources, length * K)[0] for length in (8, 16, 32)]
        order = [[unit.id for unit in example.units if unit.role == "negative"] for example in contexts]
        for shorter, longer in pairwise(order):
            assert shorter[:-2] == longer[: len(shorter) - 2]
        assert not contexts[-1].ran_dry


def test_an_oracle_context_has_the_needles_alone(samples: dict[str, Haystack]) -> None:
    for kind, haystack in samples.items():
        for row in haystack.rows[:3]:
            for example in made(builder(needles=kind, context="oracle"), row, haystack.sources):
                assert {unit.role for unit in example.units} == {"needle"}
                assert len(example.units) == len(row.needles)


def test_own_negatives_are_taken_before_the_pool_each_once_in_a_drawn_order(tiny: Sources) -> None:
    order = [id for id, _ in taken(builder(), asked(negatives=["b.png", "c.png", "b.png"]), tiny)]
    assert set(order[:2]) == {"b.png", "c.png"}
    assert sorted(order[2:]) == ["e.png", "f.png", "g.png", "h.png"]


def test_without_an_anchor_nothing_comes_from_the_pool(tiny: Sources) -> None:
    assert taken(builder(), asked(negatives=["b.png"], anchor=""), tiny) == [("b.png", "")]


def test_a_needle_is_never_a_distractor_of_its_own_question(tiny: Sources) -> None:
    found = taken(builder(needles="several"), asked(needles=["c.png", "e.png"]), tiny)
    assert sorted(id for id, _ in found) == ["f.png", "g.png", "h.png"]


def test_distractors_that_cannot_be_opened_are_excluded_with_the_reason(tiny: Sources) -> None:
    found = taken(builder(), asked(negatives=["none.png", "../q.jsonl"]), tiny)
    excluded = {id: reason for id, reason in found if reason}
    assert excluded == {"none.png": "missing-image", "../q.jsonl": "missing-image", "f.png": "broken-image"}


def test_the_order_differs_between_questions_and_seeds_and_is_the_same_twice(samples: dict[str, Haystack]) -> None:
    sources, row = samples["single"].sources, samples["single"].rows[0]
    orders = [
        [unit.id for unit in islice(builder().draft(row, sources, draws).take_order.units(0), 9, 60)]
        for draws in (DRAWS.at("a"), DRAWS.at("a"), DRAWS.at("b"), Draws((43, "vh", "a")))
    ]
    assert orders[0] == orders[1]
    assert len(set(map(tuple, orders))) == 3


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (asked(needles=["a.png", "a.png"]), "needle-twice"),
        (asked(negatives=["b.png", "a.png"]), "needle-among-negatives"),
        (asked(needles=["a.png", "b.png"]), "several-needles"),
        (asked(needles=["none.png"]), "missing-image"),
        (asked(needles=["f.png"]), "broken-image"),
    ],
)
def test_a_question_whose_needles_cannot_be_used_is_rejected(
    tiny: Sources, row: PhotographQuestion, reason: str
) -> None:
    with pytest.raises(Rejected) as caught:
        builder().draft(row, tiny, DRAWS)
    assert caught.value.fault.reason == reason


def test_files_are_named_by_questions_length_and_placements() -> None:
    for kind, placements in (("single", 6), ("several", 3)):
        spec = builder(needles=kind).spec
        assert spec.metric == "binary_acc"
        assert spec.placements is not None
        name = spec.files.write("vh_x", 8 * K, 1000, len(spec.placements.all()))
        assert name == f"NIAH/vh_x_test_1000_K8_dep{placements}.jsonl"
