"""The kit that all pages are made with: one Jinja2 environment, which escapes everything, and the sections of a page.

The templates are in `templates/`, stylesheets and scripts in `assets/`, both in this package.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from mmlongbench.io.files import write_whole
from mmlongbench.table import text_of

_PACKAGE = "mmlongbench.web"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a page, with its entry in the contents.

    The body of the section is the block of the page's template that has the name of the anchor.
    """

    anchor: str
    name: str
    parts: Sequence[tuple[str, str]] = ()
    """The smaller headings in the section, as the contents list them: (name, text after the name)."""


def points(score: float) -> str:
    """Return a score from 0 to 1 as points from 0 to 100, like the paper's tables.

    >>> points(0.62491)
    '62.5'
    """
    return f"{100 * score:.1f}"


def whole_points(difference: float) -> str:
    """Return a difference of scores in whole points, with a minus sign as wide as a digit.

    >>> whole_points(-0.173), whole_points(-0.001)
    ('−17', '0')
    """
    return f"{round(100 * difference)}".replace("-", "−")


@cache
def environment() -> Environment:
    """Return the environment of all templates.

    It escapes every value, and raises an error if a template uses a name that has no value.
    """
    made = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"grouped": "{:,}".format, "fixed": lambda number, digits: f"{number:.{digits}f}"}
    made.filters |= {"points": points, "text_of": text_of}
    made.globals["asset"] = asset
    return made


def asset(name: str) -> str:
    """Return the text of a file in `assets/`, to put it into a page."""
    return (files(_PACKAGE) / "assets" / name).read_text("utf-8")


def render(template: str, **values: object) -> Iterator[str]:
    """Yield a page in pieces, a section at a time."""
    return environment().get_template(template).generate(**values)


def html(macro: str, *values: object) -> str:
    """Return what a macro of `cells.html` makes of values, to put it into a cell of a table; values are escaped."""
    text: str = getattr(environment().get_template("cells.html").module, macro)(*values)
    return text


def write_page(path: Path, pieces: Iterable[str]) -> None:
    """Write a page to a file that appears complete or not at all; characters that UTF-8 cannot hold become escapes."""
    write_whole(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces))
