"""The HTML page of the audit: all data is escaped; a real browser loads it without errors and runs only the sorting."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tiny import command

from mmlongbench.release.findings import FileAudit, ModelTally
from mmlongbench.release.models import ask
from mmlongbench.web.audit_page import audit_page

EVIL = "<img src=x onerror=\"document.title='run'\">"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
HARNESS = """
<script>
const table = document.querySelector("#files ~ .wide table");
const heads = [...table.querySelectorAll("th button")];
const order = () => [...table.tBodies[0].rows].map(row => row.cells[2].textContent);
const before = order();
heads[2].click(); const up = order();
heads[2].click(); const down = order();
document.body.innerHTML = "";
const said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify({before, up, down, errors, title: document.title});
document.body.append(said);
</script></body>"""
CATCH = "<head><script>const errors = []; window.onerror = error => { errors.push(String(error)); };</script>"


def audits() -> list[FileAudit]:
    found = []
    for number, name in ((40, "b"), (7, "a"), (100, EVIL)):
        audit = FileAudit(f"documentQA/{name}_K8.jsonl", 8192, models={"gemma3": ModelTally()}, dataset=name)
        for _ in range(number):
            audit.examples += 1
            audit.fill.add(0.9)
            audit.fills.add(0.9)
            audit.text.add(100)
            audit.image.add(7000)
            audit.images.add(3)
            audit.models["gemma3"].add(EVIL, 9000)
        audit.problem(f"a problem {EVIL}", f"line 1, {EVIL}")
        audit.models["gemma3"].over_window = 1
        found.append(audit)
    return found


def page(title: str, *notes: str) -> str:
    return "".join(audit_page(title, audits(), [asked.open() for asked in ask("gemma3")], notes))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "report.html"
    path.write_text(text, "utf-8")
    return path


def test_nothing_from_data_is_markup_and_nothing_is_fetched() -> None:
    text = page(f"Audit of {EVIL}", EVIL)
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=") >= 5
    assert not re.search(r"https?://|src=[\"']|@import|url\(", text)


def test_a_page_says_what_the_audit_found() -> None:
    text = page("Audit", "a note")
    assert "<p>147 examples in 3 files</p>" in text
    assert '<p class="bad">3 problems</p>' in text
    assert "<p>a note</p>" in text
    assert re.findall(r'<h2 id="(\w+)">', text) == ["problems", "files", "models", "costliest"]
    assert re.findall(r'<a href="#(\w+)">', text) == ["problems", "files", "models", "costliest"]
    assert '<td class="over" data-key="9000.0">9.0K (2% over)</td>' in text
    without = "".join(audit_page("Audit", audits()[:0], (), ()))
    assert "<p>no problems</p>" in without
    assert re.findall(r'<h2 id="(\w+)">', without) == ["files"]


@pytest.mark.skipif(not BROWSER, reason="no chromium")
def test_in_a_browser_it_sorts_without_errors_and_a_hostile_name_runs_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, page("Audit").replace("<head>", CATCH, 1).replace("</body>", HARNESS, 1))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    ran = subprocess.run([BROWSER, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True)
    said = json.loads(re.search(r'<pre id="said">(.*?)</pre>', ran.stdout, re.DOTALL)[1])  # type: ignore[index]
    assert said == {
        "before": ["40", "7", "100"],
        "up": ["7", "40", "100"],
        "down": ["100", "40", "7"],
        "errors": [],
        "title": "Audit",
    }


def test_the_command_writes_the_page(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert command("audit", finished, "--models", "claude", "--html", path, "-q").code == 0
    assert path.read_text("utf-8").startswith("<!doctype html>")
