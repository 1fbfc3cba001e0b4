"""The report as a page and in a terminal: everything from data is escaped, nothing is fetched, nothing runs."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from score_lines import Line, absent, line, page, write

from mmlongbench.cli.report import report as command
from mmlongbench.scoring.report import report

pytestmark = pytest.mark.slow
EVIL = "<img src=x onerror=\"document.title='run'\">\x1b[31m"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
HARNESS = """
<script>
const wide = [...document.querySelectorAll("table")].filter(table => table.scrollWidth > innerWidth).length;
const links = [...document.querySelectorAll("nav a")];
const dead = links.filter(link => !document.querySelector(decodeURIComponent(link.hash))).map(link => link.hash);
const ground = getComputedStyle(document.querySelector("td.v")).backgroundColor;
const said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify({errors, dead, links: links.length, wide, ground, title: document.title});
document.body.replaceChildren(said);
</script></body>"""
CATCH = "<head><script>const errors = []; window.onerror = error => { errors.push(String(error)); };</script>"


def lines() -> list[Line]:
    """Scores of three models by two metrics over two datasets and lengths, with every field and hostile names."""
    made: list[Line] = []
    for model in (f"a {EVIL}", "b", "c-" + "long-" * 20):
        for metric in ("em", f"judge {EVIL}"):
            for dataset in (f"docs {EVIL}", "one"):
                for k in (8, 16):
                    for n in range(1 if dataset == "one" else 4):
                        about = {
                            "model": model,
                            "metric": metric,
                            "category": EVIL,
                            "facets": {f"kind {EVIL}": [f"odd {EVIL}" if n % 2 else "even"]},
                            "details": {f"refused {EVIL}": n == 1, "alpha_0": 0.1 * n, "alpha_1": 1 - 0.1 * n},
                        }
                        made += [line(n, n / 4, dataset, k, depth=depth, **about) for depth in (0.0, 0.4, 1.0)]
    made[0] |= {"status": "absent", "score": 0.0}
    made[-1] |= {"status": "failed", "score": None, "failure": f"no JSON {EVIL}"}
    return made


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("scores") / "folder", lines())


def test_nothing_from_data_is_markup_and_nothing_is_fetched_or_run(scores: Path) -> None:
    text = page(report(scores), f"Report of {EVIL}")
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=") >= 20
    assert not re.search(r"https?://|src=[\"']|@import|url\(|<script", text)


def test_the_page_says_what_is_absent_and_failed_and_has_every_part(scores: Path) -> None:
    text = page(report(scores))
    assert "1 absent, 1 failed" in text
    assert "no JSON" in text
    anchors = re.findall(r'<h2 id="(\w+)">', text)
    assert anchors == [
        "profiles",
        "averages",
        "datasets",
        "depth",
        "facets",
        "correlations",
        "agreement",
        "missing",
        "details",
    ]


def test_a_report_of_one_score_is_a_page_too(tmp_path: Path) -> None:
    text = page(report(write(tmp_path, [absent(1, category="")])))
    assert "nothing is absent" not in text
    assert "in no category, and in no average: docs" in text


def said_in_a_browser(text: str, folder: Path) -> Any:
    """What a script in a page writes into the element `said`, as JSON."""
    path = folder / "report.html"
    path.write_text(text, "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    options += ["--window-size=1300,2000"]
    ran = subprocess.run([BROWSER, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True)
    return json.loads(re.search(r'<pre id="said">(.*?)</pre>', ran.stdout, re.DOTALL)[1])  # type: ignore[index]


@pytest.mark.skipif(not BROWSER, reason="no chromium")
def test_in_a_browser_the_names_of_many_correlated_datasets_are_in_one_line(tmp_path: Path) -> None:
    names = [f"dataset_{n}" for n in range(24)]
    scores = write(
        tmp_path / "scores",
        [line(1, (at + 1) / 4, name, model=model) for name in names for at, model in enumerate("abc")],
    )
    script = """
<script>
const heads = [...document.querySelectorAll("#correlations ~ details[open] tbody th")];
const said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify(heads.map(head => [head.textContent, head.offsetHeight]));
document.body.replaceChildren(said);
</script></body>"""
    found = said_in_a_browser(page(report(scores)).replace("</body>", script, 1), tmp_path)
    assert set(names) <= {name for name, _ in found}
    assert [name for name, height in found if name in names and height > 30] == []


@pytest.mark.skipif(not BROWSER, reason="no chromium")
def test_in_a_browser_it_shows_without_errors_and_a_hostile_name_runs_nothing(scores: Path, tmp_path: Path) -> None:
    text = page(report(scores)).replace("<head>", CATCH, 1).replace("</body>", HARNESS, 1)
    said = said_in_a_browser(text, tmp_path)
    assert (said["errors"], said["dead"], said["title"]) == ([], [], "Report")
    assert said["links"] >= 10
    assert said["wide"] == 0
    assert said["ground"] not in ("", "rgba(0, 0, 0, 0)")


def test_the_command_shows_a_terminal_nothing_that_it_would_obey_within_a_hundred_columns(scores: Path) -> None:
    ran = CliRunner().invoke(command, [str(scores)], catch_exceptions=False)
    assert "\x1b" not in ran.output
    assert "averages" in ran.output
    assert "Kendall's τ" in ran.output
    long = [text for text in ran.output.splitlines() if len(text) > 100 and "c-long" not in text and " × " not in text]
    whole = ("in no category", "totals of", "unknown (", "1 a", "3 c")
    assert not [text for text in long if not text.startswith(whole)]


def test_the_command_writes_the_page_and_prints_json(scores: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    ran = CliRunner().invoke(command, [str(scores), "--html", str(path), "--json"], catch_exceptions=False)
    found = json.loads(ran.output)
    assert found["resamples"] == 1000
    assert {"model", "metric", "row", "column", "mean", "interval", "examples", "absent", "failed"} <= set(
        found["scores"]["cells"][0]
    )
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert CliRunner().invoke(command, [str(scores), "-q"], catch_exceptions=False).output == ""


def test_names_that_no_terminal_and_no_encoding_can_show_are_reported(tmp_path: Path) -> None:
    odd = [line("\ud800", 1.0, model="\udfff\n", facets={"\ud800": ["\x07"]}) for _ in range(1)]
    ran = CliRunner().invoke(command, [str(write(tmp_path / "odd", odd)), "--html", str(tmp_path / "odd.html")])
    assert (ran.exit_code, ran.exception) == (0, None)
    assert (tmp_path / "odd.html").read_bytes()
