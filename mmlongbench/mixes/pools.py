"""The examples that a mix may take, in pools: items that may be taken in the same ways, in a drawn order.

An item is a question, or a single example if a mix may have a question several times. An item is taken at most once. A
question that two datasets ask, such as with pages as images and as texts, is one item.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.release.release import Release


@dataclass(frozen=True, slots=True)
class Candidate:
    """An example that a mix may take."""

    dataset: str
    """The name of its dataset."""
    length: int
    """The length of its file, in tokens."""
    id: str
    """The id of its question."""
    placement: float | None
    """The depth or the number of the permutation."""
    tokens: int
    """The tokens of its prompt, as the release counts them."""
    question: bytes
    """A digest that is the same for the same question, in any dataset."""


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """A way in which an item may be taken."""

    dataset: str
    """As a question of this dataset."""
    length: int
    """At this length, in tokens."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Items that may be taken in the same ways."""

    ways: tuple[Way, ...]
    """The ways, in order; each item has a candidate for each."""
    items: tuple[Mapping[Way, Candidate], ...]
    """The items in a drawn order: the candidate for each way."""

    def mean(self, way: Way) -> float:
        """Return the mean tokens of the items, taken in one way."""
        return sum(item[way].tokens for item in self.items) / len(self.items)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a release offers for a mix."""

    pools: tuple[Pool, ...]
    """What may be taken; no item is in two pools."""
    tasks: Mapping[str, str]
    """The name of the share that each dataset belongs to."""
    unanswered: int
    """The number of examples that cannot be taken because the release has no answer."""
    candidates: tuple[Candidate, ...] = ()
    """All examples that the pools were drawn from, at every placement."""

    def only(self, spec: MixSpec, is_taken: Callable[[Candidate], bool]) -> "Offer":
        """Return an offer of some of these examples. A question whose drawn placement is not among them is offered at
        another placement.
        """
        found = tuple(filter(is_taken, self.candidates))
        return replace(self, pools=tuple(pools_of(found, spec)), candidates=found)


def tasks_of(release: Release, spec: MixSpec) -> dict[str, str]:
    """Return the name of the share that each dataset of a mix belongs to, in the order of the release.

    Raises:
        ReleaseError: a name of the mix is no dataset and no folder of the release, or a dataset has two shares.

    """
    folders = {name: _folder(release, name) for name in release.datasets if release.lengths(name)}
    if spec.tasks is None:
        return {name: name for name in folders}
    found: dict[str, str] = {}
    for task in spec.tasks[1]:
        names = [task] if task in folders else [name for name, folder in folders.items() if folder == task]
        if not names:
            known = [*dict.fromkeys(folders.values()), *folders]
            raise ReleaseError(
                f"mix: task {task!r}: {release.path.name} has no such dataset or folder; there are {', '.join(known)}"
                f"{nearest(task, known)}"
            )
        for name in names:
            if name in found:
                raise ReleaseError(f"mix: {name} belongs to {found[name]!r} and to {task!r}; leave one of them out")
            found[name] = task
    return {name: found[name] for name in folders if name in found}


def _folder(release: Release, dataset: str) -> str:
    """Return the folder of the public files of a dataset, which names its family."""
    return release.file(dataset, release.lengths(dataset)[0]).name.split("/")[0]


def offer_of(release: Release, spec: MixSpec) -> Offer:
    """Return what a release offers for a mix.

    Raises:
        ReleaseError: a name of the mix does not exist, a length has no example, or a file cannot be read.

    """
    every, unanswered, tasks = list[Candidate](), 0, tasks_of(release, spec)
    wanted = _wanted_lengths(release, spec, tasks)
    for dataset in tasks:
        found, without = _candidates(release, dataset, wanted)
        unanswered += without
        every += found
    return Offer(tuple(pools_of(every, spec)), tasks, unanswered, tuple(every))


def _wanted_lengths(release: Release, spec: MixSpec, tasks: Iterable[str]) -> tuple[int, ...]:
    there = sorted({length for dataset in tasks for length in release.lengths(dataset)})
    wanted = tuple(spec.lengths[1]) if spec.lengths else tuple(there)
    if missing := [length for length in wanted if length not in there]:
        raise ReleaseError(
            f"mix: no dataset of the mix has examples of {format_length(missing[0])}; {release.path.name} has "
            f"{', '.join(map(format_length, there))}"
        )
    return wanted


def _candidates(release: Release, dataset: str, lengths: Iterable[int]) -> tuple[list[Candidate], int]:
    """Return the answered examples of a dataset at some lengths, and the number of those without an answer."""
    found, without = [], 0
    for length in [each for each in lengths if each in release.lengths(dataset)]:
        for size in release.sizes(dataset, length):
            if size.has_answer:
                found.append(Candidate(dataset, length, size.id, size.placement, size.tokens, size.question))
            else:
                without += 1
    return found, without


def pools_of(candidates: Iterable[Candidate], spec: MixSpec) -> Iterator[Pool]:
    """Yield the pools of candidates. Their order has no effect."""
    draws = Draws((spec.seed, "mix"))
    items = dict(_items(candidates, draws, spec))
    pools: dict[tuple[Way, ...], list[Mapping[Way, Candidate]]] = defaultdict(list)
    for name in draws.order("items", items):
        pools[tuple(sorted(items[name]))].append(items[name])
    for ways in sorted(pools):
        yield Pool(ways, tuple(pools[ways]))


def _items(candidates: Iterable[Candidate], draws: Draws, spec: MixSpec) -> Iterator[tuple[str, dict[Way, Candidate]]]:
    """Yield the name of each item, and its candidate for each way."""
    placed: dict[str, dict[Way, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for each in candidates:
        alone = f" {each.dataset} {each.length} {each.id} {each.placement}" if spec.once == "example" else ""
        placed[f"{each.question.hex()}{alone}"][Way(each.dataset, each.length)].append(each)
    for name, ways in placed.items():
        yield name, {way: _placed(found, draws.at(name)) for way, found in ways.items()}


def _placed(found: list[Candidate], draws: Draws) -> Candidate:
    """Return the example of a question at a drawn placement, which does not depend on the length."""
    return draws.order("placement", found, lambda each: f"{each.dataset} {each.id} {each.placement}")[0]
