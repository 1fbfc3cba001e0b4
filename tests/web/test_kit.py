"""The HTML kit: all values are escaped, a missing name is an error, and every page uses the kit."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from mmlongbench.web.charts import COLOURS, look_of
from mmlongbench.web.kit import Section, asset, environment, render, write_page
from mmlongbench.web.tables import Cell

ENGINE = Path(__file__).parents[2] / "mmlongbench"
EVIL = "\"'><script>document.title='run'</script>&{{ 7 * 7 }}{% raise %}"


def text_of(source: str, **values: object) -> str:
    return environment().from_string(source).render(**values)


def test_every_template_is_compiled() -> None:
    names = environment().list_templates()
    assert {"base.html", "audit.html", "report.html"} <= set(names)
    for name in names:
        environment().get_template(name)


def test_a_name_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        "".join(render("base.html", sections=[]))
    with pytest.raises(UndefinedError, match="has no attribute 'maen'"):
        text_of("{{ cell.maen }}", cell=Cell())


@pytest.mark.parametrize(
    "source",
    [
        '<p title="{{ evil }}">{{ evil }}</p>',
        '{% from "parts.html" import contents, heading, notes %}'
        '{{ contents(sections) }}{{ heading(evil, evil, "s", 0) }}{{ notes([evil]) }}',
        '{% from "tables.html" import cells, number, sortable %}{{ cells(row) }}{{ number(evil, evil) }}'
        "{% call sortable([(evil, true)]) %}{{ evil }}{% endcall %}",
        '{% from "charts.html" import legend %}{{ legend([(evil, look)]) }}',
    ],
)
def test_hostile_values_are_text_wherever_they_are_shown(source: str) -> None:
    row = [Cell(EVIL, EVIL, EVIL, EVIL, (EVIL,), EVIL), Cell(EVIL, look=EVIL, key=EVIL)]
    text = text_of(source, evil=EVIL, row=row, look=look_of(0), sections=[Section("s", EVIL, [(EVIL, EVIL)])])
    assert text.count("&lt;script&gt;") == text.count("{{ 7 * 7 }}") >= 1
    assert "<script" not in text
    assert EVIL[:2] not in text
    assert not re.search(r"=\"[^\"]*'", text), "no quote ends an attribute"


def test_the_stylesheet_has_a_colour_for_each_model_in_light_and_dark() -> None:
    style = asset("page.css")
    assert [style.count(f"--m{number}:") for number in range(COLOURS + 1)] == [2] * COLOURS + [0]
    assert "{#" not in style


def test_what_utf_8_cannot_hold_is_written_as_an_escape(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(path, ["<p>", "\ud800", "é</p>"])
    assert path.read_bytes() == b"<p>\\ud800\xc3\xa9</p>"


def test_a_page_that_fails_half_way_leaves_no_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "<p>"
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        write_page(tmp_path / "page.html", pieces())
    assert list(tmp_path.iterdir()) == []


def test_no_markup_is_written_in_python() -> None:
    found = [
        (path.relative_to(ENGINE).as_posix(), node.value[:40])
        for path in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.search(r"</(p|td|th|tr|table|h\d|div|span|svg|body|html)>|<!doctype", node.value, re.IGNORECASE)
    ]
    assert not found
