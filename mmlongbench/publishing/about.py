"""What a publisher says about a release: everything that a card needs and that cannot be read from the release itself.

A YAML file (`publish --about`) has it; every key may be left out, and what is left out is shown as missing.
"""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.io.yaml_text import MAX_BYTES, load_yaml
from mmlongbench.manifest.strict_model import explain


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _day(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime.date) else value


_Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class About(BaseModel):
    """What a publisher says about a release."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    title: str = ""
    """The title; empty: the name of the folder of the release."""
    description: str = ""
    """What the benchmark tests, in a few sentences."""
    authors: _Texts = ()
    """The names of persons or organisations."""
    contact: str = ""
    """Where to ask, report faults and request a takedown: an address or a page."""
    url: str = ""
    """The page of the benchmark."""
    paper: str = ""
    """The page of the paper."""
    code: str = ""
    """The page of the code that scores predictions, if it is not this package."""
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "1.0.0"
    """The version of the release, such as 1.0.0."""
    date: Annotated[str, BeforeValidator(_day), Field(pattern=r"^(\d{4}-\d\d-\d\d)?$")] = ""
    """The day of the publication, such as 2026-11-25."""
    keywords: _Texts = ("long-context", "vision-language", "benchmark")
    """The keywords."""
    languages: _Texts = ("en",)
    """The languages of the texts, as codes such as `en`."""
    tasks: _Texts = ("visual-question-answering",)
    """The task categories of the Hub."""
    citation: str = ""
    """How to cite it, as BibTeX."""
    use_cases: _Texts = ()
    """What it is for, and what it is not for."""
    limitations: _Texts = ()
    """Limitations that no audit finds."""
    biases: _Texts = ()
    """Which groups, languages or subjects are shown more or less than others."""
    sensitive: _Texts = ()
    """Which personal or sensitive information the sources contain."""
    social_impact: str = ""
    """The effects that its use may have."""
    synthetic: bool | None = None
    """Whether sources contain data that a model made; None: not said."""
    baselines: _Texts = ()
    """Scores to compare with: people, chance, models."""

    def missing(self) -> Iterator[str]:
        """Yield the keys without which metadata of the publication are incomplete."""
        wanted = (
            "description",
            "authors",
            "contact",
            "url",
            "date",
            "citation",
            "biases",
            "sensitive",
            "social_impact",
        )
        yield from (key for key in (*wanted, "use_cases") if not getattr(self, key))
        if self.synthetic is None:
            yield "synthetic"


def read_about(path: Path) -> About:
    """Read what a publisher says.

    Raises:
        ReleaseError: the file cannot be read, or has an unknown key or a value of another type.

    """
    try:
        data: Any = load_yaml(read_regular(path, MAX_BYTES), twice=False)
        return About.model_validate({} if data is None else data)
    except ValidationError as error:
        raise ReleaseError(explain(error, f"--about {path}", About, [])) from error
    except (OSError, ValueError) as error:
        raise ReleaseError(f"--about {path}: cannot be read: {error}") from error
