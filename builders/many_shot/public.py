"""The public file of a length: one JSON object with, for each domain, its sets of rounds and its test images.

`{domain: {"exemplar_list": [[[{"image", "id"}, … one round], … rounds], … sets], "all_token_count": [one a set],
"test_example": [{"id", "name", "image", "answer"}, …]}}`

Public loaders ignore the further fields. `sets` has the number of each set in the frozen records, which are the lines
of the `.frozen.jsonl` file. `labels` has the class names by label. `tokens` has the reserve and, for each set, the text
tokens of a prompt and the image tokens of the exemplars. Each test image has its `image_tokens`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import mmlongbench.task as mt


class _Exemplar(TypedDict):
    image: str
    id: int


class _Test(TypedDict):
    id: str
    name: str
    image: str
    answer: int
    image_tokens: int


class _Tokens(TypedDict):
    """The tokens of a frozen record."""

    text: int
    image: int
    reserve: int


class _Frozen(_Test):
    """A frozen record, with a fixed set and order of exemplars."""

    domain: str
    set: int
    length: int
    exemplars: list[_Exemplar]
    labels: list[str]
    tokens: _Tokens


class _TokensOfSets(TypedDict):
    reserve: int
    text: list[int]
    image: list[int]


class _Domain(TypedDict):
    """A domain of the public object; files that others made lack the last three fields."""

    exemplar_list: list[list[list[_Exemplar]]]
    all_token_count: list[int]
    test_example: list[_Test]
    sets: NotRequired[list[int]]
    labels: NotRequired[list[str]]
    tokens: NotRequired[_TokensOfSets]


@dataclass(slots=True)
class _Found:
    """The records of a domain."""

    first: _Frozen
    sets: dict[int, _Frozen] = field(default_factory=dict)
    """The record of the costliest test image of each set, by the number of the set."""
    tests: dict[str, _Frozen] = field(default_factory=dict)


class OneObject(mt.FileFormat):
    """Turns frozen records into the public object, and the public object into one record for each pair of a set and a
    test image.
    """

    def bundle(self, records: Iterable[mt.Record]) -> Iterator[bytes]:
        """Yield the object; `all_token_count` has the tokens of each set's prompt with the costliest test image."""
        domains: dict[str, _Found] = {}
        for record in records:
            frozen = cast("_Frozen", record)
            domain = domains.setdefault(frozen["domain"], _Found(frozen))
            costliest = domain.sets.get(frozen["set"])
            if costliest is None or costliest["length"] < frozen["length"]:
                domain.sets[frozen["set"]] = frozen
            domain.tests[frozen["id"]] = frozen
        public = {name: _public(found) for name, found in sorted(domains.items())}
        yield json.dumps(public, ensure_ascii=False).encode() + b"\n"

    def unbundle(self, path: Path) -> Iterator[tuple[str, mt.Record]]:
        """Yield (place, record) for every pair of a set and a test image, because a loader may use any pair."""
        try:
            found = mt.load_json(path, "one JSON object")
        except mt.SourceError as error:
            raise mt.ReleaseError(f"{path.name}: expected one JSON object, found {error}") from error
        if not isinstance(found, dict):
            raise mt.ReleaseError(f"{path.name}: expected a JSON object, found {type(found).__name__}")
        for name, domain in found.items():
            try:
                pairs = list(_pairs(name, domain))
            except (KeyError, TypeError, IndexError, AttributeError) as error:
                what = f"{type(error).__name__}: {error}"
                raise mt.ReleaseError(f"{path.name}: {name}: is no domain of sets and tests: {what}") from error
            yield from pairs

    def without(self, path: Path, is_dropped: Callable[[mt.Record], bool]) -> Iterator[bytes]:
        """Return the object without the sets, the test images and the domains of which every pair is dropped."""
        kept: dict[str, tuple[set[int], set[str]]] = {}
        for _, record in self.unbundle(path):
            sets, tests = kept.setdefault(record["domain"], (set(), set()))
            if not is_dropped(record):
                sets.add(record["set"])
                tests.add(record["id"])
        found = cast("dict[str, _Domain]", mt.load_json(path, "one JSON object"))
        public = {name: _without(domain, *kept[name]) for name, domain in found.items() if kept[name][0]}
        yield json.dumps(public, ensure_ascii=False).encode() + b"\n" if public else b""


def _without(domain: _Domain, sets: set[int], tests: set[str]) -> _Domain:
    """Return a domain with only these sets and test images."""
    numbers = domain.get("sets") or list(range(len(domain["exemplar_list"])))
    places = [place for place, number in enumerate(numbers) if number in sets]
    shown = [test for test in domain["test_example"] if test["id"] in tests]
    costs = [max(test["image_tokens"] for test in some) for some in (domain["test_example"], shown)]
    found: _Domain = {
        **domain,
        "exemplar_list": [domain["exemplar_list"][place] for place in places],
        "all_token_count": [domain["all_token_count"][place] - costs[0] + costs[1] for place in places],
        "test_example": shown,
        "sets": [numbers[place] for place in places],
    }
    if tokens := domain.get("tokens"):
        image, text = ([tokens[key][place] for place in places] for key in ("image", "text"))
        found["tokens"] = {"reserve": tokens["reserve"], "text": text, "image": image}
    return found


def _public(found: _Found) -> _Domain:
    sets = [found.sets[number] for number in sorted(found.sets)]
    labels = found.first["labels"]
    return {
        "exemplar_list": [_rounds(record["exemplars"], len(labels)) for record in sets],
        "all_token_count": [record["length"] for record in sets],
        "test_example": [
            {
                "id": test["id"],
                "name": test["name"],
                "image": test["image"],
                "answer": test["answer"],
                "image_tokens": test["image_tokens"],
            }
            for test in found.tests.values()
        ],
        "sets": sorted(found.sets),
        "labels": labels,
        "tokens": {
            "reserve": found.first["tokens"]["reserve"],
            "text": [record["tokens"]["text"] for record in sets],
            "image": [record["tokens"]["image"] - record["image_tokens"] for record in sets],
        },
    }


def _rounds(exemplars: list[_Exemplar], labels: int) -> list[list[_Exemplar]]:
    return [exemplars[start : start + labels] for start in range(0, len(exemplars), labels)]


def _pairs(name: str, domain: _Domain) -> Iterator[tuple[str, mt.Record]]:
    tokens = domain.get("tokens")
    costliest = max((test.get("image_tokens", 0) for test in domain["test_example"]), default=0)
    for number, rounds in enumerate(domain["exemplar_list"]):
        exemplars = [shown for turn in rounds for shown in turn]
        for place, test in enumerate(domain["test_example"]):
            record: mt.Record = {
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
