"""Reads the public code's own prompts from files of a user's checkout. These prompts are not part of this
project.

A file is Python with prompts as string constants. It is parsed and never executed; only top-level assignments of plain
strings are taken.
"""

import ast
import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import SourceError
from mmlongbench.io.files import source_file
from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.metrics.judge.templates import Template, TemplateError, plain, template
from mmlongbench.models.fences import encodable

MAX_BYTES = 256 * 1024
"""The maximum size of a file in bytes; the public ones have 56 and 13 kilobytes."""
FILES = ("scripts/eval_gpt4_summ.py", "utils_prompt.py")
"""The files in which a checkout of the public code keeps prompts of judges."""

Places = Mapping[str, tuple[str, ...] | None]
"""By the name of each prompt, the names of the places to fill in, such as `question` for `{question}`; None if the
prompt is used unchanged."""


@dataclass(frozen=True, slots=True)
class PublicPrompts:
    """The prompts of one metric."""

    templates: Mapping[str, Template]
    """The templates, by the name of the constant in the file."""
    source: str
    """The names of the files that have these prompts, each with its digest."""


@dataclass(frozen=True, slots=True)
class _Module:
    """A file of prompts, and the names that it assigns."""

    path: Path
    digest: str
    texts: Mapping[str, str]
    others: Mapping[str, str]
    """Every name that is not assigned exactly one plain string, and what is wrong with it, such as "an f-string"."""


def public_prompts(paths: Sequence[Path], metric: str, places: Places) -> PublicPrompts:
    """Return a metric's prompts, read from files or from the folder of a checkout.

    Raises:
        JudgeError: a file cannot be read, is not Python, or does not assign each prompt as a plain string with the
            places that it needs.

    """
    modules = [_read(file) for path in paths for file in _files(path)]
    sources, templates = [], {}
    for name, needed in places.items():
        module = _module_of(name, modules, metric, tuple(places))
        try:
            text = module.texts[name]
            templates[name] = plain(text) if needed is None else template(text, needed)
        except TemplateError as error:
            raise JudgeError(f"{module.path}: {name} {error}; give the public code's own file") from error
        sources.append(f"{module.path.name} sha256:{module.digest[:16]}")
    return PublicPrompts(templates, ", ".join(dict.fromkeys(sources)))


def _module_of(name: str, modules: Sequence[_Module], metric: str, names: tuple[str, ...]) -> _Module:
    """Return the file that assigns a prompt."""
    for module in modules:
        if name in module.others:
            raise JudgeError(
                f"{module.path}: {name} is {module.others[name]}, expected one assignment of a plain string; the file "
                "is read, not run; give the public code's own file"
            )
    found = [module for module in modules if name in module.texts]
    if not found:
        files = ", ".join(str(module.path) for module in modules)
        raise JudgeError(
            f"--judge-prompts {files}: no {name}, which {metric} needs (its prompts are {', '.join(names)}); give "
            f"the public code's checkout, or its {' and '.join(FILES)}"
        )
    if len({module.texts[name] for module in found}) > 1:
        files = " and ".join(str(module.path) for module in found)
        raise JudgeError(f"--judge-prompts: {name} differs in {files}; give one of them")
    return found[0]


def _files(path: Path) -> list[Path]:
    """Return the file itself, or the files of prompts in the folder of a checkout."""
    if not path.is_dir():
        return [path]
    found = [path / name for name in FILES if (path / name).exists()]
    if not found:
        raise JudgeError(f"--judge-prompts {path}: has none of {', '.join(FILES)}; give the folder of the checkout")
    return found


def _read(path: Path) -> _Module:
    data = _bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about strings in the file, such as "\d"
            tree = ast.parse(data.decode("utf-8-sig"))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        said = " ".join(str(error).split())[:120] or "code that is nested too deeply"
        raise JudgeError(f"--judge-prompts {path}{line}: expected Python in UTF-8, found {said}") from error
    texts, others = _constants(tree)
    return _Module(path, hashlib.sha256(data).hexdigest(), texts, others)


def _bytes(path: Path) -> bytes:
    try:
        with source_file(path, "a Python file with prompts") as file:
            data = file.read(MAX_BYTES + 1)
    except SourceError as error:
        fault = error.fault
        raise JudgeError(f"--judge-prompts {path}: expected {fault.expected}, found {fault.found}") from error
    if len(data) > MAX_BYTES:
        raise JudgeError(f"--judge-prompts {path}: expected at most {MAX_BYTES:,} bytes, found more")
    return data


def _constants(tree: ast.Module) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text of each name that is assigned exactly one plain string, and what is wrong with other names."""
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, value in _bindings(tree):
        if name in texts or name in others:
            others[name] = "bound more than once"
        elif not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            others[name] = "an f-string" if isinstance(value, ast.JoinedStr) else "no plain string"
        elif value.value != encodable(value.value):
            others[name] = "a string with half a surrogate pair"
        else:
            texts[name] = value.value
    return {name: text for name, text in texts.items() if name not in others}, others


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that the file assigns outside functions and classes. The value is None unless the name is
    assigned alone and at the top level.
    """
    certain = {id(node) for node in tree.body}
    left: list[ast.AST] = list(reversed(tree.body))
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, None
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id, None
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0], None
        elif isinstance(node, ast.Assign | ast.AnnAssign) and id(node) in certain and (name := _target(node)):
            yield name, node.value
        elif not isinstance(node, ast.Lambda):
            left.extend(reversed(list(ast.iter_child_nodes(node))))


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the one name that is assigned; empty for several names or another kind of target."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""
