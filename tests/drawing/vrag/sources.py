"""A small world that the package draws itself: an encyclopedia, pictures of its entities, and questions about them.

The questions in InfoSeek's form are about forty entities, the questions in ViQuAE's form about 36 of these. Both use
one corpus in the form of KILT's knowledge source. Questions and articles are made from the same facts, so they always
agree. Every call writes the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mmlongbench.task import Draws
from tests.drawing.vrag.articles import Article, write_articles
from tests.drawing.vrag.pictures import draw_picture
from tests.drawing.vrag.world import Question, Subject, read_encyclopedia

ALIASES: Mapping[str, tuple[str, ...]] = {
    "island": ("{0} Island", "Isle of {0}"),
    "river": ("River {0}", "{0} River"),
    "valley": ("{0} valley",),
    "hills": ("{0} range",),
    "lake": ("{0} basin",),
    "ship": ("the {0}",),
    "person": ("{1}",),
}
"""The aliases of an answer, as patterns. A key is the list in `words.yaml` that the answer is drawn from. {0} stands
for the answer, and {1} for its last word."""
COMMONS = {
    "Gull Stack Lighthouse": '512px-"The_Old_Grey"_at_Gull_Stack.jpg',
    "Merrin lute": "512px-Luth à dos rond, été au musée.jpg",
}
"""The file names of pictures in ViQuAE's form that are not made from the entity's name, by entity."""
UPPER_CASE = "Issel char"
"""The entity whose picture file ends in `.JPEG` in InfoSeek's form."""
BARE = "Tessel zither"
"""The entity whose numerical answer is a bare number, not in a list."""


def draw_infoseek(folder: Path) -> dict[str, Path]:
    """Draw an encyclopedia in KILT's form, a picture of each entity, and questions about them in InfoSeek's form."""
    articles = write_articles(read_encyclopedia())
    asked = [article for article in articles if article.subject.is_entity]
    images = folder / "oven_images"
    numbers = {article.subject.name: _image_number(article.subject) for article in asked}
    for article in asked:
        name = f"oven_{numbers[article.subject.name]}"
        ending = ".JPEG" if article.subject.name == UPPER_CASE else ".jpg"
        _write_picture(images / name[-8:-6] / f"{name}{ending}", article.subject)
    rows = [_infoseek_row(n, article, numbers[article.subject.name]) for n, article in enumerate(asked)]
    entities = [_entity_row(n, article) for n, article in enumerate(asked)]
    return {
        "questions": _write_lines(folder / "infoseek_val.jsonl", rows),
        "entities": _write_lines(folder / "infoseek_val_withkb.jsonl", entities),
        "images": images,
        "corpus": _write_lines(folder / "kilt.json", (article.row() for article in articles)),
    }


def draw_viquae(folder: Path) -> dict[str, Path]:
    """Draw an encyclopedia in KILT's form, a picture of each entity, and questions about them in ViQuAE's form."""
    articles = write_articles(read_encyclopedia())
    asked = [article for at, article in enumerate(articles) if article.subject.is_entity and at % 10 != 5]
    images = folder / "images"
    for article in asked:
        _write_picture(images / _commons_name(article.subject), article.subject)
    return {
        "questions": _write_lines(folder / "test.jsonl", map(_viquae_row, asked)),
        "images": images,
        "corpus": _write_lines(folder / "kilt.json", (article.row() for article in articles)),
    }


def infoseek_question(subject: Subject) -> Question:
    """Return the question in InfoSeek's form about an entity; the entities of a kind take the questions of the kind in
    turn.
    """
    questions = subject.kind.questions
    return questions[subject.index % len(questions)]


def viquae_question(subject: Subject) -> Question:
    """Return the question in ViQuAE's form about an entity: never InfoSeek's question, and never about a number."""
    others = [q for q in subject.kind.questions if q != infoseek_question(subject) and not is_number(subject, q)]
    return others[subject.index % len(others)]


def is_number(subject: Subject, question: Question) -> bool:
    """Return whether the answer is a measured number."""
    return isinstance(subject.kind.facts[question.of], tuple)


def answers(subject: Subject, question: Question) -> list[str]:
    """Return the answer and its aliases."""
    answer, pool = subject.facts[question.of], subject.kind.facts[question.of]
    aliases = ALIASES.get(pool, ()) if isinstance(pool, str) else ()
    return [answer, *(alias.format(answer, answer.split()[-1]) for alias in aliases)]


def _infoseek_row(number: int, article: Article, image: str) -> dict[str, object]:
    subject = article.subject
    question = infoseek_question(subject)
    spelled = answers(subject, question)
    evaluated: object = spelled
    if is_number(subject, question):
        value = float(spelled[0])
        measured = {"wikidata": value, "range": [round(value * 0.9, 2), round(value * 1.1, 2)]}
        evaluated = measured if subject.name == BARE else [measured]
    return {
        "data_id": f"infoseek_val_{number:08d}",
        "image_id": f"oven_{image}",
        "question": question.ask,
        "answer": spelled[:1],
        "answer_eval": evaluated,
        "data_split": subject.draws.choice("split", ("val_unseen_entity", "val_unseen_question")),
    }


def _entity_row(number: int, article: Article) -> dict[str, object]:
    return {
        "data_id": f"infoseek_val_{number:08d}",
        "entity_id": article.subject.wikidata_id,
        "entity_text": article.subject.name,
        "wikipedia_summary": " ".join(article.lead),
    }


def _viquae_row(article: Article) -> dict[str, object]:
    subject = article.subject
    question = viquae_question(subject)
    spelled = answers(subject, question)
    name = _commons_name(subject)
    return {
        "image": name,
        "input": question.shown,
        "kilt_id": f"qw_{subject.draws.integer('kilt', 1, 9_999)}",
        "id": f"{subject.draws.rank('id', 'viquae'):016x}",
        "meta": {},
        "original_question": question.named.format(name=subject.name),
        "output": {
            "original_answer": spelled[0],
            "answer": spelled,
            "provenance": list(_provenance(article, spelled[0])),
        },
        "url": f"https://commons.example/{name}",
        "wikidata_id": subject.wikidata_id,
    }


def _provenance(article: Article, answer: str) -> Iterator[dict[str, list[Any]]]:
    """Yield each paragraph with the answer, as a dict whose values are lists of one element."""
    section = "Section::::Abstract"
    for number, paragraph in enumerate(article.text):
        if paragraph.startswith("Section::::"):
            section = paragraph
        elif number and (start := paragraph.find(answer)) >= 0:
            yield {
                "wikipedia_id": [article.subject.page],
                "title": [article.subject.name],
                "section": [section],
                "start_paragraph_id": [number],
                "start_character": [start],
                "end_paragraph_id": [number],
                "end_character": [start + len(answer)],
                "bleu_score": [1.0],
            }


def _image_number(subject: Subject) -> str:
    """Return an id of eight digits that begins with a zero; the subject's number makes ids different."""
    return f"0{subject.draws.integer('image', 0, 99_999):05d}{subject.number:02d}"


def _commons_name(subject: Subject) -> str:
    return COMMONS.get(subject.name, f"512px-{subject.name.replace(' ', '_')}.jpg")


def _write_picture(path: Path, subject: Subject) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draws = Draws(("vrag sample picture", subject.name))
    path.write_bytes(draw_picture(subject.kind_name, subject.number, subject.index, draws))


def _write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path
