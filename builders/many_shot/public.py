"""The public file of a length: one JSON object a domain, its sets of rounds and the test images asked of each.

`{domain: {"exemplar_list": [[[{"image", "id"}, … one round], … rounds], … sets], "all_token_count": [one a set],
"test_example": [{"id", "name", "image", "answer"}, …]}}`, and what public loaders ignore: `sets` (the numbers that
frozen records call them by), `labels` (class names by label), `tokens` (the reserve; text tokens, and image tokens of
the exemplars, a set) and each test's `image_tokens`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mmlongbench as mm


class OneObject(mm.FileFormat):
    """How frozen records become the public object, and how that becomes one record for each set and test image."""

    def bundle(self, records: Iterable[mm.Record]) -> Iterator[bytes]:
        """The object; `all_token_count` holds the tokens of each set with its costliest test image."""
        domains: dict[str, dict[str, Any]] = {}
        for record in records:
            domain = domains.setdefault(record["domain"], {"sets": {}, "tests": {}, "record": record})
            costliest = domain["sets"].get(record["set"])
            if costliest is None or costliest["length"] < record["length"]:
                domain["sets"][record["set"]] = record
            domain["tests"][record["id"]] = record
        public = {name: _public(found) for name, found in sorted(domains.items())}
        yield json.dumps(public, ensure_ascii=False).encode() + b"\n"

    def unbundle(self, path: Path) -> Iterator[tuple[str, mm.Record]]:
        """Every pair of a set and a test image: a loader may ask any."""
        try:
            found = mm.load_json(path, "one JSON object")
        except mm.SourceError as error:
            raise mm.ReleaseError(f"{path.name}: expected one JSON object, found {error}") from error
        if not isinstance(found, dict):
            raise mm.ReleaseError(f"{path.name}: expected a JSON object, found {type(found).__name__}")
        for name, domain in found.items():
            try:
                pairs = list(_pairs(name, domain))
            except (KeyError, TypeError, IndexError, AttributeError) as error:
                what = f"{type(error).__name__}: {error}"
                raise mm.ReleaseError(f"{path.name}: {name}: is no domain of sets and tests: {what}") from error
            yield from pairs


def _public(found: dict[str, Any]) -> dict[str, Any]:
    sets = [found["sets"][number] for number in sorted(found["sets"])]
    labels = found["record"]["labels"]
    return {
        "exemplar_list": [_rounds(record["exemplars"], len(labels)) for record in sets],
        "all_token_count": [record["length"] for record in sets],
        "test_example": [
            {key: test[key] for key in ("id", "name", "image", "answer", "image_tokens")}
            for test in found["tests"].values()
        ],
        "sets": sorted(found["sets"]),
        "labels": labels,
        "tokens": {
            "reserve": found["record"]["tokens"]["reserve"],
            "text": [record["tokens"]["text"] for record in sets],
            "image": [record["tokens"]["image"] - record["image_tokens"] for record in sets],
        },
    }


def _rounds(exemplars: list[dict[str, Any]], labels: int) -> list[list[dict[str, Any]]]:
    return [exemplars[start : start + labels] for start in range(0, len(exemplars), labels)]


def _pairs(name: str, domain: dict[str, Any]) -> Iterator[tuple[str, mm.Record]]:
    tokens = domain.get("tokens")
    costliest = max((test.get("image_tokens", 0) for test in domain["test_example"]), default=0)
    for number, rounds in enumerate(domain["exemplar_list"]):
        exemplars = [shown for turn in rounds for shown in turn]
        for place, test in enumerate(domain["test_example"]):
            record = {
                "domain": name,
                "set": (domain.get("sets") or range(number + 1))[number],
                "exemplars": exemplars,
                **test,
            }
            if tokens:
                cost = test["image_tokens"]
                image = tokens["image"][number] + cost
                record["tokens"] = {"text": tokens["text"][number], "image": image, "reserve": tokens["reserve"]}
                record["length"] = domain["all_token_count"][number] - costliest + cost
            yield f"{name}, set {number}, test {place}", record
