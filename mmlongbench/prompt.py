"""The prompt: a finished sequence of texts and image paths in reading order, nothing else.

Sizes and hashes of images are looked up elsewhere, so a prompt rebuilt from a released record equals the packed one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

MARKER = "<image>"
"""The marker that stands for an image in the public format; a loader splits the text at it."""
ESCAPED_MARKER = "< image >"


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, given by its path below `mmlb_image/`."""

    path: str
    """The path below `mmlb_image/`, with `/` between its parts."""


Part: TypeAlias = str | Image


@dataclass(frozen=True, slots=True)
class Prompt:
    """Texts and images in reading order; neighbouring texts are one text, so equal prompts compare equal."""

    parts: tuple[Part, ...]
    """Texts and images in reading order."""

    @classmethod
    def of(cls, parts: Iterable[Part]) -> "Prompt":
        """Join neighbouring texts and leave out empty ones.

        >>> Prompt.of(["a", "", "b", Image("x.jpg")]).parts
        ('ab', Image(path='x.jpg'))
        """
        joined: list[Part] = []
        run: list[str] = []
        for part in parts:
            if isinstance(part, str):
                run.append(part)
                continue
            _close(run, joined)
            joined.append(part)
        _close(run, joined)
        return cls(tuple(joined))

    @property
    def text(self) -> str:
        """Return all text, concatenated, without markers; text tokens are counted on it."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def images(self) -> tuple[str, ...]:
        """Return the paths of the images in order, below `mmlb_image/`."""
        return tuple(part.path for part in self.parts if isinstance(part, Image))

    def rendered(self) -> str:
        """Return the prompt as a public loader sends it, with a marker for each image."""
        return "".join(part if isinstance(part, str) else MARKER for part in self.parts)


def escape_markers(text: str) -> str:
    """Return source text in the form in which it is released and counted: literal image markers get blanks inside.

    >>> escape_markers("the tag <image>")
    'the tag < image >'
    """
    return text.replace(MARKER, ESCAPED_MARKER)


def _close(run: list[str], joined: list[Part]) -> None:
    text = "".join(run)
    run.clear()
    if text:
        joined.append(text)
