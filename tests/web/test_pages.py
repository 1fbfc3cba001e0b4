"""The pages that commands write: what they show of numbers and data, and that nothing from data is markup."""

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from once import linked
from PIL import Image
from score_lines import Line, absent, line, write
from tiny import command

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.release.example_cost import models_of
from mmlongbench.release.file_audit import FileAudit, ModelTally
from mmlongbench.release.release import Release, open_release
from mmlongbench.release.selection import find_example
from mmlongbench.release.shown_example import ShownExample, shown_example
from mmlongbench.scoring.report.grids import Counts, Estimate, Grid, Row
from mmlongbench.shortcuts.audit import SeenQuestion, SeenUnit, ShortcutAudit
from mmlongbench.shortcuts.blind import BlindCounts, BlindQuestion
from mmlongbench.shortcuts.contexts import ContextAudit, ContextRow, NeedVerdict
from mmlongbench.shortcuts.difficulty import Difficulty
from mmlongbench.shortcuts.findings import Finding, Verdict
from mmlongbench.table import Cell, Table, Value, text_of
from mmlongbench.web import shortcuts_page
from mmlongbench.web.audit_page import audit_page
from mmlongbench.web.charts import COLOURS, look_of
from mmlongbench.web.kit import Section, asset, environment, render, write_page
from mmlongbench.web.report_page import grid_table, heat_maps
from mmlongbench.web.shortcuts_page import contexts_page
from mmlongbench.web.show_page import MAX_EMBEDDED, segments, show_page

EVIL = "\"'><img src=x onerror=\"document.title='run'\"></style><script>document.title='run'</script>&{{ 7 * 7 }}"
OUTSIDE = re.compile(r"https?://|src=[\"'](?!data:)|@import|url\(")


def headings(text: str) -> list[str]:
    return re.findall(r'<h2 id="(\w+)">', text)


# What all pages are made of.


def test_every_template_is_compiled_and_a_name_that_is_not_given_is_an_error() -> None:
    names = environment().list_templates()
    assert {"base.html", "audit.html", "report.html"} <= set(names)
    for name in names:
        environment().get_template(name)
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        "".join(render("base.html", sections=[]))
    with pytest.raises(UndefinedError, match="has no attribute 'maen'"):
        environment().from_string("{{ cell.maen }}").render(cell=Cell())


@pytest.mark.parametrize(
    "source",
    [
        '<p title="{{ evil }}">{{ evil }}</p>',
        '{% from "parts.html" import contents, heading, notes %}'
        '{{ contents(sections) }}{{ heading(evil, evil, "s", 0) }}{{ notes([evil]) }}',
        '{% from "tables.html" import table %}{{ table(value, evil, is_sorted=true) }}',
        '{% from "cells.html" import few, link, meter, verdict %}{{ link(evil, evil, true, evil) }}{{ few(evil) }}'
        "{{ verdict(evil, evil, evil, evil) }}{{ meter(1, evil) }}",
        '{% from "charts.html" import legend %}{{ legend([(evil, look)]) }}',
    ],
)
def test_hostile_values_are_text_wherever_they_are_shown(source: str) -> None:
    row: list[Value] = [Cell(EVIL, (EVIL,), EVIL, EVIL, EVIL, EVIL), EVIL, Cell(EVIL, look=EVIL, key=EVIL), 1]
    value = Table((EVIL, "", EVIL, "n"), [row, (Cell(EVIL, (EVIL,)),), (EVIL,)], EVIL, (EVIL,), "ll")
    given = {"evil": EVIL, "value": value, "look": look_of(0), "sections": [Section("s", EVIL, [(EVIL, EVIL)])]}
    text = environment().from_string(source).render(**given)
    assert text.count("&lt;script&gt;") == text.count("{{ 7 * 7 }}") >= 1
    assert "<script" not in text
    assert EVIL[:2] not in text
    assert not re.search(r"=\"[^\"]*'", text), "no quote ends an attribute"


def test_the_stylesheet_has_a_colour_for_each_model_in_light_and_dark() -> None:
    style = asset("page.css")
    assert [style.count(f"--m{number}:") for number in range(COLOURS + 1)] == [2] * COLOURS + [0]
    assert "{#" not in style


def test_what_utf_8_cannot_hold_is_an_escape_and_a_page_that_fails_half_way_leaves_no_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "<p>"
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        write_page(tmp_path / "page.html", pieces())
    assert list(tmp_path.iterdir()) == []
    write_page(tmp_path / "page.html", ["<p>", "\ud800", "é</p>"])
    assert (tmp_path / "page.html").read_bytes() == b"<p>\\ud800\xc3\xa9</p>"


# Grids.

FOUND = {
    "8K": Estimate(0.5, 0.4, 0.6, Counts(1200), 7),
    "16K": Estimate(0.25, counts=Counts(10, absent=1, failed=2), clusters=3),
    "32K": Estimate(None, counts=Counts(10, skipped=4)),
    "64K": Estimate(None, counts=Counts(3, failed=3)),
}
ROW = Row("docs", "DocVQA", "em")


def test_cells_show_scores_intervals_ranks_and_what_is_missing() -> None:
    grid = Grid("a", (ROW,), (*FOUND, "mean"), {("m", ROW, column): found for column, found in FOUND.items()})
    head, (name, *cells) = grid_table(grid, ["m", "other"]).rows
    assert head == (Cell("docs", ["DocVQA, em"]),)
    title = "1,200 examples of 7 clusters, 0 absent, 0 failed"
    assert name == "m"
    few = "10 examples of 3 clusters, 1 absent, 2 failed"
    assert cells == [
        Cell("50.0", ["40.0–60.0"], title, ramp="0.500"),
        Cell("25.0", ["–", "1 absent", "2 failed"], few, ramp="0.250", look="m"),
        Cell("N/A", ["4 skipped"], look="na m"),
        Cell("–", ["3 failed"], look="na m"),
        Cell("–", look="na"),
    ]
    ranked = Grid("a", (ROW,), ("8K",), {("m", ROW, "8K"): FOUND["8K"]}, ranks={("m", ROW, "8K"): 2.5})
    _, (_, cell) = grid_table(ranked, ["m"]).rows
    assert cell == Cell("50.0", ["40.0–60.0", "#2.5"], title, ramp="0.500")


def test_heat_maps_have_a_table_a_model_on_one_ramp_that_is_not_too_narrow() -> None:
    cells = {(model, ROW, "8K"): Estimate(mean, counts=Counts(4)) for model, mean in (("m", 0.51), ("n", 0.55))}
    ramp, tables = heat_maps(Grid("a", (ROW,), ("8K",), cells), ["m", "n", "without"])
    assert [ramp.low, ramp.high] == pytest.approx([0.35, 0.55])
    assert [(table.title, table.columns) for table in tables] == [("m", ("", "8K", "n")), ("n", ("", "8K", "n"))]
    (head, (name, score, count)) = tables[1].rows
    assert (head, name, text_of(count)) == (("DocVQA, em",), "docs", "4")
    assert isinstance(score, Cell)
    assert (score.text, score.ramp) == ("55.0", "1.000")


# The audit.


def audits() -> list[FileAudit]:
    found = []
    for number, name in ((40, "b"), (7, "a"), (100, EVIL)):
        audit = FileAudit(f"documentQA/{name}_K8.jsonl", 8192, models={"gemma3": ModelTally()}, dataset=name)
        for _ in range(number):
            audit.examples += 1
            audit.fill.add(0.9)
            audit.fills[18] += 1
            audit.text.add(100)
            audit.image.add(7000)
            audit.images.add(3)
            audit.models["gemma3"].tokens.add(9000)
            audit.models["gemma3"].costliest[EVIL] = 9000
        audit.problem(f"a problem {EVIL}", f"line 1, {EVIL}")
        audit.models["gemma3"].over_window = 1
        found.append(audit)
    return found


def test_the_page_of_an_audit_says_what_was_found_and_nothing_from_data_is_markup() -> None:
    models = models_of("gemma3")
    text = "".join(audit_page(f"Audit of {EVIL}", audits(), models, [f"a note {EVIL}"]))
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=") >= 5
    assert not OUTSIDE.search(text)
    assert "<p>147 examples in 3 files</p>" in text
    assert '<p class="bad">3 problems</p>' in text
    assert "<p>a note " in text
    assert headings(text) == ["problems", "files", "models", "costliest"]
    assert re.findall(r'<a href="#(\w+)">', text) == headings(text)
    assert '<td class=" over" data-key="9000.0">9.0K (2% over)</td>' in text
    without = "".join(audit_page("Audit", [], (), ()))
    assert "<p>no problems</p>" in without
    assert headings(without) == ["files"]


# Shortcuts.


def finding(verdict: Verdict, kind: str = f"gold from {EVIL}", **changes: object) -> Finding:
    common = {"dataset": EVIL, "file": EVIL, "measure": EVIL, "evidence": EVIL, "examples": (EVIL,), "p": 0.0001}
    numbers = {"questions": 40, "clusters": 12, "found": 0.8, "chance": 0.5, "low": 0.1, "high": 0.4}
    given = {**common, **numbers, "smallest": 0.1, "needed": 1234, "kind": kind, "verdict": verdict, **changes}
    return Finding.model_validate(given)


def difficulty() -> Difficulty:
    texts = dict.fromkeys(("dataset", "file", "search"), EVIL)
    numbers = {"length": 8192, "questions": 3, "golds": 3, "units": 9.0, "found": 0.5, "median_rank": 2.5}
    return Difficulty.model_validate({**texts, **numbers, "k_50": 2, "k_90": 7})


def unit(path: str, *, is_gold: bool = False) -> SeenUnit:
    return SeenUnit(is_gold, EVIL, EVIL, path, ((f"bytes {EVIL}", EVIL),))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for number in range(3):
        Image.new("RGB", (600, 400), (80 * number, 0, 0)).save(tmp_path / f"{number}.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    return tmp_path


def of_shortcuts(audit: ShortcutAudit, root: Path, *units: SeenUnit) -> str:
    """The page of an audit; one leak has a question with these units."""
    seen = {(EVIL, f"gold from {EVIL}"): [SeenQuestion(EVIL, EVIL, EVIL, units)]} if units else {}
    urls = ImageUrls(root, "data-uri", shortcuts_page.MAX_PIXELS)
    return "".join(shortcuts_page.shortcuts_page(f"Of {EVIL}", audit, seen, urls))


AUDIT = ShortcutAudit(
    (finding("clean"), finding("undecided"), finding("leak"), finding("leak", "answer in another question", p=None)),
    0.012,
    (f"a note {EVIL}",),
    (difficulty(),),
)


def test_verdicts_of_shortcuts_differ_by_mark_and_word_and_leaks_come_first(images: Path) -> None:
    text = of_shortcuts(AUDIT, images, unit("0.jpg", is_gold=True), unit(EVIL))
    assert EVIL not in text
    assert "<img src=x" not in text
    assert text.count("<script>") == 1
    assert text.count("&lt;img src=x onerror=") > 20
    assert not OUTSIDE.search(text)
    table = text[text.index('id="findings"') : text.index('id="leaks"')]
    assert re.findall(r"(■|◪|□) (\w+)</span>", table) == [
        *(("■", "leak"), ("■", "leak"), ("◪", "undecided"), ("□", "clean")),
    ]
    assert re.findall(r'class="interval (\w+)"', table) == ["sure", "sure", "dashed", "open"]
    assert table.count("1,234") == 1  # only what is undecided says how many questions are needed
    assert "p of the release: 0.012" in text
    assert headings(text) == ["findings", "leaks", "difficulty", "untried", "reading"]
    empty = of_shortcuts(ShortcutAudit((), None, ()), images)
    assert "Nothing could be tried." in empty
    assert headings(empty) == ["reading"]
    assert '<h2 id="difficulty">' in of_shortcuts(ShortcutAudit((), None, (), (difficulty(),)), images)


def test_gold_stands_beside_others_and_few_images_are_small_copies(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = of_shortcuts(AUDIT, images, unit("0.jpg", is_gold=True), *map(unit, ("1.jpg", "broken.jpg", "gone.jpg")))
    assert text.count('class="unit gold"') == text.count("★ gold") == 1
    assert text.count('src="data:image/jpeg;base64,') == 2
    assert text.count("(the image is not in this page)") == 2
    assert len(text) < 60_000
    units = [unit(f"{number % 3}.jpg") for number in range(5)]
    monkeypatch.setattr(shortcuts_page, "MAX_IMAGES", 3)
    assert of_shortcuts(AUDIT, images, *units).count('src="data:') == 3
    monkeypatch.setattr(shortcuts_page, "MAX_URL", 100)
    assert of_shortcuts(AUDIT, images, *units).count('src="data:') == 0


def contexts(verdict: NeedVerdict, facet: str = "") -> ContextRow:
    reason = "too few" if verdict == "undecided" else ""
    need = {"part": "context", "verdict": verdict, "reason": reason, "smallest": 0.1, "needed": 77}
    numbers = {"full": 0.75, "other": 0.25, "mean": 0.5, "low": 0.4, "high": 0.6, "chance": 0.25}
    survival = {"survival": 0.0, "survival_low": -0.1, "survival_high": None}
    counts = {"examples": 12, "questions": 12, "clusters": 6}
    difference = {"context": EVIL, **numbers, **counts, **survival, "need": need}
    means = [
        {"context": "", "mean": 0.75, "low": 0.7, "high": 0.8, "questions": 12},
        {"context": EVIL, "mean": 0.25, "low": None, "high": None, "questions": 12},
    ]
    about = {"model": EVIL, "dataset": EVIL, "length": None if facet else 8192, "facet": facet, "value": facet}
    return ContextRow.model_validate({**about, "chance": 0.25, "means": means, "differences": [difference]})


def test_the_page_of_contexts_has_verdicts_scores_and_blind_questions() -> None:
    counts = BlindCounts(dataset=EVIL, questions=9, right=5, binary=2, listed=1, by_luck=0.2)
    numbers = {"right": 3, "answers": 4, "independent": 4, "chance": 0.25, "luck": 0.004}
    blind = BlindQuestion.model_validate({"dataset": EVIL, "id": EVIL, "models": (EVIL,), **numbers})
    rows = (contexts("needs"), contexts("undecided"), contexts("does not need"), contexts("needs", EVIL))
    audit = ContextAudit(
        models=(EVIL,), contexts=("", EVIL), rows=rows, blind=(blind,), blind_counts=(counts,), notes=(EVIL,)
    )
    text = "".join(contexts_page(EVIL, audit))
    assert EVIL not in text
    assert text.count("<script>") == 1
    assert not OUTSIDE.search(text)
    assert headings(text) == ["needs", "scores", "facets", "blind", "noted"]
    table = text[text.index('<h2 id="needs">') : text.index('<h2 id="scores">')]
    assert re.findall(r"(■|◪|□) ([a-z ]+):? the context</span>", table) == [
        *(("■", "does not need"), ("◪", "undecided"), ("□", "needs")),
    ]
    assert "too few; about 77 questions would decide" in table
    assert ">0 %<" in table.replace("\n", "")
    assert "8K" in table
    empty = ContextAudit(models=("m",), contexts=("",), rows=(), blind=(), blind_counts=(), notes=())
    assert headings("".join(contexts_page("t", empty))) == ["scores"]


# The report.


def lines() -> list[Line]:
    """Scores of three models by two metrics over two datasets and lengths, with every field and hostile names."""
    made: list[Line] = []
    for model in (f"a {EVIL}", "b", "c-" + "long-" * 20):
        for metric in ("em", f"judge {EVIL}\x1b[31m"):
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


def test_the_report_has_every_part_as_a_page_and_in_a_terminal_and_nothing_from_data_is_obeyed(tmp_path: Path) -> None:
    scores, path = write(tmp_path / "scores", lines()), tmp_path / "report.html"
    printed = command("report", scores, "--html", path)
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=") >= 20
    assert not OUTSIDE.search(text)
    assert "<script" not in text
    assert "1 absent, 1 failed" in text
    assert "no JSON" in text
    parts = "profiles averages datasets depth facets correlations missing details"
    assert headings(text) == parts.split()
    assert printed.code == 0
    assert "\x1b" not in printed.out
    for part in ("averages", "between datasets"):
        assert part in printed.out
    long = [each for each in printed.out.splitlines() if len(each) > 100 and "c-long" not in each and " × " not in each]
    whole = ("in no category", "totals of", "unknown (", "1 a", "3 c")
    assert not [each for each in long if not each.startswith(whole) and EVIL not in each]
    found = json.loads(command("report", scores, "--json").out)
    assert found["resamples"] == 1000
    keys = {"model", "metric", "row", "column", "mean", "interval", "examples", "absent", "failed"}
    assert keys <= set(found["scores"]["cells"][0])
    assert command("report", scores, "-q").out == ""


def test_a_report_of_one_score_or_of_names_that_nothing_can_show_is_a_page_too(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert command("report", write(tmp_path / "one", [absent(1, category="")]), "--html", path).code == 0
    text = path.read_text("utf-8")
    assert "nothing is absent" not in text
    assert "in no category, and in no average: docs" in text
    odd = line("\ud800", 1.0, model="\udfff\n", facets={"\ud800": ["\x07"]})
    assert command("report", write(tmp_path / "odd", [odd]), "--html", path).code == 0
    assert path.read_bytes() != text.encode()


# One example.


@pytest.fixture
def hostile(tiles: Path, tmp_path: Path) -> Path:
    """A release with markup in every field of the first record that can have any, and without items."""
    release = linked(tiles, tmp_path / "copy")
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    record = json.loads(first)
    picture = "\"><img src=x onerror=alert(1)>'.png"
    shutil.copy(release / "mmlb_image/tiles/0.png", release / "mmlb_image/tiles" / picture)
    units = [[EVIL, body, EVIL] for _, body, _ in record["units"]]
    units[0][1] = f"image: tiles/{picture}"
    record |= {"id": EVIL, "answer": [EVIL], "units": units, "tile": EVIL}
    path.write_text("\n".join([json.dumps(record), *others]), "utf-8")
    (release / "items/tiles/headed_K1.parquet").unlink()
    return release


def shown(release: Path, dataset: str) -> tuple[Release, ShownExample]:
    opened = open_release(release)
    return opened, shown_example(opened, find_example(opened, dataset=dataset)[0])


def of_example(release: Path, dataset: str = "headed", most_embedded: int = MAX_EMBEDDED) -> str:
    return "".join(show_page(*shown(release, dataset), most_embedded))


def test_the_page_has_the_prompt_in_order_with_each_image_in_its_place(tiles: Path) -> None:
    text = of_example(tiles)
    found = re.findall(r'<img src="(data:image/png;base64,[^"]+)" alt="([^"]+)"', text)
    assert [path for _, path in found] == [f"tiles/{number}.png" for number in range(12)]
    assert len({data for data, _ in found}) == 12
    assert re.findall(r'<article id="block-(\d+)"', text) == [str(number) for number in range(14)]
    plain = unescape(re.sub(r"<[^>]+>", "", text))
    parts = (
        "Look at the tiles.",
        "A tile:\n0.png",
        "A tile:\n11.png",
        "Question: which one is 0.png?",
        "scored by sub_em",
    )
    places = [plain.index(part) for part in parts]
    assert places == sorted(places)
    assert "token 25 negative 1.png" not in plain, "an id that the path shows is not repeated"
    assert "token 8 needle" in " ".join(plain.split())
    marks = re.findall("<mark>(.*?)</mark>", of_example(tiles, "blanks"))
    assert sorted(marks) == ["The secret number 0 is 222.", "The secret number 1 is 333."]


def test_the_bar_is_to_scale_and_marks_needles(tiles: Path) -> None:
    _, found = shown(tiles, "headed")
    bar = list(segments(found))
    assert [each.look for each in bar] == ["frame", "needle", *["negative"] * 11, "frame", "reserve"]
    assert [each.marks for each in bar if each.marks] == [("needle",)]
    needle = found.units[0].unit
    assert needle is not None
    assert bar[1].left == pytest.approx(100 * needle.start / 1024, abs=0.001)
    assert bar[1].width == pytest.approx(100 * needle.tokens / 1024, abs=0.001)
    assert bar[-1].left + bar[-1].width == pytest.approx(100 * (found.tokens.total + found.reserve) / 1024, abs=0.001)
    assert all(one.left + one.width <= other.left + 0.001 for one, other in pairwise(bar))


def test_a_page_over_the_bound_refers_to_the_files_and_says_so(tiles: Path) -> None:
    text = of_example(tiles, most_embedded=100)
    assert "data:image" not in text
    assert f'<img src="{(tiles / "mmlb_image/tiles/0.png").as_uri()}"' in text
    assert "this page refers to the files of the release" in text
    assert "this page refers to" not in of_example(tiles)


def test_nothing_from_data_is_markup_and_without_items_there_is_no_bar(hostile: Path) -> None:
    for most in (MAX_EMBEDDED, 1):
        text = of_example(hostile, most_embedded=most)
        assert text.count("&lt;img src=x onerror=") >= 25
        assert not re.search(r"<img (?!src=\"(data:image/|file:///))", text)
        assert "<script" not in text
        addresses = re.findall(r"(?:src|href)=[\"']([^\"']*)", text)
        assert all(re.match(r"data:image/|file:///|#", address) for address in addresses)
        assert not re.search(r"@import|url\(", text)
    assert '<div class="bar"' not in text
    assert "start tokens and roles are not known" in text
    assert "The places of the units are not known." in text


def test_the_command_show_writes_the_page(tiles: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    ran = command("show", tiles, "tile-1", "--placement", "1", "--html", path)
    assert (ran.code, ran.out, ran.err) == (0, f"{path}: written, with 12 images inside\n", "")
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>tile-1, depth 1</title>" in text
