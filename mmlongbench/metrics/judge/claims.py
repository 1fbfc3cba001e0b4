"""The atomic claims of gold summaries. They are released with the data, or a judge makes them once.

`summ/<dataset>_claims.jsonl` has a line `{"id", "claims"}` for each summary, in the form that the public scorer reads.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.metrics.judge.calls import Call
from mmlongbench.metrics.judge.client import JudgeClient
from mmlongbench.metrics.judge.verdicts import Claims
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import fence
from mmlongbench.release.layout import CLAIMS
from mmlongbench.task.file_formats import JSON_LINES, to_json

_RUBRIC = """You take a summary apart into claims. A claim is one short sentence that says one fact and can be \
understood without the others: write names out instead of pronouns, and keep numbers, dates and conditions as they \
are. Together the claims say all that the summary says, in its order, and nothing else; a fact that it repeats becomes \
one claim. Headings and phrases that state nothing become none."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    id: str | int
    """The id of the summary in the release or in the source; it is compared as text."""
    claims: tuple[str, ...]


class GoldClaims:
    """The claims of gold summaries; several threads may use it."""

    def __init__(self, client: JudgeClient, data: Path | None) -> None:
        """Use the claims that are released with the data, if there are any."""
        self._client = client
        self._data = data
        self._guard = threading.Lock()
        self._released: dict[Path, Mapping[str, tuple[str, ...]]] = {}

    def released(self, file: str, dataset: str, id: str, source_id: str = "") -> tuple[str, ...] | Failed:
        """Return the released claims of an example, found by its id or its id in the source; no judge is called."""
        found = self._of_file(file, dataset)
        if (name := _known(found, id, source_id)) is not None:
            return found[name]
        place, there = claims_file(file, dataset).as_posix(), next(iter(found), None)
        said = f"has ids such as {there!r}, not {id!r}" if there else "is not there"
        return Failed(
            f"no claims: {place} {said}; put the public code's file there, or make one with `mmlongbench claims`"
        )

    def of(self, file: str, dataset: str, id: str, gold: str, source_id: str = "") -> tuple[str, ...] | Failed:
        """Return the claims of one gold summary: the released ones or, if there are none, those that the judge makes.

        Released claims are found by the id of the example, or by its id in the source. In a dry run, a summary without
        known claims counts as one claim.
        """
        released = self._of_file(file, dataset)
        if (name := _known(released, id, source_id)) is not None:
            return released[name]
        found = self._client.ask(Call(self._client.judge.models[0], _RUBRIC, fence("summary", gold), Claims))
        if isinstance(found, Failed):
            return (gold,) if self._client.judge.is_dry else found
        return found.claims

    def _of_file(self, file: str, dataset: str) -> Mapping[str, tuple[str, ...]]:
        if self._data is None:
            return {}
        path = self._data / claims_file(file, dataset)
        with self._guard:
            if path not in self._released:
                self._released[path] = read_claims(path) if path.is_file() else {}
            return self._released[path]


def _known(claims: Mapping[str, tuple[str, ...]], *ids: str) -> str | None:
    return next((id for id in ids if id in claims), None)


def claims_file(file: str, dataset: str) -> Path:
    """Return the path of a dataset's claims, beside its public files.

    >>> claims_file("summ/gov_K8.jsonl", "gov").as_posix()
    'summ/gov_claims.jsonl'
    """
    return Path(file).with_name(f"{dataset}{CLAIMS}")


def claims_files(data: Path | None) -> tuple[str, ...]:
    """Return a text for each claims file in the folders of public files, with the file's name and digest."""
    found = sorted(path for path in data.glob(f"*/*{CLAIMS}") if path.is_file()) if data else []
    return tuple(f"{path.name} sha256:{sha256_of(path)[:16]}" for path in found)


def read_claims(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the claims of each summary, by its id.

    Raises:
        ReleaseError: a line is not valid, or an id occurs twice.

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
    client: JudgeClient, data: Path, out: Path, datasets: Sequence[Summaries], progress: Progress
) -> Iterator[Claimed]:
    """Split the gold summaries of datasets into claims, and yield the result for each dataset.

    A claims file is written for each dataset in which every summary has claims, but not in a dry run. Existing claims,
    such as those of the public code, are found by id and not changed.
    """
    known = GoldClaims(client, data)
    for summaries in datasets:
        path = claims_file(summaries.file, summaries.dataset)
        before = read_claims(data / path) if (data / path).is_file() else {}
        found = _found(known, summaries, client, progress)
        good = {id: claims for id, claims in found.items() if not isinstance(claims, Failed)}
        failures = {id: claims.why for id, claims in found.items() if isinstance(claims, Failed)}
        after = {**before, **good}
        is_new = after != before or not (out / path).is_file()
        if is_new and not failures and not client.judge.is_dry:
            write_whole(out / path, (to_json({"id": id, "claims": claims}) for id, claims in after.items()))
        number = 0 if client.judge.is_dry else sum(map(len, good.values()))
        others = tuple(id for id in before if id not in summaries.golds)
        joined = sum(bool(before.get(id)) for id in summaries.golds)
        yield Claimed(summaries.dataset, path.as_posix(), len(found), number, joined, others, failures)


def _found(
    known: GoldClaims, summaries: Summaries, client: JudgeClient, progress: Progress
) -> dict[str, tuple[str, ...] | Failed]:
    def one(item: tuple[str, str]) -> tuple[str, ...] | Failed:
        found = known.of(summaries.file, summaries.dataset, *item)
        advance()
        return found

    with (
        progress.bar(f"claims: {summaries.dataset}", len(summaries.golds)) as advance,
        threads(client.judge.concurrency, [client.stop]) as pool,
    ):
        return dict(zip(summaries.golds, pool.map(one, summaries.golds.items()), strict=True))
