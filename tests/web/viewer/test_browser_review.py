"""The review and the report in a real browser: their keys, and what they write and lead to."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser
from reviewed import reviewing, suspect_lines
from seen import Seen
from viewing import served

from mmlongbench.manifest.errata import load_errata
from mmlongbench.web.viewer.site import Site

pytestmark = pytest.mark.slow


def test_keys_of_a_review(seen: Seen, site: Site) -> None:
    assert site.review
    assert site.review.file
    page = seen.open("/review", "table.cells")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review/1")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert "Page 3: proposed" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("k")
    assert "Page 2: claimed" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("n")
    page.wait_for_url("**/review/2")
    page.keyboard.press("p")
    page.wait_for_url("**/review/1")
    page.keyboard.press("a")
    page.wait_for_url("**/review/2")
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type("oak")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.wait_for_url("**/review/3")
    page.keyboard.press("s")
    page.wait_for_selector("#decided:has-text('keep')")
    assert "all are decided" in page.inner_text("#said")
    assert [each.act for each in site.review.decided().values()] == ["keep", "accept", "revise"]
    for key, act in (("x", "remove"), ("u", "")):
        page.keyboard.press(key)
        page.wait_for_selector(f"#decided[data-act='{act}']")
        page.wait_for_selector("#decision button:enabled")
    page.goto(page.url.replace("/3", "/2"))
    page.keyboard.press("u")
    page.wait_for_selector("#decided[data-act='']")
    assert list(site.review.decided()) == ["mmlongdoc_1"]


def test_a_decision_that_cannot_be_written_is_said(seen: Seen) -> None:
    page = seen.open("/review/3", "#decision button")
    page.keyboard.press("a")
    page.wait_for_selector("#said:has-text('not written')")
    assert any("409" in each for each in seen.errors), "a browser reports every refusal"
    seen.errors.clear()


def test_a_row_with_a_long_field_is_revised_and_only_what_was_changed(
    chromium: Browser, finished: Path, tmp_path: Path
) -> None:
    fields = {"weight": "1", "text": "\n" + "x" * 20_001, "said": "a\rb\r\nc"}
    line = {"dataset": "mmlongdoc", "id": "long", "kind": "k", "evidence": "e", "fields": fields}
    errata = tmp_path / "errata.yaml"
    with served(reviewing(finished, suspect_lines(tmp_path, line), write=errata)) as address:
        page = chromium.new_page()
        page.goto(f"{address}/review/4")
        page.fill("[data-field='weight']", "2")
        page.click("[data-act='revise']")
        page.wait_for_url("**/review/1", timeout=5000)
        page.close()
    assert load_errata(errata)["long"].set == {"weight": "2"}


def test_a_revision_is_shown_and_revised_further(chromium: Browser, finished: Path, tmp_path: Path) -> None:
    errata = tmp_path / "errata.yaml"
    with served(reviewing(finished, suspect_lines(tmp_path), write=errata)) as address:
        page = chromium.new_page()
        for field, value in (("answer", "red"), ("weight", "2")):
            page.goto(f"{address}/review/2#page-9")
            page.fill(f"[data-field='{field}']", value)
            page.click("button[data-act='revise']")
            page.wait_for_url("**/review/3")
        page.goto(f"{address}/review/2")
        assert page.input_value("[data-field='answer']") == "red"
        assert load_errata(errata)["mmlongdoc_2"].set == {"answer": "red", "weight": "2"}
        other = chromium.new_page()
        other.goto(f"{address}/review/2")
        other.click("button[data-act='remove']")
        other.wait_for_url("**/review/3")
        page.click("button[data-act='keep']")
        page.wait_for_selector("#said:has-text('was decided elsewhere')")
        other.close()
        page.close()
    assert load_errata(errata)["mmlongdoc_2"].drop


def test_points_of_the_report_lead_to_their_examples(seen: Seen) -> None:
    page = seen.open("/report", ".curves a.go")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("model, 1K: ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples tbody tr")
    assert page.url.endswith("#length=1K&sort=score&model=model")
    scores = page.locator("#examples tbody td:last-child").all_inner_texts()
    assert scores == sorted(scores, key=float)
    page.goto(page.url.split("#")[0] + "#facet=document type: Bark")
    page.wait_for_selector("#facet:has-text('Bark')")
    some = page.locator("#examples tbody tr").count()
    page.click("#facet")
    page.wait_for_selector("#facet", state="hidden")
    assert 0 < some < page.locator("#examples tbody tr").count()
