"""Prompts with named places, written as for `str.format`.

`str.format` itself is not used, because a template may come from a stranger: it would read attributes
(`{text.__class__}`) and obey widths (`{text:>999999999}`). Here a place is only a name, and doubled braces stand for
braces.
"""

import string
from collections.abc import Collection
from dataclasses import dataclass

MAX_REPEATS = 10
"""How often one place may occur in a template."""


class TemplateError(ValueError):
    """A text is not a template with the expected places."""


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with places to be filled in."""

    pieces: tuple[tuple[str, str], ...]
    """Pairs of a text and the name of the place after it; the name is empty if no place follows."""

    def filled(self, **texts: str) -> str:
        """Return the prompt with each place filled in."""
        return "".join(text + (texts[place] if place else "") for text, place in self.pieces)


def template(text: str, places: Collection[str]) -> Template:
    """Return the template of a text that has exactly these places, each at least once.

    Raises:
        TemplateError: there is a single brace, or a place is missing, unknown, has an attribute, width or conversion,
            or occurs too often.

    >>> template('Rate "{text}" as {{"score": 1}}.', ["text"]).filled(text="{a}")
    'Rate "{a}" as {"score": 1}.'

    """
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise TemplateError(f"has braces that are not those of a format string ({error})") from error
    pieces, counts = [], dict.fromkeys(places, 0)
    for literal, name, width, conversion in parsed:
        if name is not None and (name not in counts or width or conversion):
            expected = ", ".join(f"{{{place}}}" for place in places) or "none"
            raise TemplateError(f"has the place {{{name[:40]}}}, expected {expected}, without widths or conversions")
        if name is not None:
            counts[name] += 1
        pieces.append((literal, name or ""))
    for place, count in counts.items():
        if not 0 < count <= MAX_REPEATS:
            raise TemplateError(f"has {{{place}}} {count} times, expected once, and at most {MAX_REPEATS} times")
    return Template(tuple(pieces))


def plain(text: str) -> Template:
    """Return a template for a text that is shown unchanged, with its braces."""
    return Template(((text, ""),))
