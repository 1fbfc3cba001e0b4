"""Fluency × F1 of summaries by a judge, and the atomic claims of gold summaries that it needs.

A summary is judged by three questions: whether it reads well, how many key points of the gold summary it contains, and
how many of its sentences the gold summary supports. `official` asks with the public code's prompts and reads replies as
that code does; `ours` asks with this project's.

The claims are released with the data, or a judge makes them once: `summ/<dataset>_claims.jsonl` has a line
`{"id", "claims"}` for each summary, in the form that the public scorer reads.
"""

import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.metrics.benchmark.metrics import PUBLIC_CODE
from mmlongbench.metrics.judge.judged import (
    MAX_CHARACTERS,
    Judged,
    Manner,
    prompt_call,
    too_long,
    unscored,
    verdict_call,
)
from mmlongbench.metrics.judge.prompts import Places, own_prompt
from mmlongbench.metrics.judge.verdicts import (
    Claims,
    Fluency,
    KeyPoints,
    Sentences,
    V,
    fluency_of,
    key_points_of,
    sentences_of,
)
from mmlongbench.models.calls import encodable, fence, numbered
from mmlongbench.models.client import Backoff, Failed, ModelClient
from mmlongbench.release.layout import CLAIMS
from mmlongbench.task.file_formats import JSON_LINES, to_json
from mmlongbench.task.metric import Details, MetricWithTotals, Profile, Score, ScoringInput, Settings

PREFIX = "Summary:"
"""The prompt's last word, which models repeat; the public scorer removes it too."""
TEMPERATURE, MAX_TOKENS, TRIES = 0.1, 4096, 10
"""The options of the public code."""
FIGURES = {"recall": "recall", "precision": "precision", "fluency": "fluency", "f1": "f1", "flu-f1": "flu_f1"}
"""The figures that the public code reports, each with the name of a detail. A figure is the mean of its detail
over the examples with scores."""
_SUFFIXES = {"report": "gov", "case": "lexsum"}
"""The endings of the names of the public code's prompts, by the kind of example; examples of any other kind use those
of a case, as in the public code."""


class FluencyF1(Judged, MetricWithTotals):
    """Fluency × F1 of a summary, by a judge.

    The judge counts the key points of the gold summary that the summary contains, and the sentences of the summary that
    the gold summary supports.
    """

    name: ClassVar[str] = "judge-fluency-f1"
    profiles: ClassVar[Mapping[Profile, str]] = {"official": PUBLIC_CODE, "ours": PUBLIC_CODE}
    prompts_file: ClassVar[str] = "scripts/eval_gpt4_summ.py"
    public_model: ClassVar[str] = "gpt-4o-2024-11-20"
    places: ClassVar[Places] = {
        f"{question}_prompt_{suffix}": places
        for suffix in _SUFFIXES.values()
        for question, places in (
            ("fluency", ("text",)),
            ("recall", ("keypoints", "summary")),
            ("precision", ("expert_summary", "summary")),
        )
    }

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Use the claims that are released with the data, if there are any."""
        super().__init__(settings, backoff)
        self._claims = GoldClaims(self.client, self.model, settings.data)
        data = settings.data
        files = sorted(path for path in data.glob(f"*/*{CLAIMS}") if path.is_file()) if data else []
        digests = ", ".join(f"{path.name} sha256:{sha256_of(path)[:16]}" for path in files)
        self.choices = (*self.choices, f"claims of {digests}" if files else "claims by the judge")
        self._manner = Manner(TEMPERATURE, MAX_TOKENS, TRIES, is_literal=self.public is not None)

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1; an empty prediction scores 0, and no judge is called for it."""
        summary = encodable(asked.prediction).strip().removeprefix(PREFIX).strip()
        gold = encodable(str(asked.answer))
        if not summary:
            return Score(0.0, {"is_empty": True, **self.absent(asked)})
        if longest := [text for text in (summary, gold) if len(text) > MAX_CHARACTERS]:
            return unscored(too_long("summaries" if len(longest) > 1 else "summary", longest))
        about = (asked.file, asked.dataset, asked.id)
        if self.public:
            claims = self._claims.released(*about, asked.source_id)
        else:
            claims = self._claims.of(*about, gold, asked.source_id)
        shown = partial(self._shown, "summary", summary)
        # all calls are made, also after one failed, because answers are kept for the next run
        fluent = self._ask(asked.kind, "fluency", Fluency, fluency_of, text=self._shown("text", summary))
        recalled: KeyPoints | Failed
        if isinstance(claims, Failed):
            recalled = claims
        else:
            plain = "\n".join(f"{number}. {encodable(claim)}" for number, claim in enumerate(claims, 1))
            points = plain if self.public else numbered(claims)
            if len(points) > MAX_CHARACTERS:
                recalled = too_long("claims", claims)
            else:
                texts = {"keypoints": self._shown("key-points", points), "summary": shown()}
                rule = partial(key_points_of, claims=len(claims))
                recalled = self._ask(asked.kind, "recall", KeyPoints, rule, **texts)
        texts = {"expert_summary": self._shown("expert", gold), "summary": shown()}
        precise = self._ask(asked.kind, "precision", Sentences, sentences_of, **texts)
        match claims, fluent, recalled, precise:
            case tuple(), Fluency(), KeyPoints(), Sentences():
                return scored(fluent, recalled, len(claims), precise)
        return unscored(next(reply for reply in (claims, fluent, recalled, precise) if isinstance(reply, Failed)))

    def absent(self, asked: ScoringInput) -> Details:
        """Return the figures of an example without a prediction: zeros, which count in the means."""
        return dict.fromkeys(FIGURES.values(), 0.0)

    @classmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return the means that the public code reports; examples without a usable reply are left out."""
        lines = [each.details for each in scored if each.score is not None and "flu_f1" in each.details]
        return {name: statistics.fmean(line[key] for line in lines) for name, key in FIGURES.items()} if lines else {}

    def _shown(self, name: str, text: str) -> str:
        """Return a text as a prompt shows it: unchanged in the public code's prompts, fenced in this project's."""
        return text if self.public else fence(name, text, MAX_CHARACTERS)

    def _ask(self, kind: str, question: str, form: type[V], rule: Any, **texts: str) -> V | Failed:  # noqa: ANN401
        """Ask one question. `rule` reads the reply: it is called with the text of the reply and `is_literal`."""
        known = kind if kind in _SUFFIXES else "case"
        if self.public:
            prompt = self.public.templates[f"{question}_prompt_{_SUFFIXES[known]}"].filled(**texts)
        else:
            prompt = own_prompt(f"{known}_{question}")(**texts)
        is_literal = self._manner.is_literal
        name = f"{question} {'literal' if is_literal else 'own'}"
        find = partial(rule, is_literal=is_literal)
        return self.client.ask(prompt_call(self.model, prompt, name, form, find, self._manner))


def scored(fluent: Fluency, recalled: KeyPoints, claims: int, precise: Sentences) -> Score:
    """Return the score from the judge's counts: the F1 of recall and precision, times fluency.

    Recall or precision may be above 1 if a judge counts more than there is. The score is cut to 1; its details have the
    figures of the public code, which are not cut.

    >>> precise = Sentences(precision=2, sentence_count=4)
    >>> scored(Fluency(fluency=1), KeyPoints(recall=1), 4, precise).details["f1"]
    0.3333333333333333
    """
    recall = recalled.recall / claims if claims else 0.0
    precision = precise.precision / precise.sentence_count if precise.sentence_count else 0.0
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    flu_f1 = fluent.fluency * f1
    details: dict[str, Any] = {"fluency": fluent.fluency, "recall": recall, "precision": precision, "f1": f1}
    counts = {"claims": claims, "claims_found": recalled.recall, "sentences": precise.sentence_count}
    said = {"recall_reason": recalled.reason, "precision_reason": precise.reason}
    points = {"supported_key_points": list(recalled.supported_key_points)} if recalled.supported_key_points else {}
    found = {"sentences_supported": precise.precision, **points, **said}
    return Score(min(1.0, flu_f1), {**details, "flu_f1": flu_f1, **counts, **found})


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    id: str | int
    """The id of the summary in the release or in the source; it is compared as text."""
    claims: tuple[str, ...]


class GoldClaims:
    """The claims of gold summaries; several threads may use it."""

    def __init__(self, client: ModelClient, model: str, data: Path | None) -> None:
        """Use the claims that are released with the data, if there are any."""
        self._client, self._model, self._data = client, model, data
        self._guard = threading.Lock()
        self._released: dict[Path, Mapping[str, tuple[str, ...]]] = {}

    def released(self, file: str, dataset: str, id: str, source_id: str = "") -> tuple[str, ...] | Failed:
        """Return the released claims of an example, found by its id or its id in the source; no judge is called."""
        known = self._of_file(file, dataset)
        for name in (id, source_id):
            if name in known:
                return known[name]
        place, there = claims_file(file, dataset).as_posix(), next(iter(known), None)
        said = f"has ids such as {there!r}, not {id!r}" if there else "is not there"
        return Failed(
            f"no claims: {place} {said}; put the public code's file there, or make one with `mmlongbench claims`"
        )

    def of(self, file: str, dataset: str, id: str, gold: str, source_id: str = "") -> tuple[str, ...] | Failed:
        """Return the claims of one gold summary: the released ones or, if there are none, those that the judge makes.

        Released claims are found by the id of the example, or by its id in the source. In a dry run, a summary without
        known claims counts as one claim.
        """
        released = self.released(file, dataset, id, source_id)
        if not isinstance(released, Failed):
            return released
        made = self._client.ask(verdict_call(self._model, "claims", fence("summary", gold), Claims))
        if isinstance(made, Failed):
            return (gold,) if self._client.settings.is_dry else made
        return made.claims

    def _of_file(self, file: str, dataset: str) -> Mapping[str, tuple[str, ...]]:
        if self._data is None:
            return {}
        path = self._data / claims_file(file, dataset)
        with self._guard:
            if path not in self._released:
                self._released[path] = read_claims(path) if path.is_file() else {}
            return self._released[path]


def claims_file(file: str, dataset: str) -> Path:
    """Return the path of a dataset's claims, beside its public files.

    >>> claims_file("summ/gov_K8.jsonl", "gov").as_posix()
    'summ/gov_claims.jsonl'
    """
    return Path(file).with_name(f"{dataset}{CLAIMS}")


def read_claims(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the claims of each summary, by its id; a line that is not valid, or an id that occurs twice, is a
    `ReleaseError`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for where, line in JSON_LINES.unbundle(path):
        try:
            read = _Line.model_validate_json(to_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ReleaseError(
                f"{path.name}, {where}: {place}: {first['msg']}; expected an id and its claims"
            ) from error
        id = str(read.id)
        if id in found:
            raise ReleaseError(f"{path.name}, {where}: id {id!r} occurs twice; remove one of its lines")
        found[id] = read.claims
    return found


@dataclass(frozen=True, slots=True)
class Summaries:
    """The gold summaries of a dataset, the same at every length."""

    dataset: str
    file: str
    """One of the public files of the dataset."""
    golds: Mapping[str, str]
    """The gold summaries by id."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What `write_claims` found and made for one dataset."""

    dataset: str
    file: str
    """The path of the claims file, below the output folder; the file is written only if every summary has claims."""
    summaries: int
    claims: int
    known: int = 0
    """How many summaries already had claims in the file."""
    others: tuple[str, ...] = ()
    """The ids that have claims in the file but no summary in the release; their lines are kept."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """The reasons why summaries have no claims, by the id of the summary."""


def write_claims(
    client: ModelClient, model: str, data: Path, out: Path, datasets: Sequence[Summaries], progress: Progress
) -> Iterator[Claimed]:
    """Split the gold summaries of datasets into claims, and yield the result for each dataset.

    A claims file is written for each dataset in which every summary has claims, but not in a dry run. Existing claims,
    such as those of the public code, are found by id and not changed.
    """
    known, is_dry = GoldClaims(client, model, data), client.settings.is_dry
    for summaries in datasets:
        path = claims_file(summaries.file, summaries.dataset)
        before = read_claims(data / path) if (data / path).is_file() else {}
        with (
            progress.bar(f"claims: {summaries.dataset}", len(summaries.golds)) as advance,
            threads(client.settings.concurrency, [client.stop]) as pool,
        ):

            def claims_of(item: tuple[str, str]) -> tuple[str, ...] | Failed:
                claims = known.of(summaries.file, summaries.dataset, *item)  # noqa: B023  (called in this turn)
                advance()
                return claims

            found = dict(zip(summaries.golds, pool.map(claims_of, summaries.golds.items()), strict=True))
        good = {id: claims for id, claims in found.items() if not isinstance(claims, Failed)}
        failures = {id: claims.why for id, claims in found.items() if isinstance(claims, Failed)}
        after = {**before, **good}
        is_new = after != before or not (out / path).is_file()
        if is_new and not failures and not is_dry:
            write_whole(out / path, (to_json({"id": id, "claims": claims}) for id, claims in after.items()))
        number = 0 if is_dry else sum(map(len, good.values()))
        others = tuple(id for id in before if id not in summaries.golds)
        joined = sum(bool(before.get(id)) for id in summaries.golds)
        yield Claimed(summaries.dataset, path.as_posix(), len(found), number, joined, others, failures)
