"""Asks models: which ones, in which words, in which form they reply, and the record of every call.

A model never checks a question that its own family wrote. A reply without its form is asked for again, and never counts
as a yes. Every reply is kept as it came, so that a run from the file of answers decides as before.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from mmlongbench.draws import Draws, digest
from mmlongbench.errors import MMLongBenchError
from mmlongbench.messages import messages
from mmlongbench.models.calls import Call, fence, numbered, read_object, schema_options, shape
from mmlongbench.models.client import Failed, ModelClient
from mmlongbench.models.replies import Reply, Unusable
from mmlongbench.prompt import Image, Prompt
from mmlongbench.questions.table import Line
from mmlongbench.questions.writing.documents import LabelledPage, Library, ReadDocument
from mmlongbench.questions.writing.lines import Called, Candidate

F = TypeVar("F", bound=BaseModel)
MAX_TOKENS = 4096  # the token limit of a reply, including a model's reasoning before it
REFUSALS = (  # the beginnings of refusals in words
    *("i'm sorry", "i am sorry", "sorry", "i cannot", "i can't", "i can not", "i'm unable", "i am unable"),
    "as an ai",
)
WORDINGS = Path(__file__).with_name("wordings.toml")


class WritingError(MMLongBenchError):
    """Questions cannot be written or checked as asked."""


class WritingSettings(Line):
    """What decides the questions, besides the documents and the answers of the models."""

    authors: tuple[str, ...] = Field(min_length=1)  # each slot draws one of them as its author
    checkers: tuple[str, ...] = ()  # models that only check
    seed: int = 0
    per_document: int = Field(default=0, ge=0, le=500)  # 0: the minimum of MMLongBench-Doc for its type
    over: float = Field(default=2.0, ge=1, le=10)  # slots for one wanted question, because drafts fail
    dpi: int = Field(default=144, ge=36, le=300)  # the resolution of the pages that models see
    published_after: str = ""  # documents of this date (2024-05-31) or before are left out
    strict_anchor: bool = False  # rejects a question that another document answers otherwise, instead of noting it
    attempts: int = Field(default=3, ge=1, le=10)  # how often a model is asked for one reply, until it has the form

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.authors, *self.checkers)))


def family(model: str) -> str:
    """Return the name of a model's family: the letters at the beginning of its name.

    >>> family("gpt-4o-2024-05-13"), family("Qwen/Qwen2.5-VL-72B"), family("o3"), family("7b")
    ('gpt', 'qwen', 'o', '7b')
    """
    name = model.rsplit("/", 1)[-1].casefold()
    letters = re.match("[a-z]+", name)
    return letters[0] if letters else name


@cache
def wordings() -> dict[str, dict[str, str]]:
    return tomllib.loads(WORDINGS.read_text("utf-8"))


def wording(name: str, **values: str) -> str:
    text = wordings()["instructions"].get(name) or wordings()["parts"][name]
    return text.format(**values) if values else text


def material(candidate: Candidate, *, with_answer: bool = False) -> str:
    """Return the title and the question, maybe with its answer, as material for a model."""
    texts = [fence("title", candidate.doc), fence("question", candidate.question)]
    return "\n\n".join([*texts, fence("answer", shown_answer(candidate.answer))] if with_answer else texts)


def shown_answer(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else numbered(values)


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PageContent(_Form):
    reason: str
    content: list[Literal["text", "table", "figure", "layout", "contents", "none"]]
    complexity: int = Field(ge=1, le=10)


class Drafted(_Form):
    reason: str
    question: str
    answers: list[str]
    answer_format: str
    evidence_pages: list[int]
    sources: list[Literal["Text", "Table", "Chart", "Figure", "Layout"]]
    quote: str
    is_computed: bool


class Edited(_Form):
    """A question of which one qualifier was changed, so that the document no longer answers it."""

    reason: str
    question: str
    was: str
    now: str


class Checklist(_Form):
    """The four items of M-LongDoc's checklist, each with its reason."""

    type_reason: str
    has_the_type: bool
    need_reason: str
    needs_the_content: bool
    clear_reason: str
    is_clear_and_answerable: bool
    difficulty_reason: str
    is_of_reasonable_difficulty: bool


class Answered(_Form):
    reason: str
    is_answerable: bool
    answers: list[str]
    pages: list[int]


class Guessed(_Form):
    reason: str
    answers: list[str]


class Further(_Form):
    """What else on some pages belongs to an answer that counts or lists things."""

    reason: str
    items: list[str]
    pages: list[int]


class Graded(_Form):
    reason: str
    grade: int = Field(ge=1, le=5)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    reason: Literal["invalid-reply", "refusal"]
    detail: str


class Said(Line):
    """A reply as it came; the file of answers has it."""

    text: str
    finish_reason: str = ""
    is_refusal: bool = False
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, reply: Reply) -> "Said":
        fields = {name: getattr(reply, name) for name in cls.model_fields if name != "text"}
        return cls(text=reply.words, **fields)


@dataclass(frozen=True, slots=True)
class Request(Generic[F]):
    purpose: str  # the name of the stage
    model: str
    instruction: str
    material: str
    answer: type[F]
    pages: tuple[LabelledPage, ...] = ()
    sample: int = 0
    temperature: float = 0.0
    note: str = ""  # what was wrong with the last reply; empty for the first attempt

    def call(self) -> Call[Said]:
        """Return the call, of which any reply is kept: the instruction, then the labelled pages and the material."""
        form = f"Answer with one JSON object of this schema and nothing else:\n{json.dumps(shape(self.answer))}"
        instruction = f"{self.instruction}\n\n{wording('material')}\n\n{form}"
        parts: list[str | Image] = []
        for number, (label, _) in enumerate(self.pages):
            parts += [f"{label}:\n", Image(str(number))]
        prompt = Prompt.of([*parts, "\n\n".join(part for part in (self.material, self.note) if part)])
        asked = (self.model, instruction, self.material, self.note, self.sample, self.temperature)
        shown = [part for label, picture in self.pages for part in (label, picture.sha256)]
        return Call(
            digest("questions", self.purpose, *asked, *shown).hex(),
            self.model,
            lambda _: messages(prompt, lambda number: self.pages[int(number)][1].data_uri(), instruction),
            schema_options(self.answer, MAX_TOKENS, self.temperature, self.sample),
            Said,
            Said.of,
            reads_cut_off=True,
            reads_refusals=True,
        )


class CallFailedError(Exception):
    """A call got no reply; what depends on it stays pending."""


@dataclass
class Desk:
    """Asks models for one question or page, keeps a record of the calls in their order, and has what checks need."""

    library: Library
    settings: WritingSettings
    client: ModelClient
    calls: list[Called] = field(default_factory=list)

    def document(self, candidate: Candidate) -> ReadDocument:
        return self.library.documents[candidate.doc]

    def readers(self, candidate: Candidate, stage: str) -> list[str]:
        """Return the models that may check a question, in the order drawn for a stage: none of the author's family, and
        first those of different families.
        """
        own, draws = family(candidate.author), Draws((self.settings.seed, candidate.slot, stage))
        drawn = draws.order("readers", [model for model in self.settings.models if family(model) != own])
        first: dict[str, str] = {}
        for model in drawn:
            first.setdefault(family(model), model)
        return [*first.values(), *(model for model in drawn if model not in first.values())]

    def ask_about(
        self, candidate: Candidate, stage: str, model: str, instruction: str, form: type[F], pages: Sequence[int]
    ) -> F | NoAnswer:
        shown, asked = self.library.shown(candidate.doc, pages), material(candidate, with_answer=True)
        return self.ask(Request(stage, model, instruction, asked, form, shown))

    def answer(
        self, candidate: Candidate, stage: str, model: str, pages: Sequence[int], doc: str = ""
    ) -> Answered | NoAnswer:
        shown = self.library.shown(doc or candidate.doc, pages)
        return self.ask(Request(stage, model, wording("answer"), material(candidate), Answered, shown))

    def ask(self, request: Request[F]) -> F | NoAnswer:
        """Return a model's answer in the form, or why none of its replies has it; a call without a reply raises."""
        answer: F | NoAnswer = NoAnswer("invalid-reply", "nothing was asked")
        for _ in range(self.settings.attempts):
            call = request.call()
            said = self.client.ask(call)
            if isinstance(said, Failed):
                raise CallFailedError(said.why)
            self.calls.append(
                Called(
                    key=call.key,
                    model=request.model,
                    reply=sha256(said.text.encode()).hexdigest(),
                    input_tokens=said.input_tokens,
                    output_tokens=said.output_tokens,
                )
            )
            answer = read(said, request.answer)
            if not isinstance(answer, NoAnswer) or answer.reason == "refusal":
                break
            fault = f"Your last reply could not be used: {answer.detail[:200]}."
            request = replace(request, note=f"{fault} Answer with one JSON object of the schema.")
        return answer


def read(said: Said, form: type[F]) -> F | NoAnswer:
    """Return the answer in a reply, or why there is none."""
    if said.is_refusal:
        return NoAnswer("refusal", said.text[:120])
    if said.finish_reason in ("length", "content_filter"):
        return NoAnswer("invalid-reply", f"the reply was cut off ({said.finish_reason})")
    try:
        return read_object(said.text, form)
    except Unusable as error:
        detail = error.why
    if said.text.strip().casefold().replace("’", "'").startswith(REFUSALS):
        return NoAnswer("refusal", " ".join(said.text.split())[:120])
    return NoAnswer("invalid-reply", detail)
