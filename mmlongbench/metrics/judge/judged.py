"""The base of all metrics with judges: profiles, the client, and the forms of calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mmlongbench.draws import digest
from mmlongbench.metrics.judge.prompts import FILES, JudgeError, Places, PublicPrompts, own_prompt, public_prompts
from mmlongbench.metrics.judge.verdicts import V
from mmlongbench.models.calls import MAX_READ, Call, Picture, json_call, user_message
from mmlongbench.models.client import Backoff, Failed, ModelClient
from mmlongbench.models.replies import Reply, Unusable
from mmlongbench.models.settings import EndpointSettings
from mmlongbench.task.metric import Judge, Metric, Profile, Score, ScoringInput, Settings

MAX_CHARACTERS = 200_000
"""The maximum characters of a text that is shown whole; about 50,000 tokens."""


class Judged(Metric):
    """A metric that uses judges; `close` closes the cache and the connections.

    Raises:
        JudgeError: no judge is named, or a judge cannot be called; or `official` is requested, but the public code's
            prompts are missing.

    """

    places: ClassVar[Places] = {}
    """The prompts of the public code that `official` needs."""
    prompts_file: ClassVar[str] = ""
    """The file in which the public code keeps these prompts."""
    public_model: ClassVar[str] = ""
    """The judge of the public code; it is used under `official` if no model is named."""
    is_committee: ClassVar[bool] = False
    """Whether all judges are asked, not the first one only."""

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Read the public code's prompts if they are given, and open the client."""
        judge = settings.judge
        if judge is None:
            raise JudgeError(f"{self.name}: no judge is named; name one with --judge-url and --judge-model")
        self.public: PublicPrompts | None = None
        """The public code's prompts, if the user gives them and requests no other profile."""
        if self.places and settings.profile in (None, "official"):
            if settings.judge_prompts:
                self.public = public_prompts(settings.judge_prompts, self.name, self.places)
            elif settings.profile == "official":
                raise JudgeError(
                    f"--profile official: {self.name} needs the prompts of the public code, which are no part of this "
                    f"project; give --judge-prompts the public code's {self.prompts_file}, or the folder of its "
                    f"checkout (with {' and '.join(FILES)}); without --profile official, its scores are `ours`"
                )
        super().__init__(settings)
        if self.public and self.public_model and not judge.models:
            judge = replace(judge, models=(self.public_model,))
        self.judge = judge
        self.client = judge_client(judge, backoff)
        asked = judge.models if self.is_committee else judge.models[:1]
        wording = () if self.public else ("own wording",)
        self.choices = (*wording, f"judge{'s' if len(asked) > 1 else ''} {', '.join(asked)}")
        self.concurrency = judge.concurrency
        self.model = judge.models[0]
        """The judge, or the first of several."""
        if self.public and self.public_model not in ("", self.model):
            other = f"the public code asks {self.public_model}, this run {self.model}"
            self.notes = (f"{other}; scores of other judges may differ",)

    def offered(self) -> Mapping[Profile, str]:
        """Return the profiles; `official` is left out if it needs the public code's prompts and they are not given."""
        if not self.places:
            return self.profiles
        profiles = dict(self.profiles)
        code = profiles.pop("official")
        return profiles | {"official": f"{code}, prompts {self.public.source}"} if self.public else profiles

    def full_answer(self, asked: ScoringInput) -> None:
        """Return None: the judge decides."""

    def usage(self) -> Mapping[str, float]:
        """Return how many calls, tokens and failures there were so far."""
        return self.client.usage()

    def stop(self) -> None:
        """Make no more calls; threads that wait for an answer stop waiting soon."""
        self.client.stop()

    def close(self) -> None:
        """Close the cache and the connections."""
        self.client.close()


def judge_client(judge: Judge, backoff: Backoff | None = None) -> ModelClient:
    """Return the client of judges; all its errors are a `JudgeError`, and name options that start with `--judge-`."""
    models, samples = judge.models, judge.samples
    if not models or not all(model.strip() for model in models):
        raise JudgeError("--judge-model: expected the name of a model that the endpoint serves, found none")
    if len(set(models)) < len(models):
        raise JudgeError(
            f"--judge-model: {', '.join(models)}: one is named twice, and its grades would count twice; name each "
            "once, and ask it more often with --judge-samples"
        )
    if samples is not None and samples < 1:
        raise JudgeError(f"--judge-samples: expected a number above 0, found {samples}")
    settings = EndpointSettings(
        judge.url, judge.cache, judge.concurrency, judge.timeout, judge.attempts, judge.prices, judge.is_dry
    )
    return ModelClient(settings, backoff, JudgeError)


def unscored(failed: Failed) -> Score:
    """Return the score of an example whose judge gave no usable answer."""
    return Score(None, failure=failed.why)


def too_long(name: str, texts: Sequence[str]) -> Failed:
    """Return the failure that some texts are too long for a judge; `name` says what they are."""
    return Failed(f"too long to be judged: {len(texts):,} {name}, {sum(map(len, texts)):,} characters")


def verdict_call(
    model: str,
    wording: str,
    material: str,
    form: type[V],
    pictures: Sequence[Picture] = (),
    sample: int = 0,
    temperature: float = 0.0,
) -> Call[V]:
    """Return a question to a judge whose reply is a JSON object: an own wording, and the fenced texts to judge."""
    instruction = f"{own_prompt(wording)()}\n\n{own_prompt('material')()}"
    return json_call(
        model, instruction, material, form, kind="judge", pictures=pictures, sample=sample, temperature=temperature
    )


@dataclass(frozen=True, slots=True)
class Manner:
    """How a judge is asked by a prompt, and its reply in words is read."""

    temperature: float | None
    """The temperature; None: none is sent, and the endpoint uses its default."""
    max_tokens: int
    attempts: int | None = None
    """How often the judge is asked, at most, until a reply is usable; None: as often as the judge's settings say."""
    is_literal: bool = False
    """Whether to ask exactly as the public code does: the prompt alone, without a seed, and without a note on what
    was wrong with the last reply. Any reply is read, even one that was cut off."""


def prompt_call(
    model: str,
    prompt: str,
    rule: str,
    form: type[V],
    find: Callable[[str], V],
    manner: Manner,
    pictures: Sequence[Picture] = (),
    sample: int = 0,
) -> Call[V]:
    """Return a question to a judge as a single user message, pictures first, whose reply is text.

    `rule` is the name of the rule that reads the reply, and a part of the key; `find` is the rule itself, which returns
    the verdict or raises `Unusable`.
    """

    def read(reply: Reply) -> V:
        if len(reply.words) > MAX_READ:
            raise Unusable(f"a reply of {len(reply.words):,} characters, {MAX_READ:,} are read")
        return find(reply.words)

    temperature = manner.temperature
    asked = (model, prompt, sample, "unset" if temperature is None else temperature, manner.max_tokens)
    return Call(
        digest("judge prompt", rule, *asked, *(picture.sha256 for picture in pictures)).hex(),
        model,
        lambda note: [user_message(f"{prompt}\n\n{note}" if note and not manner.is_literal else prompt, pictures)],
        {
            **({} if temperature is None else {"temperature": temperature}),
            "max_completion_tokens": manner.max_tokens,
            **({"seed": sample} if temperature and not manner.is_literal else {}),
        },
        form,
        read,
        "Answer in the form that is asked for above.",
        manner.attempts,
        reads_cut_off=manner.is_literal,
    )
