"""The public file of a length: one JSON object with, for each domain, its sets of rounds and its test images.

`{domain: {"exemplar_list": [[[{"image", "id"}, … one round], … rounds], … sets], "all_token_count": [one a set],
"test_example": [{"id", "name", "image", "answer"}, …]}}`

Public loaders ignore the further fields. `sets` has the number of each set in the frozen records, which are the lines
of the `.frozen.jsonl` file. `labels` has the class names by label. `tokens` has the reserve and, for each set, the text
tokens of a prompt and the image tokens of the exemplars. Each test image has its `image_tokens`. Files that others made
lack these fields.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mmlongbench.task as mt

_TEST_FIELDS = ("id", "name", "image", "answer", "image_tokens")


class OneObject(mt.readers.FileFormat):
    """Turns frozen records into the public object, and the public object into one record for each pair of a set and a
    test image.
    """

    def bundle(self, records: Iterable[mt.Record]) -> Iterator[bytes]:
        """Yield the object; `all_token_count` has the tokens of each set's prompt with the costliest test image."""
        domains: dict[str, tuple[dict[int, mt.Record], dict[str, mt.Record]]] = {}
        for record in records:
            costliest, tests = domains.setdefault(record["domain"], ({}, {}))
            if record["length"] > costliest.setdefault(record["set"], record)["length"]:
                costliest[record["set"]] = record
            tests[record["id"]] = record
        public = {name: _domain(*domains[name]) for name in sorted(domains)}
        yield json.dumps(public, ensure_ascii=False).encode() + b"\n"

    def unbundle(self, path: Path) -> Iterator[tuple[str, mt.Record]]:
        """Yield (place, record) for every pair of a set and a test image, because a loader may use any pair."""
        try:
            public = mt.readers.load_json(path, "one JSON object")
        except mt.readers.SourceError as error:
            raise mt.metrics.ReleaseError(f"{path.name}: expected one JSON object, found {error}") from error
        if not isinstance(public, dict):
            raise mt.metrics.ReleaseError(f"{path.name}: expected a JSON object, found {type(public).__name__}")
        for name, domain in public.items():
            try:
                pairs = list(_pairs(name, domain))
            except (KeyError, TypeError, IndexError, AttributeError) as error:
                what = f"{type(error).__name__}: {error}"
                raise mt.metrics.ReleaseError(f"{path.name}: {name}: is no domain of sets and tests: {what}") from error
            yield from pairs

    def without(self, path: Path, is_dropped: Callable[[mt.Record], bool]) -> Iterator[bytes]:
        """Return the object without the sets, the test images and the domains of which every pair is dropped."""
        kept: dict[str, tuple[set[int], set[str]]] = {}
        for _, record in self.unbundle(path):
            if not is_dropped(record):
                sets, tests = kept.setdefault(record["domain"], (set(), set()))
                sets.add(record["set"])
                tests.add(record["id"])
        public: Any = mt.readers.load_json(path, "one JSON object")
        left = {name: _without(domain, *kept[name]) for name, domain in public.items() if name in kept}
        yield json.dumps(left, ensure_ascii=False).encode() + b"\n" if left else b""


def _domain(costliest: Mapping[int, mt.Record], tests: Mapping[str, mt.Record]) -> mt.Record:
    """Return a domain from the record of the costliest test image of each set, and a record of each test image."""
    sets = [costliest[number] for number in sorted(costliest)]
    first = next(iter(tests.values()))
    size = len(first["labels"])
    return {
        "exemplar_list": [
            [record["exemplars"][start : start + size] for start in range(0, len(record["exemplars"]), size)]
            for record in sets
        ],
        "all_token_count": [record["length"] for record in sets],
        "test_example": [{field: test[field] for field in _TEST_FIELDS} for test in tests.values()],
        "sets": sorted(costliest),
        "labels": first["labels"],
        "tokens": {
            "reserve": first["tokens"]["reserve"],
            "text": [record["tokens"]["text"] for record in sets],
            "image": [record["tokens"]["image"] - record["image_tokens"] for record in sets],
        },
    }


def _without(domain: mt.Record, sets: set[int], tests: set[str]) -> mt.Record:
    """Return a domain with only these sets and test images; files that others made may lack any further field."""
    numbers = domain.get("sets") or range(len(domain["exemplar_list"]))
    places = [place for place, number in enumerate(numbers) if number in sets]
    shown = [test for test in domain["test_example"] if test["id"] in tests]
    before, after = (max(test.get("image_tokens", 0) for test in some) for some in (domain["test_example"], shown))
    left: mt.Record = {**domain, "exemplar_list": [domain["exemplar_list"][place] for place in places]}
    if counts := domain.get("all_token_count"):
        left["all_token_count"] = [counts[place] - before + after for place in places]
    left |= {"test_example": shown, "sets": [numbers[place] for place in places]}
    if tokens := domain.get("tokens"):
        left["tokens"] = tokens | {key: [tokens[key][place] for place in places] for key in ("text", "image")}
    return left


def _pairs(name: str, domain: mt.Record) -> Iterator[tuple[str, mt.Record]]:
    tests, tokens = domain["test_example"], domain.get("tokens")
    costliest = max((test.get("image_tokens", 0) for test in tests), default=0)
    for index, rounds in enumerate(domain["exemplar_list"]):
        exemplars = [shown for turn in rounds for shown in turn]
        for place, test in enumerate(tests):
            number = (domain.get("sets") or range(index + 1))[index]
            record: mt.Record = {"domain": name, "set": number, "exemplars": exemplars, **test}
            if tokens:
                cost = test["image_tokens"]
                image = tokens["image"][index] + cost
                record["tokens"] = {"text": tokens["text"][index], "image": image, "reserve": tokens["reserve"]}
                record["length"] = domain["all_token_count"][index] - costliest + cost
            yield f"{name}, set {index}, test {place}", record
