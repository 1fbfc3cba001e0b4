"""The prompt: a finished sequence of texts and image paths in reading order, in turns.

Sizes and hashes of images are looked up elsewhere, so a prompt rebuilt from a released record equals the packed one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from mmlongbench.errors import DraftError
from tokenization import Turns
from tokenization.counting import adjacent

MARKER = "<image>"
"""The marker that stands for an image in the public format; a loader splits the text at it."""
TEMPLATE = 5
"""The tokens that the chat templates of Qwen-VL, Llama 3 and Gemma 3 put around what one speaker says. They are not
counted, but stay in the reserve."""
CONTROL_TOKENS: dict[str, str] = {
    "any loader": r"<(?:image|video|audio)>",
    "Qwen-VL, Llama, Phi, GLM-V, Kimi-VL, DeepSeek-VL, Command, GPT": r"<[|｜][^\s<>|｜]{1,40}[|｜]>",
    "Llama": r"</?s>|<unk>",
    "Mistral": r"\[/?(?:INST|SYSTEM_PROMPT|MODEL_SETTINGS|TOOL_RESULTS|TOOL_CALLS|AVAILABLE_TOOLS|THINK)\]",
    "Mistral, Voxtral": r"\[(?:ARGS|CALL_ID|(?:BEGIN_)?AUDIO)\]",
    "Llama 2": r"<</?SYS>>",
    "Qwen3, GLM": r"</?(?:think|tool_call|tool_response)>",
    "Gemma 4": r"<\|(?:tool|tool_call|tool_response|turn|image|audio|channel|think)>"
    r"|<(?:tool|tool_call|tool_response|turn|image|audio|channel)\|>",
    "Pixtral, Mistral": r"\[IMG(?:_BREAK|_END)?\]",
    "Gemma": r"<(?:start|end)_of_(?:image|turn|audio)>|<(?:image|audio)_soft_token>|<(?:bos|eos|pad|mask)>",
    "InternVL, Ovis": r"</?(?:img|ref|box|quad)>|<IMG_CONTEXT>|<(?:ovis|image_atom|image_pad)[a-z_]*>",
    "MiniCPM-V": r"</image>|</?(?:slice|image_id|unit|point)>",
    "Idefics, SmolVLM": r"<fake_token_around_image>|<end_of_utterance>|<global-img>|<row_\d+_col_\d+>",
    "Molmo": r"<im_(?:patch|start|end|col|low)>",
    "GLM": r"\[gMASK\]|<sop>|<eop>",
}
"""What models and loaders read as a command, a turn or an image if a text holds it: patterns by family.

A literal one in a page or a question would bind the next image to the wrong place, or end a turn, with the token count
unchanged. Sources: the special tokens of the tokenizers that the families publish.
"""
# without groups around them, so that `re` sees the characters with which all alternatives begin, and skips to these
_CONTROL_TOKENS = re.compile("|".join(CONTROL_TOKENS.values()))


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, given by its path below `mmlb_image/`."""

    path: str
    """The path below `mmlb_image/`, with `/` between its parts."""


Part: TypeAlias = str | Image
Needle: TypeAlias = Part | tuple[Part, ...]
"""What holds an answer, as the prompt shows it: one text, one image, or several of them one after another."""


Speaker: TypeAlias = Literal["user", "assistant"]
"""Who says a turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says before the other one speaks."""

    role: Speaker
    parts: tuple[Part, ...]
    """Texts and images in reading order; neighbouring texts are one text."""


Shown: TypeAlias = Sequence[Part | Turn]
"""A unit as a prompt shows it: its texts and images, or its turns."""


@dataclass(frozen=True, slots=True)
class Outline:
    """How a prompt is made of an instruction, the units of its context, and a question."""

    before: tuple[Part, ...]
    """The instruction."""
    units: tuple[tuple[Part, ...], ...]
    """The parts of each unit, in reading order; of a unit of turns, those of all its turns, with the separator between
    two turns of one speaker."""
    separator: str
    """The text between two units of one turn."""
    after: tuple[Part, ...]
    """The question."""
    turns: tuple[tuple[Turn, ...], ...] = ()
    """The turns of each unit; empty if no unit has turns, so that the prompt has one."""

    @property
    def shown(self) -> Sequence[Shown]:
        """The units as `Prompt.of_units` takes them."""
        return self.turns or self.units

    def prompt(self, units: Iterable[Shown]) -> "Prompt":
        """Return the prompt with other units."""
        return Prompt.of_units(self.before, units, self.separator, self.after)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Texts and images in reading order, in turns; most tasks have one turn of the user. Equal prompts compare equal,
    however they were made.
    """

    turns: tuple[Turn, ...]
    """The turns in order; the last one is the user's."""
    outline: Outline | None = field(default=None, compare=False, repr=False)
    """How the prompt is made of units; None if its builder does not say."""

    @classmethod
    def of(cls, parts: Iterable[Part]) -> "Prompt":
        """Return a prompt of one turn; neighbouring texts are joined, and empty ones left out.

        >>> Prompt.of(["a", "", "b", Image("x.jpg")]).parts
        ('ab', Image(path='x.jpg'))
        """
        return cls((Turn("user", _joined(parts)),))

    @classmethod
    def of_turns(cls, turns: Iterable[tuple[Speaker, Iterable[Part]]]) -> "Prompt":
        """Return a prompt of several turns; within each, neighbouring texts are joined, and empty ones left out.

        >>> Prompt.of_turns([("user", ["a", "b"]), ("assistant", ["c"]), ("user", ["d"])]).parts
        ('ab', 'c', 'd')
        """
        return cls(tuple(Turn(role, _joined(parts)) for role, parts in turns))

    @classmethod
    def of_units(
        cls, before: Sequence[Part], units: Iterable[Shown], separator: str, after: Sequence[Part]
    ) -> "Prompt":
        """Return a prompt: an instruction, units with a separator between each two, and a question.

        If a unit has turns, the prompt is a conversation. The instruction opens the first turn, the question is the
        user's, and so is a unit without turns. Neighbouring turns of one speaker are one turn, with the separator
        between what they say.

        >>> Prompt.of_units(["Look. "], [["1:", Image("x.jpg")], ["2:"]], ", ", [" Well?"]).parts
        ('Look. 1:', Image(path='x.jpg'), ', 2: Well?')
        >>> chat = [Turn("user", ("Hello.",)), Turn("assistant", ("Hi.",))]
        >>> Prompt.of_units(["Talk. "], [chat], ", ", ["Well?"]).texts
        ('Talk. Hello.', 'Hi.', 'Well?')
        """
        shown = [tuple(unit) for unit in units]
        if Turn not in set(map(type, chain.from_iterable(shown))):
            parts: tuple[tuple[Part, ...], ...] = tuple(shown)  # type: ignore[arg-type]  # no unit has a turn
            outline = Outline(tuple(before), parts, separator, tuple(after))
            between = [*chain.from_iterable([(*unit, separator) for unit in parts])][:-1]
            return cls((Turn("user", _joined((*outline.before, *between, *outline.after))),), outline)
        turns = tuple(turns_of(unit) for unit in shown)
        said: list[tuple[Speaker, list[Part]]] = [("user", [*before])]
        is_opening = True
        question = (Turn("user", tuple(after)),) if after else ()
        for turn in (*(turn for unit in turns for turn in unit), *question):
            if turn.role != said[-1][0]:
                said.append((turn.role, [*turn.parts]))
            else:
                said[-1][1].extend(turn.parts if is_opening else (separator, *turn.parts))
            is_opening = False
        units_parts: list[tuple[Part, ...]] = []
        for unit in turns:
            joints = [(separator,) if turn.role == last.role else () for last, turn in pairwise(unit)]
            parts_of_turns = zip([(), *joints], unit, strict=True)
            units_parts.append(tuple(part for joint, turn in parts_of_turns for part in (*joint, *turn.parts)))
        outline = Outline(tuple(before), tuple(units_parts), separator, tuple(after), turns)
        return cls(tuple(Turn(role, joined) for role, each in said if (joined := _joined(each))), outline)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the texts and images of all turns in reading order."""
        if len(self.turns) == 1:
            return self.turns[0].parts
        return tuple(part for turn in self.turns for part in turn.parts)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the text of each turn, concatenated, without markers."""
        return tuple("".join(part for part in turn.parts if isinstance(part, str)) for turn in self.turns)

    @property
    def text(self) -> str:
        """Return all text, concatenated, without markers."""
        return "".join(part for part in self.parts if isinstance(part, str))

    def text_tokens(self, count: Callable[[str], int]) -> int:
        """Return the text tokens: the sum over the turns, since each is sent by itself, and no token is part of two."""
        return sum(map(count, self.texts))

    def sized(self, size: Callable[[str], tuple[int, int]]) -> Turns:
        """Return the turns as a counter takes them: an image is its (width, height), which `size` returns for a path.

        >>> Prompt.of(["a", Image("x.jpg")]).sized({"x.jpg": (640, 480)}.__getitem__)
        [('user', ['a', (640, 480)])]
        """
        return [
            (turn.role, [part if isinstance(part, str) else size(part.path) for part in turn.parts])
            for turn in self.turns
        ]

    @property
    def adjacent_images(self) -> int:
        """Return how many images directly follow another image of the same turn, without text in between."""
        return adjacent(self.sized(lambda _: (1, 1)))

    @property
    def images(self) -> tuple[str, ...]:
        """Return the paths of the images in order, below `mmlb_image/`."""
        return tuple(part.path for part in self.parts if isinstance(part, Image))

    def rendered(self) -> str:
        """Return the prompt as a public loader sends it, with a marker for each image."""
        return "".join(part if isinstance(part, str) else MARKER for part in self.parts)


def escape_markers(text: str) -> str:
    """Return source text in the form in which it is released and counted: what a model would read as a command, such as
    a literal image marker, gets blanks inside.

    >>> escape_markers("the tag <image>, then <|im_end|> and [IMG]")
    'the tag < image >, then < |im_end| > and [ IMG ]'
    """
    return _CONTROL_TOKENS.sub(lambda match: f"{match[0][0]} {match[0][1:-1]} {match[0][-1]}", text)


def commands_in(text: str) -> tuple[str, ...]:
    """Return what a model would read as a command in a text, each once, in order.

    >>> commands_in("a <|im_end|> b < |im_end| > [IMG]")
    ('<|im_end|>', '[IMG]')
    """
    return tuple(dict.fromkeys(match[0] for match in _CONTROL_TOKENS.finditer(text)))


def turns_of(unit: Iterable[Part | Turn]) -> tuple[Turn, ...]:
    """Return the turns of a unit; a unit without turns is one turn of the user."""
    shown = tuple(unit)
    turns = tuple(part for part in shown if isinstance(part, Turn))
    if turns and len(turns) < len(shown):
        raise DraftError("a unit has turns and other parts; give every text and every image of it to a turn")
    return turns or (Turn("user", tuple(part for part in shown if not isinstance(part, Turn))),)


def needle_parts(needle: Needle) -> tuple[Part, ...]:
    """Return the parts of a needle; neighbouring texts are one text.

    >>> needle_parts(("a", "b", Image("x.jpg")))
    ('ab', Image(path='x.jpg'))
    """
    return _joined(needle) if isinstance(needle, tuple) else (needle,)


def runs_of(wanted: Sequence[Part], parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """Yield where several parts stand one after another among others: (index of the first part, character in it). The
    first text may begin within a part, and the last one may end within a part.

    >>> list(runs_of(("b", Image("x.jpg"), "c"), ("ab", Image("x.jpg"), "cd")))
    [(0, 1)]
    """
    first, *between, last = wanted
    for index in range(len(parts) - len(wanted) + 1):
        begin, *middle, end = parts[index : index + len(wanted)]
        if middle != between or type(begin) is not type(first) or type(end) is not type(last):
            continue
        begins = begin.endswith(first) if isinstance(begin, str) and isinstance(first, str) else begin == first
        ends = end.startswith(last) if isinstance(end, str) and isinstance(last, str) else end == last
        if begins and ends:
            yield index, len(begin) - len(first) if isinstance(begin, str) and isinstance(first, str) else 0


def shows(parts: Iterable[Part], needle: Needle) -> bool:
    """Return whether parts show the whole of a needle.

    >>> shows(["Look: a", Image("x.jpg")], ("a", Image("x.jpg")))
    True
    """
    wanted, shown = needle_parts(needle), _joined(parts)
    if len(wanted) > 1:
        return any(True for _ in runs_of(wanted, shown))
    if not wanted or isinstance(wanted[0], Image):
        return bool(wanted) and wanted[0] in shown
    return wanted[0] in "".join(part for part in shown if isinstance(part, str))


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    joined: list[Part] = []
    run: list[str] = []
    parts = tuple(parts)
    if set(map(type, parts)) == {str}:
        return ("".join(parts),) if any(parts) else ()  # type: ignore[arg-type]  # all are texts
    for part in parts:
        if isinstance(part, str):
            run.append(part)
            continue
        if run and (text := "".join(run)):
            joined.append(text)
        run = []
        joined.append(part)
    if text := "".join(run):
        joined.append(text)
    return tuple(joined)
