"""A page in a real browser: what goes wrong in it, what it asks other hosts for, and what axe finds."""

from importlib.resources import files

from playwright.sync_api import Page, Request

AXE = files("axe_playwright_python") / "axe.min.js"


class Seen:
    """A page, and what went wrong in it."""

    def __init__(self, page: Page, own: str) -> None:
        self.page, self.own = page, own
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", self._requested)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith(self.own):
            self.elsewhere.append(request.url)

    def open(self, path: str, ready: str) -> Page:
        self.page.goto(self.own + path)
        self.page.wait_for_selector(ready, state="attached")
        return self.page


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds: rules, each with the beginnings of elements."""
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found]
