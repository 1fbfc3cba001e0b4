"""Compares the bytes that two commits build: both build the same manifests, and all released files are compared.

The other commit and this working tree are installed beside each other, into folders of their own, and used by the same
interpreter with the same libraries. Compared are `mmlb_data`, `mmlb_image`, `items` and `rejects.jsonl` by hash, and
what `plan`, `audit`, `score` and `report` print as JSON. Locks may differ.

python benchmarks/parity.py COMMIT [--only CASE,CASE] [--lengths 8K,…] [--limit 6]
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.drawing.mm_niah.upstream import draw_upstream

ROOT = Path(__file__).parents[1]
REAL = ROOT.parent / "shared" / "real"
RELEASED = ("mmlb_data", "mmlb_image", "items", "rejects.jsonl")
MEASURED = frozenset({"seconds", "image_seconds"})
"""Fields of a plan that come from measured times."""
ERRATA = """
mmlongdoc_0: {source: this comparison, set: {answer: 3928}}
mmlongdoc_1: {source: this comparison, drop: true}
"""
SAMPLE = "source=sample"
PLAIN = "retrieval.reranker=null"


@dataclass(frozen=True)
class Case:
    """One build: a manifest and what is set in it."""

    name: str
    manifest: str
    settings: tuple[str, ...] = ()
    is_scored: bool = False


def every_case(drawn: Path) -> Iterator[Case]:
    """Each shipped manifest on its sample, what options change, and the real sources where they are.

    MM-NIAH's six files are in the folder `drawn`: its sample has needles of one kind only.
    """
    for path in sorted((ROOT / "manifests").glob("*.yaml")):
        if path.stem.startswith("quickstart"):
            yield Case(path.stem, path.stem, is_scored=True)
            continue
        if path.stem == "benchmark":
            continue  # it includes the others
        if path.stem.startswith("mm_niah"):
            rows = drawn / f"mm_niah_val/annotations/{path.stem.removeprefix('mm_niah_').replace('_', '-')}.jsonl"
            yield Case(path.stem, path.stem, (f"source.questions={rows}", f"source.images={drawn}"))
            continue
        others = (PLAIN,) if "reranker" in path.read_text("utf-8") else ()
        yield Case(path.stem, path.stem, (SAMPLE, *others))
    for name in ("oracle", "natural"):
        yield Case(f"mmlongdoc-{name}", "mmlongdoc", (SAMPLE, f"options.context={name}"))
    yield Case("longdocurl-window", "longdocurl", (SAMPLE, "options.span=window"))
    yield Case("viquae-rank-bm25", "viquae", (SAMPLE, PLAIN, "retrieval.engine=rank-bm25"))
    yield Case("mmlongdoc-errata", "mmlongdoc", (SAMPLE, "errata=errata.yaml"))
    documents = REAL / "mmlongbench-doc"
    if documents.is_dir():
        given = (f"source.samples={documents / 'samples.json'}", f"source.documents={documents / 'documents'}")
        yield Case("real-mmlongdoc", "mmlongdoc", given, is_scored=True)
    slides = REAL / "longdocurl"
    if slides.is_dir():
        given = (f"source.questions={slides / 'LongDocURL.jsonl'}", f"source.documents={slides / 'pdf_pngs'}")
        yield Case("real-longdocurl", "longdocurl", given)


@dataclass(frozen=True)
class Side:
    """One of the two engines: where it is installed, and where it builds."""

    site: Path
    folder: Path

    def run(self, *arguments: str) -> str:
        """The output of a command of this engine; its error is shown, and ends the comparison."""
        command = [sys.executable, "-m", "mmlongbench", *arguments]
        where = {**os.environ, "PYTHONPATH": str(self.site)}
        done = subprocess.run(command, cwd=self.folder, env=where, capture_output=True, text=True, check=False)
        if done.returncode > 1:
            raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def made(self, case: Case, lengths: str, limit: int) -> dict[str, str]:
        """A hash for everything that a case releases or prints, by its name."""
        settings = [word for setting in case.settings for word in ("--set", setting)]
        build = (case.manifest, *settings, "--lengths", lengths, "--limit", str(limit))
        self.run("build", *build, "--out", case.name, "-q")
        release = self.folder / case.name
        found = dict(_hashes(release))
        found["plan --json"] = _digest(_without_times(self.run("plan", *build, "--json")))
        found["audit --json"] = _digest(self.run("audit", case.name, "--json"))
        if case.is_scored:
            predictions = self.folder / f"{case.name}.jsonl"
            predictions.write_text("".join(_predictions(release)), "utf-8")
            scored = self.run("score", case.name, predictions.name, "--out", f"{case.name}-scores", "--json")
            found["score --json"] = _digest(scored)
            found["report --json"] = _digest(self.run("report", f"{case.name}-scores", "--json"))
            found.update(_hashes(self.folder, f"{case.name}-scores"))
        return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _hashes(folder: Path, *names: str) -> Iterator[tuple[str, str]]:
    for name in names or RELEASED:
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path] if path.is_file() else []:
            if file.is_file():
                yield file.relative_to(folder).as_posix(), hashlib.sha256(file.read_bytes()).hexdigest()


def _without_times(lines: str) -> str:
    """The lines of JSON without the fields that are measured, at any depth."""

    def unmeasured(fields: dict[str, object]) -> dict[str, object]:
        return {key: value for key, value in fields.items() if key not in MEASURED}

    return "\n".join(json.dumps(json.loads(line, object_hook=unmeasured)) for line in lines.splitlines())


def _predictions(release: Path) -> Iterator[str]:
    """Return the predictions of a model that knows every second answer."""
    data = release / "mmlb_data"
    for file in sorted(data.rglob("*.jsonl")):
        for number, line in enumerate(file.read_text("utf-8").splitlines()):
            record = json.loads(line)
            place = {key: record[key] for key in ("depth", "permutation") if key in record}
            said = record["answer"][0] if isinstance(record.get("answer"), list) else record.get("answer")
            given = {"file": file.relative_to(data).as_posix(), "id": record["id"], **place}
            yield json.dumps({**given, "prediction": f"Answer: {said if number % 2 else 'none'}"}) + "\n"


def installed(source: Path, site: Path) -> Path:
    """Install the engine of a folder, without what it depends on, into a folder of its own."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    return site


def compared(sides: tuple[Side, Side], cases: Iterable[Case], lengths: str, limit: int) -> int:
    """Print a line a case, and return how many differ."""
    differing = 0
    for case in cases:
        one, other = (side.made(case, lengths, limit) for side in sides)
        unlike = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        said = f"{len(unlike)} differ: {', '.join(unlike[:5])}" if unlike else "equal"
        print(f"{case.name}: {len(one)} compared, {said}", flush=True)
        differing += bool(unlike)
    return differing


def main() -> None:
    """Compare the cases, and exit with 1 where one differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("commit")
    parser.add_argument("--only", default="")
    parser.add_argument("--lengths", default="8K,16K,32K,64K,128K")
    parser.add_argument("--limit", type=int, default=6)
    given = parser.parse_args()
    chosen = set(filter(None, given.only.split(",")))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        every = list(every_case(folder / "MM-NIAH"))
        cases = [case for case in every if not chosen or case.name in chosen]
        if unknown := sorted(chosen - {case.name for case in cases}):
            known = ", ".join(case.name for case in every)
            raise SystemExit(f"no such case: {', '.join(unknown)}; there are {known}")
        draw_upstream(folder / "MM-NIAH")
        before = folder / "before"
        add = ["git", "worktree", "add", "--quiet", "--detach", str(before), given.commit]
        subprocess.run(add, cwd=ROOT, check=True)
        stack.callback(subprocess.run, ["git", "worktree", "remove", "--force", str(before)], cwd=ROOT, check=True)
        sides = []
        for name, source in (("before", before), ("now", ROOT)):
            side = Side(installed(source, folder / f"{name}-site"), folder / f"{name}-out")
            side.folder.mkdir()
            (side.folder / "errata.yaml").write_text(ERRATA, "utf-8")
            sides.append(side)
        sys.exit(1 if compared((sides[0], sides[1]), cases, given.lengths, given.limit) else 0)


if __name__ == "__main__":
    main()
