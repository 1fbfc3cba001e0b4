"""Which units or answers are compared to find the right one: gold and other units of its context, and the answers that
a question offers. Only numbers are kept of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mmlongbench.draws import Draws, digest
from mmlongbench.prompt import Image
from mmlongbench.shortcuts import features as f
from mmlongbench.shortcuts.encoding import QUANTISATION, TAGS
from mmlongbench.shortcuts.golds import MAX_CANDIDATES, Group
from mmlongbench.shortcuts.offers import LABEL, OFFER, context_of, of_labels, of_offers
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.shortcuts.titles import CHAIN, PART, TITLE, of_chain, of_parts, of_title

_COMPARED = 60
"""How many units of a context are compared at most; other units are drawn."""
NAMES = "gold from file names"
CHOICE_TEXTS = ("right choice from its text", "right choice from the other choices")
"""The kinds in which the choices are texts; if all questions offer the same ones, only their place could tell."""
KINDS: Mapping[str, Sequence[str]] = {
    NAMES: f.NAME,
    "gold from image files": f.FILE,
    "gold from quantisation": QUANTISATION,
    "gold from metadata of images": f.META,
    "gold from EXIF tags": TAGS,
    "gold from sizes of images": f.SIZE,
    "gold from the form of texts": f.TEXT,
    "gold from titles": TITLE,
    "gold from chained titles": CHAIN,
    "gold from the part of its source": PART,
    "gold from its place": f.PLACE,
    "gold from its neighbours": f.NEIGHBOURS,
    "right choice from its file": (*f.FILE, *QUANTISATION, *f.META, *f.SIZE, *f.NAME),
    CHOICE_TEXTS[0]: f.TEXT,
    CHOICE_TEXTS[1]: OFFER,
    "right label from its exemplars": LABEL,
}
"""The names of the features, by the kind of probe."""


def gold_groups(asked: AskedQuestion, images: f.ImageFacts, *, has_depths: bool) -> Iterator[tuple[str, Group]]:
    """Yield the candidates of a context for each kind of probe: gold, and drawn others of the same medium; of the same
    role, too, if gold is among the document's own units.
    """
    golds, places = candidates(asked)
    if not golds or len(places) == len(golds):
        return
    units = [asked.units[place] for place in places]
    shown = tuple(asked.units[place].image or digest(asked.units[place].text).hex() for place in golds)
    is_gold = tuple(unit.is_gold for unit in units)
    rows = _of_images(units, images) if units[0].image else _of_texts(asked, places)
    numbers = tuple(int.from_bytes(digest(unit.image or unit.text)[:7]) for unit in units)
    for kind, found in rows:
        yield kind, Group(asked.id, asked.cluster, shown, f.table(list(found)), is_gold, numbers)
    for kind, found in _of_places(asked, places, has_depths=has_depths):
        yield kind, Group(asked.id, asked.cluster, shown, f.table(list(found)), is_gold)


def candidates(asked: AskedQuestion) -> tuple[list[int], list[int]]:
    """Return the places of gold, and those of gold and of the units that it is compared with."""
    golds = [place for place, unit in enumerate(asked.units) if unit.is_gold]
    if not golds or len(golds) >= MAX_CANDIDATES // 2:
        return [], []
    first = asked.units[golds[0]]
    golds = [place for place in golds if bool(asked.units[place].image) == bool(first.image)]
    others = [
        place
        for place, unit in enumerate(asked.units)
        if not unit.is_gold and bool(unit.image) == bool(first.image) and (first.role != "own" or unit.role == "own")
    ]
    drawn = Draws(("shortcuts", asked.id)).order("candidates", others)[:_COMPARED]
    return golds, sorted([*golds, *drawn])


_Rows = Iterator[tuple[str, Iterable[tuple[float, ...]]]]


def _of_images(units: Sequence[ShownUnit], images: f.ImageFacts) -> _Rows:
    facts = [images.of(unit.image) for unit in units]
    yield NAMES, (f.of_name(unit.image) for unit in units)
    yield "gold from image files", (each["file"] for each in facts)
    yield "gold from quantisation", (each["tables"] for each in facts)
    yield "gold from metadata of images", (each["meta"] for each in facts)
    yield "gold from EXIF tags", (each["tags"] for each in facts)
    yield "gold from sizes of images", (each["size"] for each in facts)


def _of_texts(asked: AskedQuestion, places: Sequence[int]) -> _Rows:
    units = [asked.units[place] for place in places]
    yield "gold from the form of texts", (f.of_text(unit.text) for unit in units)
    yield "gold from titles", (of_title(unit.text) for unit in units)
    yield "gold from chained titles", of_chain(asked.units, places)
    yield "gold from the part of its source", of_parts(units)


def _of_places(asked: AskedQuestion, places: Sequence[int], *, has_depths: bool) -> _Rows:
    if not has_depths:
        yield "gold from its place", (f.of_place(place, len(asked.units)) for place in places)
    yield "gold from its neighbours", f.of_neighbours(asked.units, places)


def choice_groups(asked: AskedQuestion, images: f.ImageFacts) -> Iterator[tuple[str, Group]]:
    """Yield the offered answers as candidates, without the place at which they are offered."""
    if asked.choices is None or len(asked.choices.offered) < 2:
        return
    offered, right = asked.choices.offered, asked.choices.right
    is_right = tuple(place == right for place in range(len(offered)))

    def group(rows: Iterable[tuple[float, ...]], gold: str = asked.id) -> Group:
        return Group(asked.id, asked.cluster, (f"{gold}: {right}",), f.table(list(rows)), is_right)

    paths = [each.path for each in offered if isinstance(each, Image)]
    texts = [each for each in offered if isinstance(each, str)]
    if paths:
        yield "right choice from its file", group(_of_file(path, images) for path in paths)
        return
    yield CHOICE_TEXTS[0], group(f.of_text(text) for text in texts)
    yield CHOICE_TEXTS[1], group(of_offers(texts, asked.question))
    if labels := of_labels(asked.units, texts):
        yield "right label from its exemplars", group(labels, context_of(asked))


def _of_file(path: str, images: f.ImageFacts) -> tuple[float, ...]:
    facts = images.of(path)
    return (*facts["file"], *facts["tables"], *facts["meta"], *facts["size"], *f.of_name(path))
