"""The model of a training mix: which shares of tasks and lengths, and how many tokens. It stands under the key `mix` of
a file, which may be a manifest. What a release holds is not known here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from mmlongbench.errors import ManifestError
from mmlongbench.io.files import read_regular
from mmlongbench.io.yaml_text import MAX_BYTES, load_yaml
from mmlongbench.lengths import parse_length
from mmlongbench.manifest.strict_model import explain

_SUM = 1e-3
"""How far the sum of shares may be from 1, so that thirds can be written with three digits."""
Measure: TypeAlias = Literal["tokens", "examples"]
"""What a share is a share of."""


def _length(value: object) -> int:
    try:
        return parse_length(value if isinstance(value, int) else str(value))
    except ManifestError as error:
        raise ValueError(str(error)) from error


def _by_length(value: object) -> object:
    """Return shares by length in tokens; keys are written as `8K`."""
    if not isinstance(value, Mapping):
        return value
    shares = {_length(length): share for length, share in value.items()}
    if len(shares) < len(value):
        raise ValueError("the same length occurs twice")
    return dict(sorted(shares.items()))


_Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
_Tasks = Annotated[dict[str, _Share], Field(min_length=1)]
_Lengths = Annotated[dict[int, _Share], BeforeValidator(_by_length), Field(min_length=1)]


class MixSpec(BaseModel):
    """A training mix. All tokens are those of prompts, as the release counts them."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    tokens: Annotated[
        int,
        BeforeValidator(lambda value: _length(value) if isinstance(value, str) else value),
        Field(gt=0, strict=True),
    ]
    """The token budget: the tokens of all prompts together; a text such as `512K` counts in 1,024."""
    tokens_by_task: _Tasks | None = None
    """Which share of the tokens each task has. A task is a dataset, or a family: a folder such as `vrag`."""
    examples_by_task: _Tasks | None = None
    """Which share of the examples each task has, instead of `tokens_by_task`."""
    tokens_by_length: _Lengths | None = None
    """The histogram of lengths: which share of the tokens is in examples of each length."""
    examples_by_length: _Lengths | None = None
    """Which share of the examples has each length, instead of `tokens_by_length`."""
    once: Literal["question", "example"] = "question"
    """What is in the mix at most once: each `question`, at one length and placement; or each `example`, so that a
    question may be there at several lengths and placements."""
    seed: int = 42
    """The seed of the draws."""
    disjoint_from: tuple[str, ...] = ()
    """Evaluation releases with which nothing may be shared: their folders, from the folder of this file."""

    @model_validator(mode="after")
    def _check(self) -> "MixSpec":
        for kind in ("task", "length"):
            names = (f"tokens_by_{kind}", f"examples_by_{kind}")
            given = {name: shares for name in names if (shares := getattr(self, name)) is not None}
            if len(given) > 1:
                raise ValueError(f"give tokens_by_{kind} or examples_by_{kind}, not both")
            for name, shares in given.items():
                if abs(sum(shares.values()) - 1) > _SUM:
                    raise ValueError(f"{name}: expected shares whose sum is 1, found {sum(shares.values()):.4g}")
        return self

    @property
    def tasks(self) -> tuple[Measure, Mapping[str, float]] | None:
        """Return what the shares of tasks are shares of, and the shares; None: the mix does not say."""
        if self.tokens_by_task is not None:
            return "tokens", self.tokens_by_task
        return None if self.examples_by_task is None else ("examples", self.examples_by_task)

    @property
    def lengths(self) -> tuple[Measure, Mapping[int, float]] | None:
        """Return what the shares of lengths are shares of, and the shares by length; None: the mix does not say."""
        if self.tokens_by_length is not None:
            return "tokens", self.tokens_by_length
        return None if self.examples_by_length is None else ("examples", self.examples_by_length)


def read_mix(path: Path) -> MixSpec:
    """Read the mix of a file. Folders of `disjoint_from` that are relative are returned from the folder of the file.

    Raises:
        ManifestError: the file cannot be read, has no mix, or a key or value is wrong.

    """
    try:
        content = load_yaml(read_regular(path, MAX_BYTES), twice=False)
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    if not isinstance(content, dict) or "mix" not in content:
        raise ManifestError(f"{path}: expected a mapping with the key 'mix', such as 'mix: {{tokens: 512K}}'")
    spec = parse_mix(content["mix"], str(path))
    return spec.model_copy(update={"disjoint_from": tuple(str(path.parent / name) for name in spec.disjoint_from)})


def parse_mix(content: Any, where: str) -> MixSpec:  # noqa: ANN401  (YAML)
    try:
        return MixSpec.model_validate(content)
    except ValidationError as error:
        raise ManifestError(explain(error, f"{where}: mix", MixSpec, [])) from error
