"""Every command of the README and of its pages runs, in the order of the page."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from counting_server import counting
from drawn_tables import draw_tables
from hub_server import hub
from model_server import Script, serving
from once import once
from own_model import write_own
from question_models import script_of
from question_world import Doc, World
from tiny import Ran, command

from tests.drawing.docvqa.open_questions import draw_m_longdoc
from tests.drawing.docvqa.others import draw_longdocurl, draw_slidevqa
from tests.drawing.docvqa.reports import draw_reports
from tests.drawing.many_shot.sources import draw_folders
from tests.drawing.mm_niah.sources import draw_hidden_pictures
from tests.drawing.mm_niah.upstream import draw_upstream
from tests.drawing.summarization.sources import draw_cases
from tests.drawing.summarization.sources import draw_reports as draw_government
from tests.drawing.vrag.sources import draw_infoseek, draw_viquae

ROOT = Path(__file__).parents[2]
FIRST = ("README.md", "builders/README.md")
"""The pages that a new user and a new author read first."""
PAGES = (
    *FIRST,
    "manifests/README.md",
    "mmlongbench/release/README.md",
    "mmlongbench/publishing/README.md",
    "mmlongbench/shortcuts/README.md",
    "mmlongbench/questions/README.md",
    "mmlongbench/models/README.md",
    "mmlongbench/scoring/README.md",
    "mmlongbench/exports/README.md",
    "mmlongbench/web/README.md",
    "examples/README.md",
    "mmlongbench/README.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/model_tokens.md",
)
MODEL = "http://127.0.0.1:8000/v1"
"""The address of a model on the pages; in its place, a server of the test answers."""
HARBOURS = (Doc("harbours-a", 3), Doc("harbours-d", 3))
"""The documents about which models write questions."""
BETWEEN = "-" * 8
"""Printed between the outputs of two blocks of Python."""
FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


DRAWS: dict[str, Callable[[Path], object]] = {
    "MMLongBench-Doc/data": draw_reports,
    "InfoSeek": draw_infoseek,
    "ViQuAE": draw_viquae,
    "LongDocURL": draw_longdocurl,
    "SlideVQA": draw_slidevqa,
    "M-LongDoc": draw_m_longdoc,
    "port-reports": draw_tables,
    "GovReport": draw_government,
    "Multi-LexSum": draw_cases,
    "shapes": draw_folders,
    "harbours": lambda folder: World.drawn(folder, HARBOURS, folder.parent),
    "MM-NIAH": draw_upstream,
    "my-model": write_own,
    "pages": lambda folder: draw_hidden_pictures(folder.parent),
}
"""Small drawn versions of the raw files that the pages use, by the name of their folder."""


@pytest.fixture
def page_sources(page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lay what a page names into the folder of the test, and serve MMLongBench-Doc as the public hub does."""
    blocks = "\n".join(body for _, _, body in FENCE.findall((ROOT / page).read_text("utf-8")))
    with pytest.MonkeyPatch.context() as patch, hub() as server:
        patch.setenv("HF_ENDPOINT", server.url)
        for name, draw in DRAWS.items():
            first = name.split("/")[0]
            if re.search(rf"(?<![\w/-]){first}\b(?!-)", blocks):

                def make(folder: Path, name: str = name, draw: Callable[[Path], object] = draw) -> None:
                    (folder / name).mkdir(parents=True)
                    draw(folder / name)

                (tmp_path / first).symlink_to(once(tmp_path_factory, f"page-{first}", make) / first)
        if (folder := tmp_path / "MMLongBench-Doc/data").exists():
            table = io.BytesIO()
            pd.DataFrame(json.loads((folder / "samples.json").read_text("utf-8"))).to_parquet(table)
            files = {f"documents/{path.name}": path.read_bytes() for path in sorted((folder / "documents").iterdir())}
            server.put("yubo2333/MMLongBench-Doc", {"data/train-00000-of-00001.parquet": table.getvalue(), **files})
        yield


@pytest.mark.usefixtures("page_sources")
@pytest.mark.timeout(900)  # a page has up to thirty commands
@pytest.mark.parametrize(
    "page", [*FIRST, *(pytest.param(page, marks=pytest.mark.rare) for page in PAGES if page not in FIRST)]
)
def test_every_command_runs_and_prints_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first command of README.md is a process of its own, as a user runs it; others run in this one. A release that
    no later command reads has two questions.

    Text below commands is a part of what they print, where README.md shows all of it; seconds may differ.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed, has_run = "", False
    blocks = FENCE.findall((ROOT / page).read_text("utf-8"))
    every_word = re.findall(r"[\w./-]+", " ".join(body for language, _, body in blocks if language in ("sh", "yaml")))
    for language, file, body in blocks:
        if language == "text" and has_run:
            shown, whole = _lines(body), _lines(printed)
            assert whole == shown if page == "README.md" else f"\n{shown}\n" in f"\n{whole}\n", whole
        if language == "json" and page == "README.md":
            lines = (tmp_path / "release/mmlb_data/documentQA/mmlongdoc_K16.jsonl").read_text("utf-8").splitlines()
            assert json.loads(body) in [json.loads(line) for line in lines]
        printed, has_run = "", False
        if file:
            (tmp_path / file).write_text(body, "utf-8")
        for line in body.splitlines() if language == "sh" else ():
            words = shlex.split(line, comments=True)
            if words[0] == "make":
                assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), line
                continue
            is_ours = words[0] == "mmlongbench" and (page != "README.md" or (tmp_path / "release").exists())
            is_large = is_ours and words[1] == "build" and {"--limit", "--stage"}.isdisjoint(words)
            out = words[words.index("--out") + 1] if is_large else ""
            if is_large and every_word.count(out) == 1 + (words[2] == out):
                words += ["--limit", "2"]
            done = _run(words, is_ours)
            assert done.code == 0, f"{line}\n{done.out}\n{done.err}"
            printed, has_run = printed + done.out, True


def _run(words: list[str], is_ours: bool) -> Ran:
    """Run a command; where it names a model, a server answers."""
    if MODEL not in words:
        return command(*words[1:]) if is_ours else _process(words)
    with serving(_script(words)) as server:
        done = command(*[server.url if word == MODEL else word for word in words[1:]])
    return done


def _script(words: list[str]) -> Script:
    """The models of a command: those of the drawn harbours, if they write questions about them."""
    usual: Script = counting("Answer: 259")
    if words[1] != "questions":
        return usual
    return script_of(World(HARBOURS, Path(words[2]), Path(words[words.index("--out") + 1]) / ".kept" / "pictures"))


def _process(words: list[str]) -> Ran:
    where = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, env=where, capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def _lines(text: str) -> str:
    """A text without blanks at the ends of lines, and without seconds and commits."""
    return "\n".join(re.sub(r"\b\d+ s\b|\b[0-9a-f]{12}\b", "# s", line.rstrip()) for line in text.splitlines())


@pytest.mark.rare
def test_every_block_of_python_prints_what_stands_below_it(tmp_path: Path) -> None:
    page = (ROOT / "mmlongbench/README.md").read_text("utf-8")
    blocks = [(language, body) for language, _, body in FENCE.findall(page)]
    shown = [(body, below) for (language, body), (_, below) in pairwise(blocks) if language == "python"]
    assert [language for language, _ in blocks] == ["python", "text"] * len(shown)
    script = f"\nprint({BETWEEN!r})\n".join(body for body, _ in shown)
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=where, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split(f"{BETWEEN}\n") == [printed for _, printed in shown]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text("utf-8"))
    assert not [link for link in links if "://" not in link and not ((ROOT / page).parent / link).exists()]


def test_every_path_of_the_pages_about_the_code_exists() -> None:
    """A path is given from the root, from the engine, or beside the path before it."""
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        folders = [ROOT, ROOT / "mmlongbench"]
        for path in re.findall(r"`([\w/.-]+\.(?:py|toml|yaml|json))`", (ROOT / page).read_text("utf-8")):
            there = [folder / path for folder in (*folders[:2], folders[-1]) if (folder / path).is_file()]
            assert there or path in ("samples.json", "build.lock.json"), f"{page}: {path}"
            folders += [there[0].parent] if there else []


def test_every_command_stands_in_the_readme_or_its_pages() -> None:
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", command("--help").out, re.MULTILINE)
    assert {"build", "takedown"} < {*listed}
    text = "".join((ROOT / page).read_text("utf-8") for page in PAGES)
    assert not [name for name in listed if f"mmlongbench {name}" not in text]
