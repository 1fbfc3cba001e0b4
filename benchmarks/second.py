"""A second: how soon every command says something useful about a release of 12,500 examples.

The release has two datasets at 8K: 9,500 questions about slides, and 500 questions about passages of text at six
depths. Every command of `mmlongbench --help` runs on it, on a pipe and on a terminal of 80 columns. Printed are the
seconds until the first words arrive, the CPU seconds until then, and both until the end; a command that runs longer
than `--limit` is ended. A pipe gets no bars, so a command may be silent there until it has its answer; the target of
one second is for terminals. On a machine with other work, look at the CPU seconds.
"""

import json
import os
import pty
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import yaml
from worlds import decks, draw_encyclopedia

SLIDES, PASSAGES = 9_500, 500
TARGETS = {"--help": 0.3, "list": 0.6, "count": 0.6}
"""Seconds until the end; any other command has one second until its first words."""
TOOL = (sys.executable, "-m", "mmlongbench")
LLM = "--url|http://127.0.0.1:9/v1|--model|none|--attempts|1"
JUDGE = "--judge-url|http://127.0.0.1:9/v1|--judge-model|none|--dry-run"
COMMANDS = (
    *("--help", "new|task|mine|--out|NEW", "fetch|mmlongdoc|--to|NEW|--dry-run"),
    *("corpus|build|text/corpus.json|--out|NEW", "questions|pdfs|--out|NEW|--from|layer", "plan|m.yaml"),
    *("build|m.yaml|--out|NEW", "finish|release", "list", "schema|manifest", "show|release", "view|release|--port|0"),
    *("stats|release", "count|slides/test.jsonl", "check|m.yaml", "doctor|m.yaml", "audit|release", "verify|release"),
    *("diff|release|copy", "shortcuts|release", f"run|release|--out|NEW|{LLM}"),
    *("collect|release|predictions.jsonl|--model|none|--out|NEW", "score|release|predictions.jsonl|--out|NEW"),
    *(f"claims|release|{JUDGE}", "report|scores", "export|release|--to|openai|--out|NEW", "rights|release"),
    *("publish|release|--out|NEW|--allow-unknown-licence", "takedown|release|--document|001_deck_of_slides|--out|NEW"),
)
"""Every command with its arguments; NEW is a path that does not exist."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(path_type=Path), help="Keep the release there, or use the one that is there.")
@click.option("--limit", default=20.0, show_default=True, help="Seconds after which a command is ended.")
@click.option("--only", default="", metavar="A,B", help="Only these commands.")
def main(out: Path | None, limit: float, only: str) -> None:
    """Print a line for each command."""
    with tempfile.TemporaryDirectory() as temporary:
        root = out or Path(temporary)
        if not (root / "release/build.lock.json").is_file():
            draw(root)
        os.chdir(root)
        heads = f"{'first':>7}{'CPU':>6}{'end':>7}{'CPU':>6}"
        click.echo(f"{'':10}  pipe: {heads}   terminal: {heads}")
        for args in (command.split("|") for command in COMMANDS):
            name = args[0]
            if not only or name in only.split(","):
                pipe, terminal = (run(args, limit, is_terminal=is_terminal) for is_terminal in (False, True))
                late = TARGETS.get(name, 1.0) if terminal[3 if name in TARGETS else 1] > TARGETS.get(name, 1.0) else 0
                cells = ("{:7.2f}{:6.2f}{:7.2f}{:6.2f}".format(*figures) for figures in (pipe, terminal))
                click.echo(f"{name:10}        {'             '.join(cells)}{f'   over {late:g}' if late else ''}")


def draw(root: Path) -> None:
    """Draw the sources; build the release, a copy of it by links, predictions and scores."""
    for folder in ("slides", "text", "pdfs"):
        (root / folder).mkdir(parents=True)
    slides, passages = decks(root / "slides"), draw_encyclopedia(root / "text", 6_000, PASSAGES)
    names = sorted(path.name for path in (root / "slides/decks").iterdir())
    with (root / "slides/test.jsonl").open("w") as file:
        for n in range(SLIDES):
            asked = {"deck_name": names[n % 60], "question": f"Which deck, {n}?", "answer": f"deck {n % 60}"}
            file.write(json.dumps({**asked, "evidence_pages": [1 + n % 20]}) + "\n")
    about = {"reader": "viquae", "corpus": str(root / "text/corpus.json"), "options": {"gold": "span"}}
    datasets = [{"name": "slidevqa", "builder": "docvqa", "lengths": ["8K"], **slides}]
    datasets.append({"name": "viquae", "builder": "vrag", "lengths": ["8K"], "source": passages, **about})
    (root / "m.yaml").write_text(yaml.safe_dump({"datasets": datasets}))
    subprocess.run([*TOOL, "build", "m.yaml", "--out", "release", "--workers", "2", "-q"], cwd=root, check=True)
    shutil.copytree(root / "release", root / "copy", copy_function=os.link)
    with (root / "predictions.jsonl").open("w") as file:
        for path in sorted((root / "release/mmlb_data").glob("*/*.jsonl")):
            for record in map(json.loads, path.read_text().splitlines()):
                place = {key: record[key] for key in ("id", "depth") if key in record}
                place["file"] = f"{path.parent.name}/{path.name}"
                file.write(json.dumps({**place, "prediction": "deck 7"}) + "\n")
    subprocess.run([*TOOL, "score", "release", "predictions.jsonl", "-q"], cwd=root, check=True)


def run(args: list[str], limit: float, *, is_terminal: bool) -> tuple[float, float, float, float]:
    """Run a command. Return the seconds and the CPU seconds until its first words, and until its end."""
    folder = Path(tempfile.mkdtemp())
    own, theirs = pty.openpty() if is_terminal else os.pipe()
    command = [*TOOL, *(str(folder / "new") if arg == "NEW" else arg for arg in args)]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    before, start = _cpu(), time.monotonic()
    child = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    seen, first = b"", (0.0, 0.0)
    while (left := start + limit - time.monotonic()) > 0 and select.select([own], [], [], left)[0]:
        try:
            data = os.read(own, 65_536)
        except OSError:  # a terminal is closed in this way
            break
        seen += data
        if not first[0] and re.search(rb"\w", re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen)):
            stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
            first = time.monotonic() - start, sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
        if not data or (args[0] == "view" and first[0]):
            break
    child.terminate()
    child.wait()
    os.close(own)
    shutil.rmtree(folder)
    end = time.monotonic() - start, _cpu() - before
    return *(first if first[0] else end), *end


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
