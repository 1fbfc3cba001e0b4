"""Rules about answers: where they stand, and what the metric gives for them and for others."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from mmlongbench.answers import is_not_answerable
from mmlongbench.building.example_checks import JUDGED
from mmlongbench.checking.findings import Failure, Outcome, Skipped
from mmlongbench.checking.world import World
from mmlongbench.corpus.retrieval.text import contains
from mmlongbench.draft import NEEDLES
from mmlongbench.errors import ScoringError
from mmlongbench.lengths import K
from mmlongbench.likeness import words
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import ENGINE
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Image, Part
from mmlongbench.release.positions import answering
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.metric import Evidence, Metric, ScoringInput, Settings
from mmlongbench.task.rows import Record

_PLAIN_WORDS = frozenset({"yes", "no", "true", "false"})
"""Answers that are words of any text, so that a negative may have them."""
_NO_CHANCE = 3
"""An answer with fewer characters may stand in any text by chance."""
_SENTENCE = 5
"""An answer of at least this many words stands nowhere by chance."""
_RARE = 0.01
"""The probability below which chance does not explain how many answers stand at a place."""
_FULL = 1 - 1e-9
_SHORT = 60
"""The most characters of a field that is tried as an answer."""
_READ, _MOST_READ = 200, 4
"""How many characters of a text, and how many gold units, are shown for people to read."""


# ---- Where answers stand


def _answered(world: World) -> Iterator[tuple[PackedExample, tuple[str, ...], bool]]:
    """Yield the examples of the longest contexts, which hold the shorter ones and are the same at all placements; each
    with its answers, as far as they are texts, and with whether the question offers no answers.
    """
    for _, examples in world.packed(world.longest):
        for example in examples if world.is_shared else examples[:1]:
            record = world.record(example)
            with calling("builder", world.dataset.spec.builder, "choices()", world.row(example)):
                choices = world.dataset.builder.choices(record)
            gold = world.answer_of(example)
            # Numbers of options or labels, and plain words like yes, are left out.
            texts = [text for text in (gold if isinstance(gold, list) else [gold]) if isinstance(text, str)]
            known = [text for text in texts if text.strip() and text.strip().lower().rstrip(".") not in _PLAIN_WORDS]
            yield example, tuple(known), choices is None


def no_negative_holds_an_answer(world: World) -> Iterator[Outcome]:
    for example, answers, _ in _answered(world):
        negatives = [unit for unit in example.units if unit.role == "negative" and unit.text.strip()]
        held = ((unit, answer) for answer in answers for unit in negatives if contains(unit.text, answer))
        if found := next(held, None):
            message = f"the text of the negative {found[0].id!r} holds the answer {found[1][:60]!r}"
            todo = "leave such a unit out, or give it the role own"
            yield Failure(f"{message}; {todo}", "draft()", example.id, world.longest)


def _question(example: PackedExample) -> str:
    return " ".join(part for part in example.question.parts if isinstance(part, str))


def _padding(example: PackedExample) -> str:
    return "\n".join(unit.text for unit in example.units if unit.role == "padding" and unit.text.strip())


def _heads(example: PackedExample) -> str:
    golds = [unit.role in NEEDLES for unit in example.units]
    is_alone = not any(unit.head.strip() for unit, gold in zip(example.units, golds, strict=True) if not gold)
    return "\n".join(unit.head for unit, gold in zip(example.units, golds, strict=True) if gold and is_alone)


_PLACES: Mapping[str, tuple[Callable[[PackedExample], str], str, str]] = {
    "the question itself": (_question, "draft()", "leave it out, or return what the question offers from choices()"),
    "a padding unit": (_padding, "draft()", "leave such units out, or give them the role own"),
    "the heading of a gold unit alone": (_heads, "draft()", "give all units a head, or none"),
    "the id of its row": (lambda example: example.id, "row()", "ids are public; give rows other ids"),
}
"""Where no answer should stand: the text there, the method that gives it, and what to do."""


def nothing_gives_the_answer_away(world: World) -> Iterator[Outcome]:
    """Yield places where free answers stand, although they should not, more often than chance explains; and notes on
    other such answers. Chance is how often the answers of the other questions stand there.
    """
    asked = [(example, answers) for example, answers, is_free in _answered(world) if is_free and answers]
    places = dict(_PLACES)
    for variant in world.dataset.builder.variants:

        def rendered(example: PackedExample, variant: str = variant) -> str:
            return world.variants(example)[variant].text

        places[f"what the variant {variant!r} adds"] = (rendered, f"render_variant({variant!r})", "leave it out")
    for place, (read, method, todo) in places.items():
        hits, strange, tried = list[tuple[str, str]](), 0, 0  # the row, the answer
        for example, answers in asked:
            text, base = read(example), "" if place in _PLACES else example.prompt.text
            own = [answer for answer in answers if len(answer.strip()) >= _NO_CHANCE]
            if not text.strip() or not own:
                continue
            hits += [(example.id, answer) for answer in own if _stands(answer, text, base)][:1]
            for others in (others for _, others in asked if not set(others) & set(answers)):
                tried += 1
                strange += any(_stands(answer, text, base) for answer in others if len(answer) >= _NO_CHANCE)
        if not hits:
            continue
        first = next((hit for hit in hits if len(hit[1].split()) >= _SENTENCE), None)
        if first or _reached(len(hits), len(asked), (strange + 1) / (tried + 2)) < _RARE:
            row, answer = first or hits[0]
            message = (
                f"the answer {answer[:60]!r} stands in {place}, as do those of {len(hits)} of {len(asked)} questions"
            )
            yield Failure(f"{message}; {todo}", method, row, world.longest)
        else:
            yield f"the answer of {len(hits)} of {len(asked)} questions stands in {place}"


def _stands(answer: str, text: str, base: str) -> bool:
    """Return whether a text contains an answer, and more often than the text that it was made from."""
    word = words(answer)
    return contains(text, answer) and (not base or words(text).count(word) > words(base).count(word))


def _reached(hits: int, of: int, chance: float) -> float:
    return sum(math.comb(of, n) * chance**n * (1 - chance) ** (of - n) for n in range(hits, of + 1))


_TODO = "; name pages of the context, from 0"


def _unshown(evidence: Evidence, example: PackedExample, answers: Sequence[str]) -> str:
    """Return which page of the evidence a context does not show, or which pages are gold in the draft alone."""
    named = sorted(set(evidence.pages) & set(evidence.shown))
    if evidence.pages and not named:
        message = f"page {evidence.pages[0]} of {evidence.document!r} holds the answer, and is not among those shown"
        return f"{message}{_TODO}"
    for page in evidence.shown:
        image, text = evidence.images.get(page), evidence.texts.get(page, "")
        if not image and not text:
            message = f"page {page} of {evidence.document!r} is said to be shown, and `images` has no path of it"
            return f"{message}; evidence() gives the path of each page, by its number (or its text in `texts`)"
        if image not in example.prompt.images and not (text and text in example.prompt.text):
            return f"the prompt does not show page {page} of {evidence.document!r}, which is said to be shown{_TODO}"
    golds = {path for unit in example.units if unit.role in NEEDLES for path in unit.images}
    paths = {evidence.images[page] for page in named if page in evidence.images}  # blank pages may be one image
    drafted = sorted(page for page, path in evidence.images.items() if path in golds)
    is_answerable = named or not any(map(is_not_answerable, answers))  # otherwise gold is what comes near
    if is_answerable and drafted and {evidence.images[page] for page in drafted} != paths:
        message = f"the shown pages of {evidence.document!r} that hold the answer are {named} in evidence(), from 0"
        return f"{message}, and the gold units of the draft are the pages {drafted}; one of the two is wrong"
    return ""


def evidence_is_shown(world: World) -> Iterator[Outcome]:
    """Yield every example whose evidence names pages that its context does not show, or whose needles do not have the
    answer that stands in a gold unit; and every example that neither names evidence nor shows the unit of its own row.
    """
    builder, name = world.dataset.builder, world.dataset.spec.builder
    is_named = has_evidence = False
    for example, answers, _ in _answered(world):
        record, gold = world.record(example), example.units
        with calling("builder", name, "evidence() or needles()", world.row(example)):
            evidence, needles = builder.evidence(record), builder.needles(record)
            message = _unshown(evidence, example, answers) if evidence is not None else ""
        if message:
            yield Failure(message, "evidence()", example.id, world.longest)
        parts = (part for needle in needles or () for part in (needle if isinstance(needle, tuple) else (needle,)))
        given = " ".join(part for part in parts if isinstance(part, str))
        text = " ".join(unit.text for unit in gold if unit.role in NEEDLES)
        for answer in answers if given else ():
            if contains(text, answer) and not contains(given, answer):
                message = (
                    f"the answer {answer[:60]!r} stands in a needle, and not in what it returns; return whole texts"
                )
                yield Failure(message, "needles()", example.id, world.longest)
        is_named |= evidence is not None or bool(needles)
        has_evidence |= evidence is not None or bool(given)
    for length, example in () if is_named or builder.spec.is_answer_of_context else world.every_example():
        row = world.row(example)
        is_shown = any(unit.id == row.id for unit in example.units)
        is_lacking = world.is_shared and not is_shown
        if is_lacking and any(unit.id == row.id for unit in world.units(world.draft(row), length, row)):
            message = (
                f"the unit {row.id!r} of the row that is asked about is in the take order, and this context lacks it"
            )
            yield Failure(f"{message}; require the units of the rows that are asked about", "draft()", row.id, length)
        has_evidence |= is_shown
    if not has_evidence:
        raise Skipped("records name neither evidence nor needles that are texts")


def answers_stand_in_the_context(world: World) -> Iterator[Outcome]:
    """Yield a note on the questions about texts alone whose answer stands in none of them, though their metric looks
    for its words.
    """
    metric, builder = world.dataset.plan.bound.task.metric, world.dataset.builder
    asked = nowhere = 0
    for example, answers, is_free in () if builder.spec.is_answer_of_context else _answered(world):
        is_worded = metric == "sub_em" or (
            metric == "doc_qa" and builder.answer_format(world.record(example)) == "String"
        )
        if not is_free or not answers or example.prompt.images or not is_worded:
            continue
        asked += 1
        context = "\n".join(unit.text for unit in example.units)
        nowhere += not any(contains(context, answer) for answer in answers)
    if not asked:
        raise Skipped("no answer is usually a part of a text")
    if nowhere:
        yield f"the answer of {nowhere} of {asked} questions stands nowhere in the context"


def options_are_shown(world: World) -> Iterator[Outcome]:
    """Yield every example that offers an option twice, or one that neither its question nor its instruction shows. Yes
    and no need not be shown; labels stand in exemplars.
    """
    has_options = False
    for example, _, is_free in _answered(world):
        with calling("builder", world.dataset.spec.builder, "choices()", world.row(example)):
            choices = None if is_free else world.dataset.builder.choices(world.record(example))
        if choices is None or _PLAIN_WORDS.issuperset(map(_compared, choices.offered)):
            continue
        has_options, parts = True, (*world.draft(world.row(example)).instruction, *example.question.parts)
        shows_pictures = any(isinstance(option, Image) for option in choices.offered)
        if shows_pictures or any(unit.role == "exemplar" for unit in example.units):
            parts = example.prompt.parts
        text = " ".join(_compared(part) for part in parts)
        options = [option.path if isinstance(option, Image) else " ".join(option.split()) for option in choices.offered]
        twice = next((option for option in options if options.count(option) > 1), "")
        if unshown := next((option for option in map(_compared, choices.offered) if option not in text), ""):
            message = (
                f"the question does not show the option {unshown[:60]!r}, which choices() offers; print all options"
            )
            yield Failure(message, "draft()", example.id, world.longest)
        elif twice:
            message = f"the option {twice[:60]!r} is offered twice; correct the row, or leave it out"
            yield Failure(message, "choices()", example.id, world.longest)
    if not has_options:
        raise Skipped("no question offers options")


def _compared(part: Part) -> str:
    return part.path if isinstance(part, Image) else " ".join(part.split()).casefold()


def example_to_read(world: World) -> Iterator[tuple[str, str]]:
    """Yield the parts of `CheckedDataset.example`, each with its name."""
    if (example := next((example for _, example in world.every_example()), None)) is None:
        return
    builder, record, row = world.dataset.builder, world.record(example), world.row(example)
    with calling("builder", world.dataset.spec.builder, "question_of(), choices(), needles() or evidence()", row):
        question, choices, evidence = builder.question_of(record), builder.choices(record), builder.evidence(record)
        needles = builder.needles(record)
        right = choices.offered[choices.right] if choices else ""
        answer = right.path if isinstance(right, Image) else right or world.answer_of(example)
        answer = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
        yield "row", ", ".join(filter(None, (repr(row.id), world.place(row.id))))
        yield "question", _one_line(question or _question(example))
        yield "answer", _one_line(answer)
        units = [unit for host in example.units for unit in (host, *host.needles)]
        golds = [unit for unit in units if unit.role in NEEDLES]
        if world.is_shared:
            items = [{"unit": unit.id, "role": unit.role} for unit in example.units]
            own = answering([unit.parts for unit in example.units], needles or (), items, row.id)
            golds = [example.units[number] for number in sorted(own)]
        if evidence and evidence.pages:
            pages = ", ".join(f"{page + 1}" for page in evidence.pages)
            yield "evidence", f"page {pages} of {evidence.document}, counted from 1"
        elif builder.spec.is_answer_of_context or not golds:
            yield "made from", f"the {len(example.units)} units that are shown"
        images = world.dataset.sources.images if world.dataset.sources.has_images else None
        for unit in golds[:_MOST_READ]:
            names = [(images and images.origin(path)) or path for path in unit.images]
            texts = (part for part in unit.parts if isinstance(part, str))
            role = unit.role if unit.role in NEEDLES else "gold"
            yield unit.label or role, _one_line(" ".join((*texts, *names)), answer)


def _one_line(text: str, around: str = "") -> str:
    """Return the beginning of a text, or what stands around another text in it."""
    text = " ".join(text.split())
    at = max(0, text.casefold().find(" ".join(around.casefold().split())) - _READ // 2) if len(text) > _READ else 0
    return f"{'…' if at else ''}{text[at : at + _READ]}{'…' if at + _READ < len(text) else ''}"


# ---- What the metric gives

_Asked: TypeAlias = tuple[PackedExample, Record, ScoringInput, str]
"""An example, its record, what the metric sees of it, and the output that scores full."""


def _metrics(world: World) -> tuple[Metric, Metric]:
    bound = world.dataset.plan.bound
    name = bound.task.metric
    if name.startswith(JUDGED):
        raise Skipped(f"metric {name!r} asks a judge")
    try:
        with calling("metric", name, "__init__()"):
            metric = bound.metric(Settings())
            return metric, bound.metric(Settings(profile="ours")) if "ours" in metric.offered() else metric
    except ScoringError as error:  # it needs a judge, or documents
        raise Skipped(str(error)) from error


def _asked(world: World, metric: Metric) -> Iterator[_Asked]:
    """Yield the longest examples that have an output which scores full."""
    builder = world.dataset.builder
    for example in world.examples(world.longest):
        record = world.record(example)
        with calling("builder", world.dataset.spec.builder, "a method that scoring calls", world.row(example)):
            asked = scoring_input(builder, record, builder.spec.files.write(world.name, K, 1, 1))
        with calling("metric", metric.name, "full_answer()", about=f"the answer {asked.answer!r:.60}"):
            if (full := metric.full_answer(asked)) is not None:
                yield example, record, asked, full


def answers_score_full(world: World) -> Iterator[Outcome]:
    metric, plain = _metrics(world)
    asked_of = list(_asked(world, metric))
    if not asked_of:
        raise Skipped(f"metric {metric.name!r} has no output that scores full (Metric.full_answer)")
    for example, _, asked, answer in asked_of:
        with calling("metric", metric.name, "score()", about=f"the answer {asked.answer!r:.60}"):
            full, empty = metric.score(replace(asked, prediction=answer)), plain.score(asked)
        message = ""
        if full.score is None or full.score < _FULL:
            found = full.failure if full.score is None else f"{full.score:.3f}"
            message = f"metric {metric.name!r}: expected score 1 for the answer {asked.answer!r:.60}, found {found}"
        elif empty.score is not None and empty.score >= _FULL:
            message = f"metric {metric.name!r} gives an empty output the full score; the answer is {asked.answer!r:.60}"
        if message:
            yield Failure(message, "record()", example.id, world.longest)


def wrong_answers_do_not_score_full(world: World) -> Iterator[Outcome]:
    """Yield a metric that gives the full score for any text, the answers of other questions, all answers at once, or
    another field of the record. A metric of the engine follows its paper, so there this is a note.
    """
    metric, _ = _metrics(world)
    first = {each[0].id: each for each in reversed(list(_asked(world, metric)))}
    if len(first) < 2:  # no other answers to compare with
        raise Skipped("fewer than two questions have an output that scores full")
    code = world.dataset.plan.bound.code
    is_ours = "metric" in code and code["metric"].distribution == ENGINE
    hits: dict[str, list[tuple[str, str]]] = {}
    for example, record, asked, full in first.values():
        others = [other for _, _, _, other in first.values() if not contains(other, full)]
        with calling("builder", world.dataset.spec.builder, "choices()", world.row(example)):
            choices = world.dataset.builder.choices(record)
        offered = [part for part in choices.offered if isinstance(part, str)] if choices else []
        tried = [("any text", "Lorem ipsum dolor sit amet"), ("all answers at once", ", ".join([*others, full]))]
        tried += [("all answers at once", ", ".join(offered))] if offered else []
        tried += [("the answer of another question", other) for other in others]
        for key, value in () if is_ours else record.items():
            text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
            if 0 < len(text) <= _SHORT and not contains(text, full) and key not in ("id", "question"):
                tried.append((f"its field {key!r}", text))
        for what, output in tried if full.strip() and (others or offered) else tried[:1]:
            with calling("metric", metric.name, "score()", about=f"the output {output!r:.60}"):
                score = metric.score(replace(asked, prediction=output)).score
            if score is not None and score >= _FULL:
                hits.setdefault(what, []).append((example.id, f"{output[:60]!r}, where the answer is {full[:60]!r}"))
    for what, found in hits.items():
        # some questions may have the same answer in other words
        if len({id for id, _ in found}) * 2 > len(first):
            message = f"metric {metric.name!r} gives {what} the full score"
            yield message if is_ours else Failure(f"{message}: {found[0][1]}", "score()", found[0][0], world.longest)
