"""Gives a model the examples of a release, checks what each call cost, and writes the model's predictions.

First every prompt is counted by the model's rule, then the endpoint is probed, then the examples are sent. Answers are
kept in a file from the moment they arrive, so a run that was stopped goes on without repeating a call.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from mmlongbench.io.files import file_lock
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.models.asking import Asking, Planned
from mmlongbench.models.chat_call import ChatAnswer
from mmlongbench.models.client import Failed, ModelClient
from mmlongbench.models.prediction_lines import PredictionLine, read_lines, write_predictions
from mmlongbench.models.probes import NO_USAGE, Probed, Probes
from mmlongbench.models.receipts import Paid, Receipts, receipts
from mmlongbench.models.refusals import REFUSALS, SKIPS
from mmlongbench.models.replies import leaves_cached_out, prompt_tokens
from mmlongbench.prompt import Prompt

_AHEAD = 2
"""How many calls are prepared for each connection."""
_PATIENCE = 60.0
"""The seconds to wait for another run that is writing the file of predictions."""
UNUSABLE = "unusable"
"""The kind of a failure in which the endpoint replied, but without an answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The calls that failed in one way."""

    kind: str
    """A key of `REFUSALS`, or `unusable`."""
    count: int
    first: str
    """The first example, with the endpoint's message."""
    advice: str
    """What a user can do about it."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """An example that the model probably cannot take."""

    name: str
    reason: str
    """`context-length` or `image-limit`."""
    found: int
    most: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run did."""

    out: Path
    """The file of predictions."""
    model: str
    """The name of the model in requests."""
    examples: int
    """The number of examples that were asked about or skipped."""
    answers: int
    """The number of answers; with several samples, an example has several."""
    skipped: Mapping[str, int]
    """How many answers are missing because the model cannot take the example, by reason."""
    without_context: int
    """How many chosen examples do not have the requested context; they are not among `examples`."""
    expected_tokens: int
    """The prompt tokens of all calls that were expected; 0 without a rule."""
    oversized: tuple[Oversized, ...]
    """The examples that the model probably cannot take."""
    failures: tuple[Failure, ...]
    """The calls that failed, by the kind of error; they have no line in the file."""
    receipts: tuple[Receipts, ...]
    """The receipts of each file; empty if there are none."""
    finish_reasons: Mapping[str, int]
    """Why the answers ended, with the number of answers."""
    shrunk: int
    """How many different images were sent smaller than they are."""
    usage: Mapping[str, float]
    """Calls, tokens and cost (see `ModelClient.usage`)."""
    notes: tuple[str, ...]
    """Sentences that a reader of the predictions must know."""


@dataclass(slots=True)
class _Outcomes:
    """The results of the calls."""

    lines: list[PredictionLine] = field(default_factory=list)
    paid: dict[str, list[tuple[int, Paid]]] = field(default_factory=lambda: defaultdict(list))
    """The calls that the endpoint counted, by file, each with the number of its line."""
    cached: dict[str, int] = field(default_factory=dict)
    """The cached tokens that the endpoint says a prompt had, by the name of the call."""
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    asked: set[tuple[object, ...]] = field(default_factory=set)
    """The places of all calls, also of those that failed."""
    skipped: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The facts that are known before the examples are sent."""

    planned: tuple[Planned, ...]
    """The examples, in the order in which they are sent."""
    probed: Probed
    """How the endpoint counts."""
    window: int | None
    """The tokens of prompt and answer that the model takes, if known."""
    oversized: tuple[Oversized, ...]
    """The examples that the model probably cannot take."""

    def expected(self, plan: Planned) -> int | None:
        """Return the prompt tokens that the endpoint should count; None if nothing is known about them."""
        calibration = self.probed.calibrations.get(plan.dataset)
        return calibration.tokens(plan.cost) if calibration and plan.cost else None


def prepare(asking: Asking, client: ModelClient, out: Path) -> Prepared:
    """Count every prompt by the model's rule, probe the endpoint, and find the examples that are too large.

    Raises:
        ReleaseError: an example or an image cannot be read, nothing is chosen, or the file `out` has predictions that
            were made otherwise.
        EndpointError: the endpoint cannot be called.

    """
    read_lines(out, asking.like)  # before any call
    planned = tuple(asking.plan())
    probed = probe(asking, client, planned) if asking.rule else Probed({})
    window = asking.options.window or client.window(asking.options.model)
    known = Prepared(planned, probed, window, ())
    return replace(known, oversized=tuple(each for plan in planned if (each := _oversized(plan, asking, known))))


def run(asking: Asking, client: ModelClient, prepared: Prepared, out: Path, progress: Progress) -> RunResult:
    """Ask a model about the chosen examples, and write its predictions to a file.

    Lines of an earlier file about other examples are kept.

    Raises:
        ReleaseError: an example cannot be made into messages, or the file of predictions was changed meanwhile.
        BuildError: another run is writing the file of predictions.
        EndpointError: the endpoint stopped answering.

    """
    planned, probed = prepared.planned, prepared.probed
    found = _ask(asking, client, prepared, progress)
    _add_cached(found)
    datasets = {plan.file: plan.dataset for plan in planned}
    checked = {
        file: receipts(file, [each for _, each in paid], probed.calibrations[datasets[file]])
        for file, paid in found.paid.items()
    }
    lines = _with_receipts(found, checked)
    replaced = {line.place for line in lines} | (found.asked if asking.options.is_fresh else set())
    with file_lock(out.with_name(f".{out.name}.lock"), str(out), patience=_PATIENCE):
        earlier = read_lines(out, asking.like)  # again: another run may have added lines
        write_predictions(out, [*(line for line in earlier if line.place not in replaced), *lines])
    return RunResult(
        out=out,
        model=asking.options.model,
        examples=len(planned),
        answers=sum(line.prediction is not None for line in lines),
        skipped=dict(found.skipped),
        without_context=asking.without_context,
        expected_tokens=sum(line.expected_tokens or 0 for line in lines),
        oversized=prepared.oversized,
        failures=tuple(_failures(found)),
        receipts=tuple(checked.values()),
        finish_reasons=dict(found.finish_reasons),
        shrunk=len(asking.urls.shrunk),
        usage=client.usage(),
        notes=(*probed.notes, *_notes(asking, client), *_empty(lines)),
    )


def probe(asking: Asking, client: ModelClient, planned: Sequence[Planned]) -> Probed:
    """Find out how the endpoint counts, with texts and images of the release.

    The endpoint is asked anew, since it may have changed; but if the answers to all examples are on file, the earlier
    probes are taken, so that the predictions can be written without the endpoint.

    Raises:
        EndpointError: the endpoint cannot be called.
        ReleaseError: the endpoint refuses a probe.

    """
    costs = {plan.dataset: found for plan in planned if (found := asking.costs(plan.dataset))}
    if not costs:
        return Probed({})
    notes: list[str] = []
    is_done = not asking.options.is_fresh and all(client.knows(call) for _, call in asking.calls())

    @cache
    def ask(shown: Prompt) -> int | None:
        found = client.ask(asking.probe(shown), is_fresh=not is_done)
        if isinstance(found, Failed):
            notes.append(f"a probe of the endpoint failed: {found.why}")
            return None
        return prompt_tokens(found.usage)

    probed = Probes(ask, costs, asking.size).run({name: spread.kept for name, spread in asking.spread.items()})
    said = [note for note in probed.notes if note != NO_USAGE or not notes]
    return Probed(probed.calibrations, (*dict.fromkeys(notes), *said))


def _oversized(plan: Planned, asking: Asking, prepared: Prepared) -> Oversized | None:
    """Return why the model probably cannot take an example; None if it can, or if that is not known."""
    if plan.cost is None:
        return None
    options, window = asking.options, prepared.window
    most = options.max_images or (asking.rule.max_images if asking.rule else None)
    if most is not None and len(plan.cost.images) > most:
        return Oversized(plan.name, "image-limit", len(plan.cost.images), most)
    tokens = prepared.expected(plan)
    whole = (sum(plan.cost.images) + plan.cost.text if tokens is None else tokens) + plan.max_tokens
    return Oversized(plan.name, "context-length", whole, window) if window and whole > window else None


def _ask(asking: Asking, client: ModelClient, prepared: Prepared, progress: Progress) -> _Outcomes:
    """Make all calls, and separate their results into answers, failures and skipped examples."""
    found, samples, planned = _Outcomes(), asking.options.samples, prepared.planned
    oversized = {each.name: each for each in prepared.oversized}
    ahead = client.settings.concurrency * _AHEAD
    waiting: deque[tuple[Planned, PredictionLine, Future[ChatAnswer | Failed]]] = deque()
    with (
        threads(client.settings.concurrency, [client.stop]) as pool,
        progress.telling("calls", len(planned) * samples) as tell,
    ):
        for number, (line, call) in enumerate(asking.calls()):
            plan = planned[number // samples]
            if asking.options.skip_oversized and plan.name in oversized:
                _skip(found, line, oversized[plan.name].reason)
                tell("")
                continue
            waiting.append((plan, line, pool.submit(client.ask, call, is_fresh=asking.options.is_fresh)))
            while len(waiting) > ahead:
                _take(*waiting.popleft(), found, prepared, asking.options.skip_oversized)
                tell(_so_far(client))
        while waiting:
            _take(*waiting.popleft(), found, prepared, asking.options.skip_oversized)
            tell(_so_far(client))
    return found


def _so_far(client: ModelClient) -> str:
    """Return the tokens and the cost so far, in words."""
    usage = client.usage()
    cost = f", cost {usage['cost']:,.2f}" if "cost" in usage else ""
    return f"{usage['input_tokens'] + usage['output_tokens']:,.0f} tokens{cost}"


def _take(
    plan: Planned,
    line: PredictionLine,
    future: "Future[ChatAnswer | Failed]",
    found: _Outcomes,
    prepared: Prepared,
    skips: bool,
) -> None:
    answer, expected = future.result(), prepared.expected(plan)
    found.asked.add(line.place)
    if isinstance(answer, Failed):
        if skips and answer.name in SKIPS:
            _skip(found, line, answer.name)
        else:
            found.failed[answer.name or UNUSABLE].append(f"{plan.name}: {answer.why}")
        return
    made = {
        "prediction": answer.text,
        "reasoning": answer.reasoning,
        "finish_reason": answer.finish_reason,
        "usage": answer.usage,
        "expected_tokens": expected,
        "seconds": answer.seconds,
    }
    found.lines.append(line.model_copy(update=made))
    found.finish_reasons[answer.finish_reason or "not given"] += 1
    usage = prompt_tokens(answer.usage)
    if expected is not None and plan.cost is not None and usage is not None:
        name = plan.name if line.sample is None else f"{plan.name}, sample {line.sample}"
        found.paid[plan.file].append((len(found.lines) - 1, Paid(name, plan.cost, expected, usage)))
        # of an answer that was counted with its cached tokens already, none are left to add
        found.cached[name] = answer.usage.get("cached_tokens", 0) if usage == answer.usage.get("prompt_tokens") else 0


def _add_cached(found: _Outcomes) -> None:
    """Add cached tokens to the counts of an endpoint that leaves them out."""
    calls = [call for paid in found.paid.values() for _, call in paid]
    if leaves_cached_out([(call.usage, found.cached[call.name], call.expected) for call in calls]):
        for file, paid in found.paid.items():
            found.paid[file] = [(n, replace(call, usage=call.usage + found.cached[call.name])) for n, call in paid]


def _skip(found: _Outcomes, line: PredictionLine, reason: str) -> None:
    found.lines.append(line.model_copy(update={"skipped": reason}))
    found.skipped[reason] += 1


def _with_receipts(found: _Outcomes, checked: Mapping[str, Receipts]) -> list[PredictionLine]:
    """Return all lines; those whose count is not as expected say what that means."""
    lines = list(found.lines)
    for file, paid in found.paid.items():
        faults = {each.name: each.fault for each in checked[file].off}
        for number, call in paid:
            if fault := faults.get(call.name):
                lines[number] = lines[number].model_copy(update={"receipt": fault})
    return lines


def _notes(asking: Asking, client: ModelClient) -> Iterator[str]:
    if refused := sorted(client.left_out(asking.options.model)):
        yield f"the endpoint refuses the options {', '.join(refused)}; they were not sent"
    if asking.unchanged:
        yield f"{asking.unchanged:,} prompts are the same with the context {asking.options.context!r} as without it"


def _empty(lines: Sequence[PredictionLine]) -> Iterator[str]:
    """Yield how many answers have no text, though nothing failed."""
    empty = [line for line in lines if line.prediction is not None and not line.prediction.strip()]
    if empty:
        reasons = Counter(line.finish_reason or "not given" for line in empty)
        ended = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
        apart = sum(bool(line.reasoning.strip()) for line in empty)
        where = f"; {apart:,} of them have text in `reasoning` alone, which is not scored" if apart else ""
        yield f"{len(empty):,} answers are empty and score nothing (finish reason: {ended}){where}"


def _failures(found: _Outcomes) -> Iterator[Failure]:
    for kind, all_of_kind in sorted(found.failed.items(), key=lambda item: -len(item[1])):
        advice = REFUSALS[kind].advice if kind in REFUSALS else "see the reply of the model"
        yield Failure(kind, len(all_of_kind), all_of_kind[0], advice)
