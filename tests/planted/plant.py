"""Plants the faults of `faults.yaml`, each alone in a copy of the tree, and says which test catches it.

    .venv/bin/python tests/planted/plant.py --check               # are the texts to replace and the tests there?
    .venv/bin/python tests/planted/plant.py 3 14                  # two faults, and the tests of their own packages
    .venv/bin/python tests/planted/plant.py 3 --tests tests/cli   # a fault, and other tests
    .venv/bin/python tests/planted/plant.py --caught              # what is caught, by the tests that are named

Without numbers, all faults are planted. The tests must pass without a fault: run them first. A fault whose `needs` is
`shared` is caught only where the reference data lie beside the checkout.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).with_name("faults.yaml")
TIMEOUT = 900
"""Seconds for the tests of one fault; a fault with which they take longer is caught."""
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", ".*_cache", ".hypothesis", "planted", "quickstart", "*.egg-info")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """A fault as people make them."""

    id: int
    file: str
    function: str
    kind: str
    old: str
    new: str
    promise: str
    caught: str
    """A test that fails, or `no`."""
    is_rare: bool = False
    """Only `make test-all` runs the test that fails."""
    why: str = ""
    """Why no test fails."""
    needs: str = ""
    """`shared`: the test reads reference data beside the checkout, and is skipped without them."""


def own_tests(file: str) -> list[str]:
    """Return the tests of the package that a file belongs to, and the file itself, which may have doctests."""
    package, *rest = Path(file).parts
    if package == "mmlongbench" and len(rest) == 1:  # a module of its own
        alone = sorted(f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py"))
        return [file, "tests/packing", *alone]
    names = {"builders": "builders", "tokenization": "tokenization", "mmlongbench": rest[0]}
    return [file, f"tests/{names[package]}"]


def misfits(fault: Fault) -> Iterator[str]:
    """Say what of a fault is not in the tree: the text to replace, exactly once, or the test that catches it."""
    count = (ROOT / fault.file).read_text("utf-8").count(fault.old)
    if count != 1:
        yield f"{fault.id}  {fault.file}: `old` occurs {count} times, expected once"
    if fault.caught != "no":
        file, *_, name = fault.caught.split("::")
        path = ROOT / file
        if not path.is_file() or f"def {name}(" not in path.read_text("utf-8"):
            yield f"{fault.id}  {fault.caught}: there is no such test"


@contextmanager
def planted(faults: Sequence[Fault]) -> Iterator[Path]:
    """Copy the tree to a temporary folder and plant faults there; the copy is removed when the block ends."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=_NOT_COPIED)
        if (shared := ROOT.parent / "shared").exists():  # real documents, which some tests read
            (tree.parent / "shared").symlink_to(shared.resolve())
        (tree.parent / "tmp").mkdir()
        for fault in faults:
            path = tree / fault.file
            text = path.read_text("utf-8")
            if text.count(fault.old) != 1:
                sys.exit(f"fault {fault.id}: `old` occurs {text.count(fault.old)} times in {fault.file}, expected once")
            path.write_text(text.replace(fault.old, fault.new), "utf-8")
        yield tree


def run_tests(tree: Path, arguments: Sequence[str]) -> tuple[list[str], str]:
    """Run pytest in a tree; return the tests that fail, and all that pytest said."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    around = {**os.environ, "PYTHONPATH": str(tree), "TMPDIR": str(tree.parent / "tmp")}
    with (tree.parent / "log").open("w+", encoding="utf-8", errors="replace") as log:
        with subprocess.Popen(command, cwd=tree, env=around, stdout=log, stderr=log, start_new_session=True) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TIMEOUT)
            is_late = process.returncode is None
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what tests left behind
        said = (tree.parent / "log").read_text("utf-8", "replace")
    failed = _FAILED.findall(said)
    if is_late:
        return [*failed, f"timeout of {TIMEOUT} s"], said
    if process.returncode not in (0, 1, 2) or (process.returncode and not failed):
        sys.exit(f"pytest ended with exit code {process.returncode}:\n{said[-2000:]}")
    return failed, said


def main() -> None:
    """Plant the chosen faults, one after the other, and print what catches each."""
    parser = argparse.ArgumentParser(description="Plant faults, and say which test catches each.")
    parser.add_argument("ids", nargs="*", type=int, help="the faults; by default all")
    parser.add_argument("--tests", help="arguments for pytest; by default the tests of the package of a fault")
    parser.add_argument("--results", type=Path, help="a file to which a line of JSON is added for each fault")
    parser.add_argument(
        "--caught", action="store_true", help="only faults that are caught, and the tests that catch them"
    )
    parser.add_argument("--check", action="store_true", help="only check that texts to replace and tests are there")
    given = parser.parse_args()
    every = [Fault(**row) for row in yaml.safe_load(FAULTS.read_text("utf-8"))]
    if unknown := {*given.ids} - {fault.id for fault in every}:
        parser.error(f"there is no fault {min(unknown)}")
    chosen = [fault for fault in every if not given.ids or fault.id in given.ids]
    if given.check:
        sys.exit("\n".join(said for fault in chosen for said in misfits(fault)) or None)
    if given.caught:
        chosen = [fault for fault in chosen if fault.caught != "no"]
    for fault in chosen:
        tests = shlex.split(given.tests) if given.tests else [fault.caught] if given.caught else own_tests(fault.file)
        with planted([fault]) as tree:
            failed, _ = run_tests(tree, ["-x", *tests])
        print(f"{fault.id}  caught by {failed[0]}" if failed else f"{fault.id}  NOT CAUGHT", flush=True)  # noqa: T201
        if given.results:
            with given.results.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"id": fault.id, "tests": tests, "failed": failed}) + "\n")


if __name__ == "__main__":
    main()
