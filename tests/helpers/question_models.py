"""The models of a `question_world`: what they say to each form, from what is on the wire."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from model_server import Request, Said, form_of
from planted_questions import DEFECTS, EDIT_DEFECTS, defect_at
from question_world import Asked, Fact, World, draft_of, name, plain_words

from mmlongbench.draws import Draws

READS = "sufficiency necessity each-page wrong-document round-trip whole-document"


def text_of(request: Request) -> str:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def instruction_of(request: Request) -> str:
    return str(request["messages"][0]["content"])


def fenced(name: str, request: Request) -> str:
    found = re.search(rf"<{name}-[0-9a-f]+>\n(.*?)\n</{name}-", text_of(request), re.DOTALL)
    return found[1] if found else ""


def shown(world: World, request: Request) -> list[tuple[str, int]]:
    """The pages in a request, by the bytes of their pictures."""
    content = request["messages"][-1]["content"]
    urls = (
        []
        if isinstance(content, str)
        else [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    )
    return [world.page_of(hashlib.sha256(base64.b64decode(url.partition(",")[2])).hexdigest()) for url in urls]


def script_of(world: World, count: Callable[[Request], int] | None = None) -> Callable[[Request], Said]:
    """A server of all models of a world; `count` says how many tokens a prompt has."""

    def script(request: Request) -> Said:
        said = _SAY[form_of(request)](world, request)
        words = said if isinstance(said, str) else json.dumps(said)
        tokens = count(request) if count else 400 + 1000 * len(shown(world, request))
        return Said(words, prompt_tokens=tokens)

    return script


def _content(world: World, request: Request) -> dict[str, Any]:
    doc, page = shown(world, request)[0]
    there = [
        "text",
        *(["table"] if world.by_name[doc].has_tables else []),
        *(["figure"] if world.by_name[doc].has_figure(page) else []),
    ]
    return {"reason": "seen", "content": there, "complexity": 6}


def _drafted(world: World, request: Request) -> dict[str, Any] | str:
    doc, instruction, n = world.by_name[fenced("title", request)], instruction_of(request), int(request["seed"])
    target = re.search(r"The question is about Page (\d+)", instruction)
    pages = shown(world, request)
    kind = "cross" if not target else next(word for word, words in _KINDS.items() if words in instruction)
    page = int(target[1]) if target else pages[0][1]
    fact = world.fact(doc, page, n, kind)
    target_page = page
    defect = defect_at(world, doc.name, page, n, kind)
    world.drafts[doc.name, target_page, kind, n] = defect
    if defect in ("no JSON", "refusal"):
        return "I'm sorry, I cannot help with documents." if defect == "refusal" else "Yes, a question."
    draft = draft_of(fact)
    if defect:
        draft |= DEFECTS[defect].plant(world, doc, page, n, fact)
    truth = fact if defect != "one page suffices" else doc.cell(fact.pages[0], 8 + n % 8)
    truth = doc.warden(page) if defect == "on another page, too" else truth
    truth = doc.partial(page) if defect == "list not complete" else truth
    if defect in ("asked twice", "asked in other words"):  # the question of the first draft of the page and kind
        truth, defect = world.fact(doc, page, 0, kind), ""
    world.asked[plain_words(draft["question"])] = Asked(truth, doc.name, defect)
    return draft


_KINDS = {
    "table": "name its row and its column",
    "figure": "name the series, legend or axis",
    "text": "running text of the page",
}


def _about(world: World, request: Request) -> Asked | None:
    return world.asked.get(plain_words(fenced("question", request)))


def _misread(world: World, request: Request) -> bool:
    key = (request["model"], hashlib.sha256(json.dumps(request["messages"]).encode()).hexdigest())
    return Draws(key).fraction("noise") < world.noise


def _answered(world: World, request: Request) -> dict[str, Any]:
    """What a reader says: the truth if all of its pages are shown."""
    asked, pages = _about(world, request), shown(world, request)
    none: dict[str, Any] = {"reason": "not there", "is_answerable": False, "answers": [], "pages": []}
    if asked is None or _misread(world, request):
        return none
    fact, own = asked.fact, {page for doc, page in pages if doc == asked.doc}
    if asked.defect == "in another document, too" and pages:
        return {**none, "is_answerable": True, "answers": list(fact.answers), "pages": [pages[0][1]]}
    if asked.defect == "answered after all" and fact.pages[0] in own:
        return {**none, "is_answerable": True, "answers": list(fact.answers), "pages": list(fact.pages)}
    if asked.defect in EDIT_DEFECTS or asked.defect == "edit":
        return none
    is_many = len(own) > len(fact.pages)
    if asked.defect == "readers differ" and is_many and set(fact.pages) <= own:
        return {**none, "is_answerable": True, "answers": [name(str(request["model"]))], "pages": list(fact.pages)}
    if asked.defect == "readers agree on another" and is_many and set(fact.pages) <= own:
        return {**none, "is_answerable": True, "answers": ["Quite another one"], "pages": list(fact.pages)}
    if set(fact.pages) <= own:
        return {**none, "is_answerable": True, "answers": list(fact.answers), "pages": list(fact.pages)}
    if fact.echo and fact.echo in own:
        return {**none, "is_answerable": True, "answers": list(fact.answers), "pages": [fact.echo]}
    return none


def _guessed(world: World, request: Request) -> dict[str, Any]:
    assert not shown(world, request)
    asked = _about(world, request)
    knows = asked is not None and asked.defect == "known without the document"
    return {"reason": "a guess", "answers": list(asked.fact.answers) if asked and knows else ["Nobody Knows"]}


def _checked(world: World, request: Request) -> dict[str, Any] | str:
    asked = _about(world, request)
    defect = asked.defect if asked else ""
    if defect == "checklist in prose":
        return "Yes. All four hold."
    items = {
        "has_the_type": defect != "not of the type",
        "needs_the_content": defect != "does not need it",
        "is_clear_and_answerable": defect != "unclear",
        "is_of_reasonable_difficulty": defect != "too easy",
    }
    return {"type_reason": "a", "need_reason": "b", "clear_reason": "c", "difficulty_reason": "d", **items}


def _further(world: World, request: Request) -> dict[str, Any]:
    asked, pages = _about(world, request), shown(world, request)
    if asked and asked.defect == "list not complete":
        doc, page = world.by_name[asked.doc], asked.fact.pages[0] % world.by_name[asked.doc].pages + 1
        if (doc.name, page) in pages:
            return {
                "reason": "one is missing",
                "items": [doc.office(asked.fact.pages[0], 5).answers[2]],
                "pages": [page],
            }
    return {"reason": "all there", "items": [], "pages": []}


def _graded(world: World, request: Request) -> dict[str, Any]:
    asked = _about(world, request)
    defect = asked.defect if asked else ""
    if defect == "judges contradict":
        return {
            "reason": "so",
            "grade": 1 if request["model"].startswith("qwen") or request["model"].startswith("gpt") else 5,
        }
    return {"reason": "so", "grade": 3 if defect == "low grades" else 5}


def _edited(world: World, request: Request) -> dict[str, Any]:
    """One qualifier changed to that of another document: the year of its tables, or the name of a place."""
    question, doc = fenced("question", request), world.by_name[fenced("title", request)]
    asked, draws = world.asked[plain_words(question)], Draws(("edit", question))
    other = draws.choice("document", [each for each in world.docs if each.years[0] != doc.years[0]] or [doc])
    years = [year for year in doc.years if str(year) in question]
    places = re.findall(r"\b[A-Z][a-z]{8,}\b", question)
    was = str(years[0]) if years else places[0]
    now = (
        str(draws.choice("year", other.years))
        if years
        else other.place(draws.integer("page", 1, other.pages)).split()[0]
    )
    at = draws.integer("defect", 0, 9) if any(world.defects) else 9
    defect, changed = "edit", question.replace(was, now, 1)
    if at == 0:
        defect = "answered after all"
    elif at in (1, 2) and years:
        defect, changed = (
            "year of the document",
            question.replace(was, str(next(y for y in doc.years if y not in years)), 1),
        )
    elif at == 3 and question.startswith(("How many", "Who is")):
        defect, changed = "two changes", changed.replace("How many", "What number of").replace("Who is", "Who was")
    fact = Fact(changed, asked.fact.answers, asked.fact.format, asked.fact.pages, asked.fact.sources)
    world.asked[plain_words(changed)] = Asked(fact, doc.name, defect)
    return {"reason": "changed", "question": changed, "was": was, "now": now}


_SAY: dict[str, Callable[[World, Request], dict[str, Any] | str]] = {
    "PageContent": _content,
    "Drafted": _drafted,
    "Edited": _edited,
    "Checklist": _checked,
    "Answered": _answered,
    "Guessed": _guessed,
    "Further": _further,
    "Graded": _graded,
}
