"""Gives a model the examples of a release, checks what each call cost, and writes the model's predictions.

First every prompt is counted by the model's rule, then the endpoint is probed, then the examples are sent. Answers are
kept in a file from the moment they arrive, so a run that was stopped goes on without repeating a call.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from mmlongbench.documents.image_urls import fitting_size
from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import file_lock
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.messages import Size, messages
from mmlongbench.models.calls import Call
from mmlongbench.models.client import Backoff, Failed, ModelClient
from mmlongbench.models.prediction_lines import PredictionLine, predictions_file, read_lines, write_predictions
from mmlongbench.models.receipts import NO_USAGE, Calibration, Cost, Costs, Paid, Receipts, calibrate, receipts
from mmlongbench.models.replies import REFUSALS, SKIPS, leaves_cached_out, prompt_tokens
from mmlongbench.models.settings import EndpointSettings, RunOptions
from mmlongbench.prompt import Prompt
from mmlongbench.release.changed_contexts import contextual
from mmlongbench.release.example_cost import ImageSizes, Model
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import example_digest
from mmlongbench.release.release import Example, Release
from mmlongbench.release.selection import Selection, select
from tokenization import CrossModalCounter, TextTokenizer, TokenizationError, VisionRule, vision_rule

NO_RULE = "none"
"""The value of `count_as` for a model whose tokens are not checked."""
UNUSABLE = "unusable"
"""The kind of a failure in which the endpoint replied, but without an answer."""
_PROBED = 12
"""The maximum number of prompts of each dataset whose texts and images the probes use."""
_AHEAD = 2
"""How many calls are prepared for each connection."""
_PATIENCE = 60.0
"""The seconds to wait for another run that is writing the file of predictions."""
_SEE_REPLY = "see the reply of the model"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ChatAnswer(BaseModel):
    """A model's answer, as the endpoint returned it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    """The answer. It still contains the reasoning if the endpoint does not return that separately."""
    reasoning: str = ""
    finish_reason: str = ""
    usage: Mapping[str, int] = {}
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Planned:
    """One example that a model will be asked, without its prompt."""

    dataset: str
    file: str
    name: str
    """Its file, id and placement."""
    max_tokens: int
    cost: Cost | None
    """What the prompt costs by the model's rule; None without a rule."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """An example that the model probably cannot take."""

    name: str
    reason: str
    """`context-length` or `image-limit`."""
    found: int
    most: int


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


class Run:
    """A run of a model over examples of a release; `prepare`, then `ask`."""

    def __init__(
        self,
        release: Release,
        selection: Selection,
        options: RunOptions,
        settings: EndpointSettings,
        out: Path | None = None,
        *,
        remote_files: bool = False,
        backoff: Backoff | None = None,
    ) -> None:
        """Choose the examples, and open the endpoint; nothing is read or sent yet.

        The file of predictions is `out`, or `predictions/<model>.jsonl`. Without a cache in `settings`, the answers are
        kept beside it. `remote_files`: paths of images may be sent to another host.

        Raises:
            ReleaseError: the options do not fit each other, or no rule or tokenizer has the given name.
            EndpointError: the settings make no sense, or the file of answers cannot be used.

        """
        options.check()
        self.release, self.options = release, options
        self.out = out or predictions_file(options.model, options.context)
        self._cells = select(release, selection)
        self._rule, self._tokenizer = _counting(options)
        self._urls = release.image_urls(options.images, options.max_pixels)
        self._image_sizes = ImageSizes(release.path / IMAGES)
        self._lock = release.lock_id
        if options.images in ("path", "file-url") and not remote_files:
            with suppress(ValueError):  # of an address that the client refuses
                host = urlsplit(settings.url).hostname
                if host and host not in _LOOPBACK:
                    raise ReleaseError(
                        f"images {options.images!r}: {host} is another host, which does not see the files here; use "
                        "data-uri or a URL, or --remote-files if it does"
                    )
        cache = settings.cache or self.out.parent / f"{predictions_file(options.model).stem}.calls.sqlite"
        self._client = ModelClient(replace(settings, cache=cache), backoff)

        # known after `prepare`
        self.planned: list[Planned] = []
        """The examples, in the order in which they are sent."""
        self.without_context = 0
        """How many examples cannot be given the chosen context."""
        self.calibrations: Mapping[str, Calibration] = {}
        """How the endpoint counts the prompts of each dataset; empty without receipts."""
        self.notes: list[str] = []
        """Sentences about how the endpoint counts."""
        self.window: int | None = None
        """The tokens of prompt and answer that the model takes, if known."""
        self.oversized: list[Oversized] = []
        """The examples that the model probably cannot take."""
        self._unchanged = 0
        self._costs: dict[str, Costs] = {}

    def close(self) -> None:
        """Stop, and close files and connections."""
        self._client.close()

    def prepare(self) -> None:
        """Count every prompt by the model's rule, probe the endpoint, and find the examples that are too large.

        Raises:
            ReleaseError: an example or an image cannot be read, nothing is chosen, or the file of predictions has lines
                that were made otherwise.
            EndpointError: the endpoint cannot be called.

        """
        options = self.options
        read_lines(self.out, self._like)  # before any call
        self.planned, self.without_context, self._unchanged = [], 0, 0
        probed, seen = defaultdict[str, list[Prompt]](list), Counter[str]()
        stride = defaultdict[str, int](lambda: 1)
        for example, prompt in self._prompts():
            if prompt is None:
                self.without_context += 1
                continue
            name, cost = example.dataset, None
            for path in prompt.images:
                self._size(path)  # an image that cannot be read is found before the first call, also without a rule
            if self._rule:
                if name not in self._costs:
                    own, counter = self.release.dataset(name), None
                    if self._tokenizer:
                        counter = CrossModalCounter(self._tokenizer, self._rule)
                    elif isinstance(own.rule, VisionRule) and own.rule.name == self._rule.name:
                        counter = own.counter  # the release was counted for this model
                    count_text = own.counter.text.count
                    self._costs[name] = Costs(self._rule, counter, count_text, self._size)
                cost = self._costs[name].of(prompt, None if options.context else example.tokens.text)
            self.planned.append(Planned(name, example.file, example.name, self._limit(example), cost))
            self._unchanged += bool(options.context) and prompt == example.prompt
            if seen[name] % stride[name] == 0:
                probed[name].append(prompt)
            seen[name] += 1
            if len(probed[name]) > _PROBED:  # keep some, spread evenly over all prompts
                probed[name], stride[name] = probed[name][::2], 2 * stride[name]
        if not self.planned:
            what = f"has the context {options.context!r}" if self.without_context else "is chosen"
            raise ReleaseError(f"{self.release.path.name}: no example {what}")
        self._probe(probed)
        self.window = options.window or self._client.window(options.model)
        self.oversized = [oversized for plan in self.planned if (oversized := self._oversized(plan))]

    def _probe(self, prompts: Mapping[str, Sequence[Prompt]]) -> None:
        """Find out how the endpoint counts.

        It is asked anew, since it may have changed; but if the answers to all examples are on file, the earlier probes
        are taken, so that the predictions can be written without the endpoint.
        """
        if self._rule is None:
            return
        is_done = not self.options.is_fresh and all(self._client.knows(call) for _, call in self._calls())
        failed: list[str] = []

        @cache
        def ask(prompt: Prompt) -> int | None:
            answer = self._client.ask(self._call(prompt, 1), is_fresh=not is_done)
            if isinstance(answer, Failed):
                failed.append(f"a probe of the endpoint failed: {answer.why}")
                return None
            return prompt_tokens(answer.usage)

        self.calibrations, notes = calibrate(ask, self._costs, prompts)
        self.notes = [*dict.fromkeys(failed), *(note for note in notes if note != NO_USAGE or not failed)]

    def expected(self, plan: Planned) -> int | None:
        """Return the prompt tokens that the endpoint should count; None if nothing is known about them."""
        calibration = self.calibrations.get(plan.dataset)
        return calibration.tokens(plan.cost) if calibration and plan.cost else None

    def _oversized(self, plan: Planned) -> Oversized | None:
        """Return why the model probably cannot take an example; None if it can, or if that is not known."""
        if plan.cost is None:
            return None
        most = self.options.max_images or (self._rule.max_images if self._rule else None)
        if most is not None and len(plan.cost.images) > most:
            return Oversized(plan.name, "image-limit", len(plan.cost.images), most)
        tokens, window = self.expected(plan), self.window
        whole = (sum(plan.cost.images) + plan.cost.text if tokens is None else tokens) + plan.max_tokens
        return Oversized(plan.name, "context-length", whole, window) if window and whole > window else None

    def ask(self, progress: Progress) -> RunResult:
        """Ask the model about the chosen examples, and write its predictions to the file.

        Lines of an earlier file about other examples are kept.

        Raises:
            ReleaseError: an example cannot be made into messages, or the file of predictions was changed meanwhile.
            BuildError: another run is writing the file of predictions.
            EndpointError: the endpoint stopped answering.

        """
        lines: list[PredictionLine] = []
        asked: set[tuple[object, ...]] = set()
        failed = defaultdict[str, list[str]](list)
        paid = defaultdict[str, list[tuple[int, Paid, int]]](list)
        """For each file, the calls that the endpoint counted: index of the line, call, cached tokens."""
        datasets = {plan.file: plan.dataset for plan in self.planned}
        for plan, line, answer in self._answers(progress):
            asked.add(line.place)
            if isinstance(answer, Failed):
                failed[answer.name or UNUSABLE].append(f"{plan.name}: {answer.why}")
                continue
            if isinstance(answer, str):
                lines.append(line.model_copy(update={"skipped": answer}))
                continue
            expected, usage = self.expected(plan), prompt_tokens(answer.usage)
            if expected is not None and plan.cost is not None and usage is not None:
                name = plan.name if line.sample is None else f"{plan.name}, sample {line.sample}"
                # of an answer that was counted with its cached tokens already, none are left to add
                cached = answer.usage.get("cached_tokens", 0) if usage == answer.usage.get("prompt_tokens") else 0
                paid[plan.file].append((len(lines), Paid(name, plan.cost, expected, usage), cached))
            known = {"prediction": answer.text, "expected_tokens": expected}
            lines.append(line.model_copy(update={**answer.model_dump(exclude={"text"}), **known}))

        counts = [(call.usage, cached, call.expected) for calls in paid.values() for _, call, cached in calls]
        adds_cached = leaves_cached_out(counts)
        checked = []
        for file, calls in paid.items():
            counted = [replace(call, usage=call.usage + cached * adds_cached) for _, call, cached in calls]
            checked.append(receipts(file, counted, self.calibrations[datasets[file]]))
            faults = {off.name: off.fault for off in checked[-1].off}
            for index, call, _ in calls:
                if fault := faults.get(call.name):
                    lines[index] = lines[index].model_copy(update={"receipt": fault})

        replaced = {line.place for line in lines} | (asked if self.options.is_fresh else set())
        with file_lock(self.out.with_name(f".{self.out.name}.lock"), str(self.out), patience=_PATIENCE):
            earlier = read_lines(self.out, self._like)  # again: another run may have added lines
            write_predictions(self.out, [*(line for line in earlier if line.place not in replaced), *lines])
        answered = [line for line in lines if line.prediction is not None]
        return RunResult(
            out=self.out,
            model=self.options.model,
            examples=len(self.planned),
            answers=len(answered),
            skipped=dict(Counter(line.skipped for line in lines if line.skipped)),
            without_context=self.without_context,
            expected_tokens=sum(line.expected_tokens or 0 for line in lines),
            oversized=tuple(self.oversized),
            failures=tuple(
                Failure(kind, len(names), names[0], REFUSALS[kind].advice if kind in REFUSALS else _SEE_REPLY)
                for kind, names in sorted(failed.items(), key=lambda item: -len(item[1]))
            ),
            receipts=tuple(checked),
            finish_reasons=dict(Counter(line.finish_reason or "not given" for line in answered)),
            shrunk=len(self._urls.shrunk),
            usage=self._client.usage(),
            notes=(*self.notes, *self._notes(answered)),
        )

    def _answers(self, progress: Progress) -> Iterator[tuple[Planned, PredictionLine, ChatAnswer | Failed | str]]:
        """Yield each example and sample with the answer, the failure, or the reason why it is skipped."""
        oversized = {each.name: each.reason for each in self.oversized} if self.options.skip_oversized else {}
        ahead = self._client.settings.concurrency * _AHEAD
        waiting: deque[tuple[Planned, PredictionLine, Future[ChatAnswer | Failed] | str]] = deque()
        samples = self.options.samples
        with (
            threads(self._client.settings.concurrency, [self._client.stop]) as pool,
            progress.telling("calls", len(self.planned) * samples) as tell,
        ):

            def first() -> tuple[Planned, PredictionLine, ChatAnswer | Failed | str]:
                plan, line, future = waiting.popleft()
                answer = future if isinstance(future, str) else future.result()
                if isinstance(answer, Failed) and self.options.skip_oversized and answer.name in SKIPS:
                    answer = answer.name
                usage = self._client.usage()
                cost = f", cost {usage['cost']:,.2f}" if "cost" in usage else ""
                tell(f"{usage['input_tokens'] + usage['output_tokens']:,.0f} tokens{cost}")
                return plan, line, answer

            for index, (line, call) in enumerate(self._calls()):
                plan = self.planned[index // samples]
                future = oversized.get(plan.name) or pool.submit(self._client.ask, call, is_fresh=self.options.is_fresh)
                waiting.append((plan, line, future))
                while len(waiting) > ahead:
                    yield first()
            while waiting:
                yield first()

    def _notes(self, answered: Sequence[PredictionLine]) -> Iterator[str]:
        if refused := sorted(self._client.left_out(self.options.model)):
            yield f"the endpoint refuses the options {', '.join(refused)}; they were not sent"
        if self._unchanged:
            context = self.options.context
            yield f"{self._unchanged:,} prompts are the same with the context {context!r} as without it"
        if empty := [line for line in answered if not (line.prediction or "").strip()]:  # though nothing failed
            reasons = Counter(line.finish_reason or "not given" for line in empty)
            ended = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
            apart = sum(bool(line.reasoning.strip()) for line in empty)
            where = f"; {apart:,} of them have text in `reasoning` alone, which is not scored" if apart else ""
            yield f"{len(empty):,} answers are empty and score nothing (finish reason: {ended}){where}"

    @property
    def _like(self) -> PredictionLine:
        """A line with what all lines of the run have in common."""
        model, context, settings = self.options.model, self.options.context, self.options.settings
        return PredictionLine(file="", id="", model=model, context=context, settings=settings, lock=self._lock)

    def _prompts(self) -> Iterator[tuple[Example, Prompt | None]]:
        """Yield the chosen examples in the order of the release, with their prompts in the chosen context."""
        for cell in self._cells:
            yield from contextual(self.release, cell.dataset, self.options.context, cell.examples())

    def _calls(self) -> Iterator[tuple[PredictionLine, Call[ChatAnswer]]]:
        """Yield the calls of the plan, in its order: for each example and sample, the fields of its line that are known
        before the call, and the call.
        """
        for example, prompt in self._prompts():
            if prompt is None:
                continue
            sent = self._sent(prompt)
            known = {**example.key, "digest": example.digest, "sent": sent}
            line = PredictionLine.model_validate({**self._like.model_dump(), **known})
            for number in range(self.options.samples):
                sample = number if self.options.temperature else None
                call = self._call(prompt, self._limit(example), sent, number)
                yield line.model_copy(update={"sample": sample}), call

    def _call(self, prompt: Prompt, max_tokens: int, sent: str = "", sample: int = 0) -> Call[ChatAnswer]:
        """Return the call for a prompt. Any reply is an answer, also a refusal, an empty one, or one that was cut off;
        the endpoint's reason is kept with it.
        """
        model, temperature, system = self.options.model, self.options.temperature, self.options.system
        return Call(
            digest("chat", model, sent or self._sent(prompt), max_tokens, temperature, sample).hex(),
            model,
            lambda _: messages(prompt, self._urls, system),
            {"max_tokens": max_tokens, "temperature": temperature, **({"seed": sample} if temperature else {})},
            ChatAnswer,
            lambda reply: ChatAnswer(
                text=reply.words,
                reasoning=reply.reasoning,
                finish_reason=reply.finish_reason,
                usage=reply.usage,
                seconds=reply.seconds,
            ),
            reads_cut_off=True,
            reads_refusals=True,
        )

    def _sent(self, prompt: Prompt) -> str:
        """Return a digest of the messages that are sent, with the bytes of their images."""
        shown, system = example_digest(prompt, None, self.release.lock), self.options.system
        return digest("sent", shown, self.options.max_pixels or 0, "" if system is None else f"system {system}").hex()

    def _limit(self, example: Example) -> int:
        return self.options.max_tokens or example.reserve or 256

    def _size(self, path: str) -> Size:
        """Return the size in which an image is sent."""
        size, most = self._image_sizes[path], self.options.max_pixels
        return size if most is None or size[0] * size[1] <= most else fitting_size(size, most)


def _counting(options: RunOptions) -> tuple[VisionRule | None, TextTokenizer | None]:
    """Return the rule and the tokenizer that count for a model; none for `--count-as none`."""
    if options.count_as == NO_RULE:
        return None, None
    try:
        rule = vision_rule(options.count_as or options.model)
    except TokenizationError as error:
        if options.count_as:
            raise ReleaseError(f"--count-as {options.count_as}: {error}") from error
        raise ReleaseError(
            f"model {options.model!r}: its name does not say how it counts images; give --count-as with the name of a "
            f"model that counts alike, or --count-as {NO_RULE} to run without receipts"
        ) from error
    return rule, Model(rule.name, tokenizer=options.text_tokenizer).text
