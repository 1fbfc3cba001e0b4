"""Reads an export back with the target's own loader: `python tests/loaders/run.py NAME … --release RELEASE`.

Each loader gets an environment of its own, `.venv-loaders/NAME`, with `tests/loaders/requirements-NAME.txt`. RELEASE is
exported, and `tests/loaders/check_NAME.py RELEASE OUT [TASK …]` runs in that environment; it prints figures, and fails
if anything differs. A release of task files needs `--task FILE`. `processors` reads no release: it compares the counts
of prompts with those of transformers. `make test-loaders` does so for every loader. These are no tests of pytest: the
environments have gigabytes.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
ENVIRONMENTS = ROOT / ".venv-loaders"


@dataclass(frozen=True)
class Loader:
    """A loader of another project."""

    target: str
    """The target whose files it reads; empty if it reads none."""
    exports: tuple[tuple[str, ...], ...] = ((),)
    """More options of `mmlongbench export`; the release is exported and read back once for each of them."""
    is_frozen: bool = False
    """Whether its requirements name every package, so that none is looked for."""
    sources: str = ""
    """A package of which only the Python files are used, because its dependencies need a GPU."""


LOADERS = {
    "hf": Loader("hf"),
    "inspect": Loader("inspect", is_frozen=True),
    "lmms_eval": Loader("lmms-eval", is_frozen=True),
    "mteb": Loader("mteb"),
    "openai_batch": Loader("openai-batch", (("--model", "m"),)),
    "processors": Loader(""),
    "training": Loader("training", (("--format", "openai"), ("--format", "sharegpt"), ("--format", "llava"))),
    "vllm": Loader("vllm-batch", sources="vllm==0.33.0"),
    "vlmevalkit": Loader("vlmevalkit"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"loaders, by default every one: {', '.join(LOADERS)}")
    parser.add_argument("--release", type=Path, default=ROOT / "quickstart", help="by default quickstart/")
    parser.add_argument("--limit", default="", help="the maximum number of examples of each file")
    parser.add_argument("--task", type=Path, default=[], action="append", help="a task file of the release; repeatable")
    chosen = parser.parse_args()
    for name in chosen.names or [name for name in LOADERS if (HERE / f"check_{name}.py").exists()]:
        check(name, LOADERS[name], chosen.release.resolve(), chosen.limit, [task.resolve() for task in chosen.task])


def check(name: str, loader: Loader, release: Path, limit: str, tasks: Sequence[Path] = ()) -> None:
    """Export a release and read it back."""
    python = environment(name, loader)
    for options in loader.exports:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            words = ["export", release, "--to", loader.target, "--out", out, *options]
            words += [word for task in tasks for word in ("--task", task)]
            if loader.target:
                run(python, "-m", "mmlongbench", *words, *(["--limit", limit] if limit else []))
            run(python, HERE / f"check_{name}.py", release, out, *tasks)


def environment(name: str, loader: Loader) -> Path:
    """Make the environment of a loader, if its requirements changed, and return its Python."""
    folder, requirements = ENVIRONMENTS / name, HERE / f"requirements-{name}.txt"
    python, mark = folder / "bin/python", folder / "installed.txt"
    wanted = requirements.read_text("utf-8") + loader.sources
    if not mark.exists() or mark.read_text("utf-8") != wanted:
        run(sys.executable, "-m", "venv", folder)
        alone = ["--no-deps"] if loader.is_frozen else []
        run(python, "-m", "pip", "install", "--quiet", *alone, "--requirement", requirements)
        run(python, "-m", "pip", "install", "--quiet", *alone, "--editable", ROOT if alone else f"{ROOT}[scoring]")
        if loader.sources:
            unpack(python, loader.sources, folder)
        mark.write_text(wanted, "utf-8")
    return python


def unpack(python: Path, package: str, folder: Path) -> None:
    """Put the Python files of a package into an environment, without its dependencies and its compiled parts."""
    wheels = folder / "wheels"
    run(python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, package)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site, [name for name in archive.namelist() if name.endswith((".py", "/METADATA"))])
        wheel.unlink()


def run(*words: object) -> None:
    """Run a command in the root of the repository, and stop if it fails."""
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
