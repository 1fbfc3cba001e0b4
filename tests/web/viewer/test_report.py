"""The report in the viewer: its curves, and that each point leads to its examples."""

import json
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient
from viewing import client, site_of

from mmlongbench.errors import ReleaseError
from mmlongbench.web.viewer.curves import read_curves
from mmlongbench.web.viewer.curving import curves_of
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.static_site import write_site


@pytest.fixture(scope="module")
def site(tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with scores of two models by depth; one has the middle wrong."""
    folder = tmp_path_factory.mktemp("scores")
    found = site_of(tiles)
    file = next(file for file in found.viewed.files if file.dataset == "headed")
    for model in ("one", "two"):
        lines = [
            {
                "model": model,
                "metric": "sub_em",
                "profile": "official",
                "is_own": True,
                "file": file.name,
                "dataset": "headed",
                "length": file.length,
                "id": row.id,
                "depth": row.placement,
                "facets": dict(row.facets) or {"colour": ["red", "a, b"]},
                "status": "scored",
                "score": float(model == "one" or row.placement != 0.4),
            }
            for row in found.index.file(file.number).rows
        ]
        (folder / f"{model}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    site = site_of(tiles, scores=[folder])
    read_curves(site.answers.score_paths, compute=curves_of)  # so that the page need not start a process
    return site


@pytest.fixture(scope="module")
def asked(site: Site) -> TestClient:
    return client(site)


def points(asked: TestClient) -> dict[str, str]:
    """The addresses of points, by what is said about them."""
    parts = asked.get("/report").text.split('<a class="go" href="')[1:]
    return {unescape(part.split('aria-label="')[1].split('"')[0]): unescape(part.split('"')[0]) for part in parts}


def test_a_point_leads_to_its_examples_the_worst_first(asked: TestClient, site: Site) -> None:
    number = site.viewed.datasets.index("headed")
    found = points(asked)
    assert all(each.startswith(f"/dataset/{number}#") for each in found.values())
    at_depth = next(each for said, each in found.items() if said.startswith("two, 0.4: 0.0"))
    query = dict(parse_qsl(at_depth.partition("#")[2]))
    assert (query["placement"], query["sort"], query["model"]) == ("~0.4", "score", "two")
    rows = asked.get(f"/data/dataset/{number}/rows", params=query).json()["rows"]
    assert {row["placement"] for row in rows} == {"depth 0.4"}
    assert {tuple(row["scores"]) for row in rows} == {(1.0, 0.0)}
    at_length = next(each for said, each in found.items() if said.startswith("one, 1K: 100.0"))
    assert "6 examples" in next(said for said in found if said.startswith("one, 1K: 100.0"))
    assert dict(parse_qsl(at_length.partition("#")[2]))["length"] == "1K"


def test_the_table_is_filtered_by_facet_and_placement(asked: TestClient, site: Site, finished: Path) -> None:
    number = site.viewed.datasets.index("headed")
    rows = f"/data/dataset/{number}/rows"
    assert asked.get(rows, params={"placement": "0.4"}).json()["total"] == 2
    assert asked.get(rows, params={"placement": "0.39"}).json()["total"] == 0
    documents = client(site_of(finished))
    every = documents.get("/data/dataset/0/rows").json()
    facet = next(each for row in every["rows"] for each in row["facets"])
    name, _, value = facet.partition(": ")
    one = f"{name}: {value.split(', ')[0]}"
    some = documents.get("/data/dataset/0/rows", params={"facet": one}).json()
    assert 0 < some["total"] <= every["total"]
    assert all(any(each.startswith(f"{name}: ") for each in row["facets"]) for row in some["rows"])
    assert documents.get("/data/dataset/0/rows", params={"facet": "no: such"}).json()["total"] == 0


def test_without_scores_there_is_no_report(tiles: Path) -> None:
    asked = client(site_of(tiles))
    assert asked.get("/report").status_code == 404
    assert "/report" not in asked.get("/").text


def test_scores_that_cannot_be_compared_are_named(tiles: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("{}\n", "utf-8")
    with pytest.raises(ReleaseError, match=r"bad\.jsonl"):
        read_curves([path], compute=curves_of)


def test_a_server_does_not_load_what_computes_curves(site: Site) -> None:
    """Pandas would take two thirds of the memory that a server may have."""
    script = (
        "import sys, pathlib, mmlongbench.web.viewer.app\n"
        "from mmlongbench.web.viewer.curves import read_curves\n"
        "if __name__ == '__main__':\n"
        "    assert read_curves([pathlib.Path(sys.argv[1])]).figures\n"
        "    assert 'pandas' not in sys.modules\n"
    )
    folder = site.answers.score_paths[0]
    ran = subprocess.run(
        [sys.executable, "-c", script, folder / "one.jsonl"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


DEPTHS = (0.04, 0.05, 0.15, 0.2, 0.25, 0.35, 0.4, 0.45, 0.5, 0.55, 0.65, 0.75, 0.95)


@pytest.fixture(scope="module")
def deep(tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with one example at each of more depths than a report shows; each model has other examples wrong."""
    folder = tmp_path_factory.mktemp("deep")
    release = Path(shutil.copytree(tiles, folder / "release"))
    path = next((release / "mmlb_data").rglob("headed_K1.jsonl"))
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    found = [{**records[0], "id": f"at_{depth}", "depth": depth} for depth in DEPTHS]
    path.write_text("".join(json.dumps(each) + "\n" for each in found), "utf-8")
    site, scores = site_of(release), folder / "scores.jsonl"
    file = next(each for each in site.viewed.files if each.name.endswith("headed_K1.jsonl"))
    assert [row.placement for row in site.index.file(file.number).rows] == list(DEPTHS)
    lines = [
        {
            "model": model,
            "metric": "sub_em",
            "is_own": True,
            "file": file.name,
            "dataset": file.dataset,
            "length": file.length,
            "id": row.id,
            "depth": row.placement,
            "status": "scored",
            "score": float((row.row % 2 == 0) == (model == "even")),
        }
        for row in site.index.file(file.number).rows
        for model in ("even", "odd")
    ]
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    site = site_of(release, scores=[scores])
    read_curves(site.answers.score_paths, compute=curves_of)
    return site


def test_a_point_of_rounded_depths_leads_to_all_its_examples_the_worst_of_its_model_first(deep: Site) -> None:
    asked = client(deep)
    found = {said: to for said, to in points(asked).items() if "placement=" in to}
    assert len(found) == 2 * len({round(10 * depth) for depth in DEPTHS})
    for said, to in found.items():
        query = dict(parse_qsl(to.partition("#")[2]))
        rows = asked.get(f"/data{to.partition('#')[0]}/rows", params=query).json()["rows"]
        assert f", {len(rows)} example" in said, (said, [row["placement"] for row in rows])
    whole = {said: to for said, to in points(asked).items() if "placement=" not in to}
    assert {said.partition(",")[0] for said in whole} == {"even", "odd"}
    for said, to in whole.items():
        query = dict(parse_qsl(to.partition("#")[2]))
        rows = asked.get(f"/data{to.partition('#')[0]}/rows", params=query).json()["rows"]
        scores = [row["scores"][said.startswith("odd")] for row in rows]
        assert scores == sorted(scores)
        assert set(scores) == {0.0, 1.0}


@pytest.mark.slow
def test_points_lead_to_the_same_examples_in_a_site_of_files(deep: Site, chromium: Browser, tmp_path: Path) -> None:
    write_site(deep, tmp_path / "site", limit=1)
    number = deep.viewed.datasets.index("headed")
    asked, page = client(deep), chromium.new_page()
    try:
        page.goto((tmp_path / f"site/dataset-{number}.html").as_uri())
        for said, to in points(asked).items():
            wanted = asked.get(f"/data/dataset/{number}/rows", params=dict(parse_qsl(to.partition("#")[2]))).json()
            page.evaluate("hash => { location.hash = hash; }", to.partition("#")[2])
            page.wait_for_selector(f"#model:has-text('by {said.partition(',')[0]} ×')")
            ids = "[...document.querySelectorAll('#examples tbody th')].map(each => each.textContent)"
            same = f"ids => JSON.stringify({ids}) === JSON.stringify(ids)"
            page.wait_for_function(same, arg=[row["id"] for row in wanted["rows"]])
    finally:
        page.close()


def test_an_unknown_model_sorts_by_all(deep: Site) -> None:
    asked = client(deep)
    params = {"sort": "score", "model": "nobody"}
    number = deep.viewed.datasets.index("headed")
    assert asked.get(f"/data/dataset/{number}/rows", params=params).json()["total"] == len(DEPTHS)
