"""The receipt of a mix, `mix.json`: what was asked and reached, with what it was compared, and the files."""

from pydantic import BaseModel, ConfigDict

from mmlongbench.manifest.mix import Measure, MixSpec

RECEIPT = "mix.json"
"""The file of the receipt."""
OVERLAPS = "overlaps.jsonl"
"""The file of what was left out because an evaluation release has it: an `Overlap` a line."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ShareReached(_Part):
    """A share of a mix."""

    kind: str
    """`task` or `length`."""
    name: str
    """The name of the task, or the length, such as `8K`."""
    measure: Measure
    """What the shares are shares of."""
    asked: float
    """The share that was asked, from 0 to 1."""
    reached: float
    """The share that the mix has."""
    examples: int
    """The examples of this task or length."""
    tokens: int
    """Their tokens."""


class CellTaken(_Part):
    """The examples of a dataset at a length."""

    dataset: str
    """The name of the dataset."""
    length: str
    """The length, such as `8K`."""
    examples: int
    """The number of examples."""
    tokens: int
    """The tokens of their prompts."""


class Sides(_Part):
    """How many different things were compared."""

    documents: int
    """Names of documents."""
    questions: int
    """Questions that have words."""
    pictures: int
    """Pictures, each compared by its bytes and by its looks."""
    passages: int
    """Texts of at least nine words."""
    blank_pictures: int
    """Pictures of one colour, which were not compared."""


class Compared(_Part):
    """A comparison with an evaluation release."""

    release: str
    """The name of its folder."""
    lock: str
    """The first digits of the hash of its lock."""
    shows: Sides
    """What it shows."""


class Disjoint(_Part):
    """The proof that a mix shares nothing with evaluation releases."""

    shows: Sides
    """What was compared of the examples that may be in the mix."""
    evaluations: tuple[Compared, ...]
    """With what it was compared."""
    rules: dict[str, str]
    """When two things count as the same, by kind."""
    examples_left_out: int
    """The examples that share something with an evaluation release; `overlaps.jsonl` lists them."""
    left_out_by_kind: dict[str, int]
    """How many of them share a document, a question, a picture or a passage; one may share several."""


class FileMade(_Part):
    """A file of the export."""

    bytes: int
    """The size in bytes."""
    sha256: str
    """The SHA-256 in hexadecimal."""


class MixReceipt(_Part):
    """What a mix is, and what it was made of. It has no time and no path of this machine."""

    lock: str
    """The first digits of the hash of the lock of the release."""
    mix: MixSpec
    """The mix as it was asked; of evaluation releases, the names of their folders."""
    tokens: int
    """The tokens of all prompts together, as the release counts them; answers are not in it."""
    examples: int
    """The number of examples."""
    shares: tuple[ShareReached, ...]
    """Each share that was asked."""
    cells: tuple[CellTaken, ...]
    """What was taken of each dataset at each length."""
    unanswered: int
    """The examples of these datasets and lengths that the release has no answer for."""
    digest: str
    """A hash of which examples are in the mix."""
    disjoint: Disjoint | None
    """The proof that it shares nothing with evaluation releases; None: it was not compared with any."""
    versions: dict[str, str]
    """The packages that made it."""
    files: dict[str, FileMade]
    """The files beside this one."""
