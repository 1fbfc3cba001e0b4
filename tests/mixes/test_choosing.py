"""What a mix takes: shares, lengths and tokens within 1 %, and nothing that an evaluation release has.

Overlaps are planted: the evaluation release is a copy of the release with other pictures, names, questions and texts,
and a plant takes one of them from the release. Each is found alone, and nothing else.
"""

import io
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st
from once import linked, once
from PIL import Image, ImageDraw
from samples import Sources, from_samples, left_out
from tiny import command

import mmlongbench as mm
from mmlongbench.draws import Draws, digest
from mmlongbench.errors import ManifestError, ReleaseError
from mmlongbench.io.files import sha256_of
from mmlongbench.lengths import format_length
from mmlongbench.manifest.mix import MixSpec, parse_mix
from mmlongbench.mixes.choosing import Candidate, Chosen, Offer, choose, pools_of
from mmlongbench.mixes.overlaps import Comparison, Evaluation, Overlap
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import items_in_order
from mmlongbench.release.release import open_release

LENGTHS = (8192, 16384, 32768, 65536)
DATASETS = ("maps", "letters", "photos", "notes")


def candidate(dataset: str, length: int, id: str, tokens: int, placement: float | None = None) -> Candidate:
    return Candidate(dataset, length, id, placement, tokens, digest(dataset, id))


def drawn(seed: int, most: int = 400) -> list[Candidate]:
    """Candidates of four datasets: of different numbers, lengths and sizes; some questions are not at every length."""
    found, draws = list[Candidate](), Draws((seed,))
    for dataset in DATASETS:
        lengths = [each for each in LENGTHS if draws.fraction(f"{dataset} {each}") < 0.8] or [LENGTHS[0]]
        spread = draws.fraction(f"spread {dataset}") / 2
        for number in range(draws.integer(f"questions {dataset}", most // 4, most)):
            shortest = draws.integer(f"{dataset} {number}", -2, len(lengths) - 1)
            for length in lengths[max(0, shortest) :]:
                part = 1 - spread * draws.fraction(f"size {dataset} {number} {length}")
                found.append(candidate(dataset, length, f"q{number}", int(length * 0.98 * part)))
    return found


def offer(candidates: Sequence[Candidate], spec: MixSpec) -> Offer:
    return Offer(tuple(pools_of(candidates, spec)), {name: name for name in DATASETS}, 0)


def shares_of(amounts: dict[str, float]) -> dict[str, float]:
    return {name: amount / sum(amounts.values()) for name, amount in amounts.items()}


def is_met(spec: MixSpec, chosen: Chosen) -> bool:
    """Whether a mix is what is asked, computed again from its examples alone."""
    total = sum(each.tokens for each in chosen.candidates)
    if abs(total / spec.tokens - 1) > 0.01:
        return False
    by_task, by_length = spec.tasks, spec.lengths
    if by_task and not has_shares(by_task, [(each.dataset, each.tokens) for each in chosen.candidates]):
        return False
    return not by_length or has_shares(by_length, [(each.length, each.tokens) for each in chosen.candidates])


def has_shares(asked: tuple[str, Mapping[Any, float]], found: Sequence[tuple[object, int]]) -> bool:
    """Whether examples, each a (task or length, tokens), have the shares that are asked, within 1 % of the whole."""
    amounts: dict[object, float] = dict.fromkeys(asked[1], 0)
    for key, tokens in found:
        amounts[key] += tokens if asked[0] == "tokens" else 1
    whole = sum(amounts.values())
    return all(abs(amounts[key] / whole - share) <= 0.01 for key, share in asked[1].items())


def asked_as(candidates: Sequence[Candidate], tasks: str, lengths: str, part: float) -> MixSpec:
    """A mix that has the shares of some candidates, and a part of their tokens."""
    by_task: dict[str, float] = defaultdict(float)
    by_length: dict[str, float] = defaultdict(float)
    for each in candidates:
        by_task[each.dataset] += each.tokens if tasks == "tokens" else 1
        by_length[format_length(each.length)] += each.tokens if lengths == "tokens" else 1
    tokens = int(part * sum(each.tokens for each in candidates))
    keys = {f"{tasks}_by_task": shares_of(by_task), f"{lengths}_by_length": shares_of(by_length)}
    return parse_mix({"tokens": tokens, **keys}, "test")


MEASURES = st.sampled_from(["tokens", "examples"])


@tries(max_examples=25)
@given(seed=st.integers(0, 10**6), tasks=MEASURES, lengths=MEASURES, part=st.floats(0.3, 1))
def test_a_mix_that_is_there_is_found(seed: int, tasks: str, lengths: str, part: float) -> None:
    """The mix asks for the shares of a drawn choice of questions, each at a drawn length, so it can be met."""
    candidates, draws = drawn(seed), Draws((seed, "planted"))
    of_question: dict[bytes, list[Candidate]] = defaultdict(list)
    for each in candidates:
        of_question[each.question].append(each)
    planted = [draws.choice(key.hex(), found) for key, found in of_question.items()]
    spec = asked_as(planted, tasks, lengths, part)
    chosen = choose(spec, offer(candidates, spec))
    assert is_met(spec, chosen)
    assert len({each.question for each in chosen.candidates}) == len(chosen.candidates)
    assert set(chosen.candidates) <= set(candidates)
    assert sum(chosen.tokens) == sum(each.tokens for each in chosen.candidates)


@tries(max_examples=10)
@given(seed=st.integers(0, 10**6), tokens=st.integers(10**5, 3 * 10**7), share=st.floats(0.05, 0.95))
def test_any_mix_is_met_or_the_error_says_why(seed: int, tokens: int, share: float) -> None:
    candidates = drawn(seed, most=60)
    there = {each.length for each in candidates if each.dataset in DATASETS[:2]}
    lengths = shares_of({format_length(each): 1.0 for each in there})
    shares = {DATASETS[0]: share, DATASETS[1]: 1 - share}
    spec = parse_mix({"tokens": tokens, "tokens_by_task": shares, "tokens_by_length": lengths}, "test")
    two = [each for each in candidates if each.dataset in DATASETS[:2]]
    try:
        chosen = choose(spec, offer(two, spec))
    except ReleaseError as error:
        said = str(error)
    else:
        said = "met" if is_met(spec, chosen) else "not met"
    assert re.search(r"^met$|there is not enough|no choice of whole examples was found|no example can be taken", said)


@tries(max_examples=10)
@given(seed=st.integers(0, 10**6), order=st.integers(0, 10**6))
def test_neither_the_order_of_files_nor_other_questions_left_out_change_the_draws(seed: int, order: int) -> None:
    candidates = drawn(seed, most=80)
    spec = asked_as(candidates, "tokens", "tokens", 0.2)
    spec = spec.model_copy(update={"tokens_by_length": None})
    mixed = Draws((order,)).order("files", candidates, lambda each: f"{each.dataset} {each.length} {each.id}")
    assert choose(spec, offer(candidates, spec)) == choose(spec, offer(mixed, spec))


def test_a_question_is_taken_once_unless_examples_may_be() -> None:
    candidates = [candidate("maps", length, f"q{n}", length - 300, 0.2) for n in range(100) for length in LENGTHS[:2]]
    keys = {"tokens": 2_000_000, "tokens_by_length": {"8K": 1 / 3, "16K": 2 / 3}}
    once, often = parse_mix(keys, "test"), parse_mix({**keys, "once": "example"}, "test")
    with pytest.raises(ReleaseError, match=r"1,1[0-9]{2},[0-9]{3} tokens, and 2,000,000 are asked.*once: example"):
        choose(once, offer(candidates, once))
    chosen = choose(often, offer(candidates, often))
    assert is_met(often, chosen)
    assert max(sum(each.id == f"q{n}" for each in chosen.candidates) for n in range(100)) == 2


def test_a_placement_does_not_depend_on_the_length() -> None:
    at = [0.0, 0.2, 0.4, 0.6]
    every = [candidate("maps", length, f"q{n}", length - 300, d) for n in range(60) for length in LENGTHS for d in at]
    spec = parse_mix({"tokens": "1M"}, "test")
    (pool,) = pools_of(every, spec)
    assert all(len({each.placement for each in item.values()}) == 1 for item in pool.items)
    assert len({each.placement for item in pool.items for each in item.values()}) == len(at)


def test_the_error_names_what_lacks_and_how_much_there_is() -> None:
    few = [candidate("maps", 8192, f"q{n}", 8000) for n in range(10)]
    many = [candidate("photos", length, f"q{n}", length - 192) for n in range(500) for length in LENGTHS[:2]]
    spec = parse_mix({"tokens": 1_000_000, "tokens_by_task": {"maps": 0.5, "photos": 0.5}}, "test")
    with pytest.raises(ReleaseError) as raised:
        choose(spec, offer([*few, *many], spec))
    assert str(raised.value) == (
        "mix: there is not enough: task maps has at most 80,000 tokens in 10 questions, 500,000 are asked; with "
        "these shares there are 160,000 tokens, and 1,000,000 are asked: ask for fewer, change the shares, or build a "
        "release with more, or write 'once: example' to take a question at several lengths"
    )


def test_a_mix_that_whole_examples_cannot_meet_is_refused() -> None:
    large = [candidate("maps", 65536, f"q{n}", 65000) for n in range(50)]
    spec = parse_mix({"tokens": 100_000}, "test")
    with pytest.raises(ReleaseError, match=r"130,000 of 100,000 tokens.* 65.0% of the mix: ask for more tokens"):
        choose(spec, offer(large, spec))


@pytest.mark.parametrize("measure", ["tokens", "examples"])
def test_a_share_that_only_no_example_would_meet_is_refused(measure: str) -> None:
    """A share of less than 1 % is within 1 % of nothing at all."""
    every = [candidate(name, 8192, f"q{n}", 8000) for name in ("maps", "photos") for n in range(60)]
    spec = parse_mix({"tokens": 400_000, f"{measure}_by_task": {"maps": 0.996, "photos": 0.004}}, "test")
    with pytest.raises(ReleaseError, match=r"task photos: 2.00% of the .*, 0.40% are asked; .* such as 2,000,000"):
        choose(spec, offer(every, spec))


@pytest.mark.parametrize("seed", range(12))
def test_a_small_mix_of_examples_of_different_sizes_is_found(seed: int) -> None:
    """The first drawn order is not always the one whose whole examples meet the mix."""
    draws = Draws(("sizes",))
    every = [
        candidate(name, 8192, f"q{n}", draws.integer(f"{name} {n}", 3000, 8000)) for name in DATASETS for n in range(30)
    ]
    shares = {DATASETS[0]: 0.5, DATASETS[1]: 0.25, DATASETS[2]: 0.25}
    spec = parse_mix({"tokens": 200_000, "tokens_by_task": shares, "seed": seed}, "test")
    assert is_met(spec, choose(spec, offer([each for each in every if each.dataset in shares], spec)))


def test_a_small_share_has_an_example() -> None:
    every = [candidate(name, 8192, f"q{n}", 8000) for name in ("maps", "photos") for n in range(100)]
    spec = parse_mix({"tokens": 800_000, "tokens_by_task": {"maps": 0.996, "photos": 0.004}}, "test")
    chosen = choose(spec, offer(every, spec))
    assert is_met(spec, chosen)
    assert [each.dataset for each in chosen.candidates].count("photos") == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "the key 'tokens' is missing"),
        ({"tokens": 0}, "greater than 0"),
        ({"tokens": "8 pages"}, "a whole number of K"),
        (
            {"tokens": "1M", "tokens_by_task": {"a": 0.5, "b": 0.4}},
            "expected shares whose sum is 1, found 0.9",
        ),
        ({"tokens": "1M", "tokens_by_length": {"8K": 1}, "examples_by_length": {"8K": 1}}, "not both"),
        ({"tokens": "1M", "examples_by_length": {"8K": 0.5, 8192: 0.5}}, "the same length occurs twice"),
        ({"tokens": "1M", "token_by_task": {"a": 1}}, "unknown key 'token_by_task'; did you mean 'tokens_by_task'?"),
        ({"tokens": "1M", "once": "never"}, "'question' or 'example'"),
        ({"tokens": "1M", "tokens_by_task": {"a": float("nan")}}, "finite number"),
    ],
)
def test_a_wrong_mix_is_named(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ManifestError) as raised:
        parse_mix(keys, "mix.yaml")
    assert str(raised.value).startswith("mix.yaml: mix: ")
    assert said in str(raised.value)


PAGES, TEXTS = "mmlb_data/documentQA/mmlongdoc_K8.jsonl", "mmlb_data/documentQA/text_mmlongdoc_K8.jsonl"
LONG = "In the annual report of the harbours board, how many of the two hundred crews were sent to sea in winter?"
Record = dict[str, Any]
Plant = Callable[[Record, Record], object]


@pytest.fixture(scope="session")
def built(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions about documents, with pages as images and as texts, at 8K. The first one is long."""

    def make(folder: Path) -> None:
        common = {"builder": "docvqa", "reader": "mmlongbench_doc", "lengths": ["8K"], "licence": "CC0-1.0"}
        common["exclude"] = left_out()
        texts = {"pages_as": "text", "text_fill": "budget", "max_answer_words": 5}
        datasets = [
            {"name": "mmlongdoc", **common, "options": {"max_answer_words": 5}},
            {"name": "text_mmlongdoc", **common, "drawn_as": "mmlongdoc", "options": texts},
        ]
        manifest, out = from_samples({"datasets": datasets}, sample), folder / "release"
        (folder / "m.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), "utf-8")
        assert command("build", folder / "m.yaml", "--out", out, "--limit", 6, "-q").code == 0
        first = records(out, PAGES)[0]["id"]
        changed(out, PAGES, lambda record: record["id"] == first and record.update(question=LONG))

    return once(tmp_path_factory, "overlapping", make) / "release"


def records(release: Path, file: str) -> list[Record]:
    return [json.loads(line) for line in (release / file).read_text("utf-8").splitlines()]


def changed(release: Path, file: str, change: Callable[[Record], object]) -> None:
    """Change the records of a file."""
    found = records(release, file)
    for record in found:
        change(record)
    (release / file).write_text("".join(f"{json.dumps(each)}\n" for each in found), "utf-8")


@pytest.fixture(scope="session")
def stranger(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the same form that shares nothing with the built one."""
    return (
        once(tmp_path_factory, "strangers", lambda folder: draw_stranger(built, folder / "evaluation")) / "evaluation"
    )


def draw_stranger(built: Path, out: Path) -> None:
    shutil.copytree(built, out)
    shutil.rmtree(out / "mmlb_image")
    lock = json.loads((out / "build.lock.json").read_text("utf-8"))
    for name in [name for name in lock["files"] if name.startswith("mmlb_image/")]:
        del lock["files"][name]
        picture = out / renamed(name)
        picture.parent.mkdir(parents=True, exist_ok=True)
        drawn_page(name).save(picture, "JPEG")
        lock["files"][renamed(name)] = entry_of(picture)
    (out / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    changed(out, PAGES, estranged)
    changed(out, TEXTS, estranged)


def drawn_page(name: str) -> Image.Image:
    """A page of drawn boxes, unlike any other."""
    page, draws = Image.new("RGB", (300, 400), "white"), Draws((name,))
    drawing = ImageDraw.Draw(page)
    for box in range(25):
        x, y = draws.integer(f"x {box}", 0, 260), draws.integer(f"y {box}", 0, 360)
        colour = tuple(draws.integer(f"{part} {box}", 0, 255) for part in "rgb")
        drawing.rectangle((x, y, x + draws.integer(f"w {box}", 10, 120), y + 30), fill=colour)
    return page


def entry_of(path: Path) -> Mapping[str, object]:
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def renamed(path: str) -> str:
    """The path of a page of a document with another name: `other-a/other-a_page1.jpg` for `a/a_page1.jpg`."""
    folder, name, page = path.rsplit("/", 2)
    return f"{folder}/other-{name}/other-{page}"


def estranged(record: Record) -> None:
    number = record["id"].rpartition("_")[2]
    record["doc_name"] = f"other-{record['doc_name']}"
    record["question"], record["answer"] = f"Which of the lamps is number {number}?", f"lamp {number}"
    record["page_list"] = [renamed(path) for path in record["page_list"]]
    texts = record.get("page_text_list") or []
    record |= {"page_text_list": [" ".join(f"w{ord(letter)}" for letter in text) for text in texts]} if texts else {}


class Found(NamedTuple):
    """What a release shares with an evaluation release."""

    overlaps: list[Overlap]
    kinds: set[str]
    ids: set[tuple[str, str]]


def compared(release: Path, evaluation: Path) -> Found:
    opened = open_release(release)
    comparison = Comparison(opened, [Evaluation(open_release(evaluation))])
    found = [
        overlap
        for dataset in opened.datasets
        for example in opened.examples(dataset, "8K")
        for overlap in comparison.overlaps(example, placement_of(example.record))
    ]
    return Found(found, {each.kind for each in found}, {(each.dataset, each.id) for each in found})


@pytest.fixture
def evaluation(stranger: Path, tmp_path: Path) -> Path:
    """A copy of the stranger, to plant in."""
    return linked(stranger, tmp_path / "evaluation")


def plant(built: Path, evaluation: Path, file: str, change: Plant) -> Record:
    """Change the first record of the evaluation release by that of the release, which is returned."""
    first = records(built, file)[0]
    changed(evaluation, file, lambda record: record["id"] == first["id"] and change(record, first))
    return first


def test_releases_that_share_nothing_are_disjoint(built: Path, stranger: Path) -> None:
    assert compared(built, stranger).overlaps == []


def test_every_example_of_the_same_release_is_shared(built: Path) -> None:
    found = compared(built, built)
    assert found.kinds == {"document", "question", "passage"}
    assert len(found.ids) == len(records(built, PAGES)) + len(records(built, TEXTS))


@pytest.mark.parametrize("name", [str, str.upper, lambda name: f"{name}.pdf", lambda name: name.replace("-", "_")])
def test_a_document_of_the_same_name_is_found(name: Callable[[str], str], built: Path, evaluation: Path) -> None:
    first = plant(built, evaluation, PAGES, lambda record, own: record.update(doc_name=name(own["doc_name"])))
    found = compared(built, evaluation)
    assert found.kinds == {"document"}
    about = {each["id"] for each in records(built, PAGES) if each["doc_name"] == first["doc_name"]}
    assert {id for dataset, id in found.ids if dataset == "mmlongdoc"} == about
    assert "has the name of" in found.overlaps[0].what


def filling(release: Path) -> tuple[str, str]:
    """A document that only fills the context of a question with pages as texts, and the id of the question."""
    about = {each["id"]: each["doc_name"] for each in records(release, TEXTS)}
    items = items_in_order(release, TEXTS.removeprefix("mmlb_data/"), 8192)
    shown = [(each["unit"].split("/")[-2], id) for id, _, found in items for each in found]
    return next((name, id) for name, id in shown if name not in about[id])


def test_a_document_that_only_fills_a_context_is_found_by_its_name(built: Path, evaluation: Path) -> None:
    """The evaluation shows it as images, and the mix as texts, so neither a picture nor a passage is shared."""
    name, id = filling(built)
    plant(built, evaluation, PAGES, lambda record, own: record.update(doc_name=name))
    found = compared(built, evaluation)
    assert found.kinds == {"document"}
    assert ("text_mmlongdoc", id) in found.ids


def test_a_document_that_only_fills_a_context_of_the_evaluation_is_found(built: Path, evaluation: Path) -> None:
    name, id = filling(built)
    about = {each["id"]: each["doc_name"] for each in records(built, TEXTS)}
    changed(evaluation, TEXTS, lambda record: record["id"] == id and record.update(doc_name=about[id]))
    assert f"has the name of {name!r}" in Evaluation(open_release(evaluation)).document(f"{name}.pdf")


def put_page(built: Path, evaluation: Path, encode: Callable[[Image.Image], bytes], place: int = 0) -> str:
    """Put a page of the first question into the evaluation release, in the place of a picture; return its path."""
    own, other = records(built, PAGES)[0]["page_list"][0], records(evaluation, PAGES)[0]["page_list"][place]
    with Image.open(built / "mmlb_image" / own) as page:
        (evaluation / "mmlb_image" / other).unlink()
        (evaluation / "mmlb_image" / other).write_bytes(encode(page))
    lock = json.loads((evaluation / "build.lock.json").read_text("utf-8"))
    lock["files"][f"mmlb_image/{other}"] = entry_of(evaluation / "mmlb_image" / other)
    (evaluation / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    return str(own)


def saved(page: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    page.save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "encode",
    [
        lambda page: saved(page, "PNG"),
        lambda page: saved(page, "JPEG", quality=60),
        lambda page: saved(page.resize((page.width // 2, page.height // 2)), "JPEG", quality=85),
    ],
    ids=["same pixels", "encoded again", "half the size"],
)
def test_a_page_of_the_same_document_under_another_name_is_found(
    encode: Callable[[Image.Image], bytes], built: Path, evaluation: Path
) -> None:
    own = put_page(built, evaluation, encode)
    found = compared(built, evaluation)
    assert found.kinds == {"document"}
    assert found.ids == {("mmlongdoc", each["id"]) for each in records(built, PAGES) if own in each["page_list"]}
    assert f"{own} is like mmlongbench-doc/other-" in found.overlaps[0].what


def test_a_picture_that_no_prompt_shows_is_found_too(built: Path, evaluation: Path) -> None:
    """A page that only the lock names, such as a page of the evidence that did not fit."""
    own = records(built, PAGES)[0]["page_list"][0]
    hidden = evaluation / "mmlb_image/hidden.jpg"
    shutil.copy(built / "mmlb_image" / own, hidden)
    lock = json.loads((evaluation / "build.lock.json").read_text("utf-8"))
    lock["files"]["mmlb_image/hidden.jpg"] = entry_of(hidden)
    (evaluation / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    found = compared(built, evaluation)
    assert found.kinds == {"picture"}
    assert found.overlaps[0].what == f"{own} is like hidden.jpg"


def test_an_empty_page_is_not_compared(built: Path, evaluation: Path) -> None:
    put_page(built, evaluation, lambda page: saved(Image.new("RGB", page.size, "white"), "PNG"))
    evaluated = Evaluation(open_release(evaluation))
    assert evaluated.compared.blank_pictures == 1
    assert compared(built, evaluation).overlaps == []


@pytest.mark.parametrize(
    "worded",
    [
        LONG,
        LONG.upper().replace("?", " !"),
        LONG.replace(",", ";").replace(" of the two", " – of the two"),
        f"As we asked last year: {LONG.replace('in winter', 'in the dark season, by the count of its clerk')}",
    ],
    ids=["same words", "case", "punctuation", "13 words in a row"],
)
def test_a_question_in_nearly_the_same_words_is_found(worded: str, built: Path, evaluation: Path) -> None:
    first = plant(built, evaluation, PAGES, lambda record, own: record.update(question=worded, answer=own["answer"]))
    found = compared(built, evaluation)
    assert (found.kinds, found.ids) == ({"question"}, {("mmlongdoc", first["id"])})


def test_the_same_words_about_another_thing_with_another_answer_are_no_overlap(built: Path, evaluation: Path) -> None:
    plant(built, evaluation, PAGES, lambda record, own: record.update(question=own["question"]))
    assert compared(built, evaluation).overlaps == []


def test_a_passage_is_found_in_any_case_and_layout(built: Path, evaluation: Path) -> None:
    def put(record: Record, own: Record) -> None:
        record["page_text_list"][1] = own["page_text_list"][0].upper().replace("\n", "  ")

    first = plant(built, evaluation, TEXTS, put)
    found = compared(built, evaluation)
    assert found.kinds == {"passage"}
    text = first["page_text_list"][0]
    with_it = {each["id"] for each in records(built, TEXTS) if text in each["page_text_list"]}
    assert found.ids == {("text_mmlongdoc", id) for id in with_it}


# The commands


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    path = tmp_path / "mix.yaml"
    path.write_text("mix: {tokens: 38600, examples_by_task: {documentQA: 1}, disjoint_from: [evaluation]}", "utf-8")
    return path


def test_an_overlap_stops_the_export_and_is_named(built: Path, evaluation: Path, mix: Path, tmp_path: Path) -> None:
    for file in (PAGES, TEXTS):
        changed(evaluation, file, lambda record: record.update(doc_name=records(built, PAGES)[0]["doc_name"]))
    done = command("export", built, "--to", "training", "--mix", mix, "--out", tmp_path / "out")
    assert done.code == 2
    assert "share something with an evaluation release (document " in done.err
    assert "has the name of" in done.err
    assert "--drop-overlap leaves such examples out" in done.err
    assert not (tmp_path / "out").exists()


def test_overlaps_are_left_out_and_listed_on_request(built: Path, evaluation: Path, mix: Path, tmp_path: Path) -> None:
    own = put_page(built, evaluation, lambda page: saved(page, "JPEG", quality=60))
    mixed = mm.export_mix(built, mix, "training", tmp_path / "out", drop_overlap=True)
    lines = (tmp_path / "out/overlaps.jsonl").read_text("utf-8").splitlines()
    listed = [Overlap.model_validate_json(line) for line in lines]
    assert {each.id for each in listed} == {each["id"] for each in records(built, PAGES) if own in each["page_list"]}
    proof = mixed.receipt.disjoint
    assert proof is not None
    assert (proof.examples_left_out, proof.left_out_by_kind) == (len(listed), {"document": len(listed)})
    taken = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_text("utf-8").splitlines()]
    assert not {("mmlongdoc", each.id) for each in listed} & {(each["dataset"], each["id"]) for each in taken}


def test_a_proof_says_what_was_compared(built: Path, evaluation: Path, mix: Path, tmp_path: Path) -> None:
    proof = mm.export_mix(built, mix, "training", tmp_path / "out").receipt.disjoint
    assert proof is not None
    (other,) = proof.evaluations
    assert (other.release, other.lock) == ("evaluation", open_release(evaluation).lock_id)
    pictures = len([*(evaluation / "mmlb_image").rglob("*.jpg")])
    assert (other.shows.questions, other.shows.pictures) == (12, pictures)
    assert proof.shows.questions == 5
    assert proof.examples_left_out == 0
    assert not (tmp_path / "out/overlaps.jsonl").exists()
