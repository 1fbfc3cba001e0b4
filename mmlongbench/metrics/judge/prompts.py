"""Prompts of judges: this project's own are templates in `wordings/`; the public code's are read from files of a user's
checkout, since they are no part of this project.
"""

import ast
import hashlib
import string
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mmlongbench.errors import ScoringError, SourceError
from mmlongbench.io.files import source_file
from mmlongbench.models.calls import encodable
from mmlongbench.models.settings import EndpointError

if TYPE_CHECKING:
    from jinja2 import Environment

FILES = ("scripts/eval_gpt4_summ.py", "utils_prompt.py")
"""The files in which a checkout of the public code keeps prompts of judges."""
MAX_BYTES = 256 * 1024
"""The maximum size of such a file; the public ones have 56 and 13 kilobytes."""
MAX_REPEATS = 10
"""How often one place may occur in a prompt of the public code."""

Places = Mapping[str, tuple[str, ...] | None]
"""By the name of each prompt, the names of the places to fill in, such as `question` for `{question}`; None if the
prompt is used unchanged."""
Fill = Callable[..., str]
"""Returns a prompt with its places filled in, which are given by name."""


class JudgeError(EndpointError, ScoringError):
    """A judge cannot be called at all: it is not named, not reachable, not allowed, or its cache cannot be used."""

    role: ClassVar[str] = "judge"
    options: ClassVar[str] = "--judge-"


@cache
def _wordings() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("mmlongbench.metrics.judge", "wordings")
    return Environment(loader=loader, trim_blocks=True, undefined=StrictUndefined)


def own_prompt(name: str) -> Fill:
    """Return a prompt of this project by the name of its file. Texts are filled in as they are."""
    return _wordings().get_template(f"{name}.txt").render


class TemplateError(ValueError):
    """A text is not a prompt with the expected places."""


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt of the public code, written as for `str.format`."""

    pieces: tuple[tuple[str, str], ...]
    """Pairs of a text and the name of the place after it; the name is empty if no place follows."""

    def filled(self, **texts: str) -> str:
        """Return the prompt with each place filled in."""
        return "".join(text + (texts[place] if place else "") for text, place in self.pieces)


def template(text: str, places: Collection[str]) -> Template:
    """Return the template of a text that has exactly these places, each at least once; doubled braces stand for braces.

    `str.format` itself is not used, because a file may come from a stranger: it would read attributes
    (`{text.__class__}`) and obey widths (`{text:>999999999}`).

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
    counts = dict.fromkeys(places, 0)
    for _, name, width, conversion in parsed:
        if name is not None and (name not in counts or width or conversion):
            expected = ", ".join(f"{{{place}}}" for place in places) or "none"
            raise TemplateError(f"has the place {{{name[:40]}}}, expected {expected}, without widths or conversions")
        if name is not None:
            counts[name] += 1
    for place, count in counts.items():
        if not 0 < count <= MAX_REPEATS:
            raise TemplateError(f"has {{{place}}} {count} times, expected once, and at most {MAX_REPEATS} times")
    return Template(tuple((literal, name or "") for literal, name, _, _ in parsed))


@dataclass(frozen=True, slots=True)
class PublicPrompts:
    """The public code's prompts for one metric."""

    templates: Mapping[str, Template]
    """The prompts, by the name of the constant in the file."""
    source: str
    """The names of the files that have these prompts, each with its digest."""


def public_prompts(paths: Sequence[Path], metric: str, places: Places) -> PublicPrompts:
    """Return a metric's prompts, read from files or from the folder of a checkout.

    A file is Python with prompts as string constants. It is parsed and never executed.

    Raises:
        JudgeError: a file cannot be read, is not Python, or does not assign each prompt as a plain string with the
            places that it needs.

    """
    files: list[Path] = []
    for path in paths:
        inside = [path / name for name in FILES if (path / name).exists()] if path.is_dir() else [path]
        if not inside:
            raise JudgeError(f"--judge-prompts {path}: has none of {', '.join(FILES)}; give the folder of the checkout")
        files += inside
    read = {file: _read(file) for file in files}
    sources, templates = [], {}
    for name, needed in places.items():
        for file, (_, _, faults) in read.items():
            if name in faults:
                raise JudgeError(
                    f"{file}: {name} is {faults[name]}, expected one assignment of a plain string; the file is read, "
                    "not run; give the public code's own file"
                )
        own = {file: texts[name] for file, (_, texts, _) in read.items() if name in texts}
        if not own:
            raise JudgeError(
                f"--judge-prompts {', '.join(map(str, files))}: no {name}, which {metric} needs (its prompts are "
                f"{', '.join(places)}); give the public code's checkout, or its {' and '.join(FILES)}"
            )
        if len(set(own.values())) > 1:
            raise JudgeError(f"--judge-prompts: {name} differs in {' and '.join(map(str, own))}; give one of them")
        file, text = next(iter(own.items()))
        try:
            templates[name] = Template(((text, ""),)) if needed is None else template(text, needed)
        except TemplateError as error:
            raise JudgeError(f"{file}: {name} {error}; give the public code's own file") from error
        sources.append(f"{file.name} sha256:{read[file][0][:16]}")
    return PublicPrompts(templates, ", ".join(dict.fromkeys(sources)))


def _read(path: Path) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the digest of a file, the text of each name that it assigns exactly one plain string, and what is wrong
    with all other names, such as "an f-string".
    """
    try:
        with source_file(path, "a Python file with prompts") as file:
            data = file.read(MAX_BYTES + 1)
    except SourceError as error:
        fault = error.fault
        raise JudgeError(f"--judge-prompts {path}: expected {fault.expected}, found {fault.found}") from error
    if len(data) > MAX_BYTES:
        raise JudgeError(f"--judge-prompts {path}: expected at most {MAX_BYTES:,} bytes, found more")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about strings in the file, such as "\d"
            tree = ast.parse(data.decode("utf-8-sig"))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        said = " ".join(str(error).split())[:120] or "code that is nested too deeply"
        raise JudgeError(f"--judge-prompts {path}{line}: expected Python in UTF-8, found {said}") from error

    texts: dict[str, str] = {}
    faults: dict[str, str] = {}
    top, left = {id(node) for node in tree.body}, list[ast.AST](tree.body)
    while left:  # what functions and classes assign is their own
        node, value, name = left.pop(), None, ""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                name = node.name
            case ast.Name(ctx=ast.Store() | ast.Del()):
                name = node.id
            case ast.alias():
                name = (node.asname or node.name).partition(".")[0]
            case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)) if (
                id(node) in top
            ):
                name, value = target, node.value
            case ast.Lambda():
                continue
            case _:
                left += ast.iter_child_nodes(node)
                continue
        if name in texts or name in faults:
            faults[name] = "bound more than once"
        elif not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            faults[name] = "an f-string" if isinstance(value, ast.JoinedStr) else "no plain string"
        elif value.value != encodable(value.value):
            faults[name] = "a string with half a surrogate pair"
        else:
            texts[name] = value.value
    return hashlib.sha256(data).hexdigest(), {name: text for name, text in texts.items() if name not in faults}, faults
