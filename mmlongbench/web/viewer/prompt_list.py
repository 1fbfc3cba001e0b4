"""The prompt of an example as JSON values: an outline of all its blocks, which is small, and the rows of its list in
chunks, which a page loads when they are reached.
"""

from collections.abc import Iterator, Mapping

from mmlongbench.errors import ReleaseError
from mmlongbench.release.example_cost import Model
from mmlongbench.release.shown_example import Block, Piece, ShownImage, ShownText
from mmlongbench.web.show_page import look
from mmlongbench.web.viewer.opened import ListRow, OpenExample, PlacedBlock
from mmlongbench.web.viewer.pictures import fitted
from tokenization import TokenizationError, VisionRule

CHUNK = 20
"""The rows that are loaded at a time."""
FOLDED = 700
"""A text with more characters is folded, unless its block is marked or is not of the context."""
BEGINNING = 420
"""The characters of a folded text that are shown."""
MAX_MARKED = 20_000
"""A marked text with more characters is folded, too."""
MARKS = {"gold": 1, "needle": 2, "evidence": 4}
"""The bits of marks in an outline."""
_CAPTION = 24
"""The height in pixels of the caption of an image."""


def chunks_of(opened: OpenExample) -> int:
    """Return the number of chunks of an example."""
    return -(-len(opened.rows) // CHUNK)


def outline(opened: OpenExample, shorter: frozenset[str] | None) -> dict[str, object]:
    """Return the outline of an example: columns with a value for each block, and columns for each row of the list.

    Args:
        opened: the example.
        shorter: the keys of the units of the same example at the next shorter length; None if there is none.

    """
    names = list(dict.fromkeys((each.role, look(each.block)) for each in opened.blocks))
    place = {name: number for number, name in enumerate(names)}
    first_rows = [number for number, row in enumerate(opened.rows) if row.first == 0]
    return {
        "total": opened.total,
        "reserve": opened.shown.reserve,
        "length": opened.shown.length,
        "estimated": opened.is_estimated,
        "roles": [{"name": name, "look": kind} for name, kind in names],
        "role": [place[each.role, look(each.block)] for each in opened.blocks],
        "start": [each.start for each in opened.blocks],
        "cost": [each.tokens for each in opened.blocks],
        "marks": [sum(MARKS[mark] for mark in each.block.marks) for each in opened.blocks],
        "added": [] if shorter is None else added(opened, shorter),
        "key": [each.key for each in opened.blocks],
        "row": first_rows,
        "rows": {
            "block": [row.block for row in opened.rows],
            "chars": [_chars(opened, row) for row in opened.rows],
            "tall": [sum(fitted(each.size)[1] + _CAPTION for each in _images(opened, row)) for row in opened.rows],
            "images": [len(list(_images(opened, row))) for row in opened.rows],
        },
        "needles": [
            {"requested": each.requested, "achieved": each.achieved, "start": each.start}
            for each in opened.shown.needles
        ],
        "chunk": CHUNK,
    }


def added(opened: OpenExample, shorter: frozenset[str]) -> list[int]:
    """Return the numbers of the blocks whose units a shorter context does not have."""
    return [n for n, each in enumerate(opened.blocks) if _is_context(each.block) and each.key not in shorter]


def _is_context(block: Block) -> bool:
    return block.name not in ("instruction", "question")


def chunk(opened: OpenExample, number: int, images: Mapping[str, int], *, is_whole: bool = False) -> list[object]:
    """Return the rows of a chunk.

    Args:
        opened: the example.
        number: the number of the chunk, from 0.
        images: the number of each image in the index of the file.
        is_whole: whether texts are given whole, because the page cannot ask for them later.

    Raises:
        ReleaseError: there is no such chunk.

    """
    if not 0 <= number < max(1, chunks_of(opened)):
        raise ReleaseError(f"there is no chunk {number}")
    return [_row(opened, row, images, is_whole=is_whole) for row in opened.rows[number * CHUNK : (number + 1) * CHUNK]]


def text(opened: OpenExample, block: int, piece: int) -> dict[str, object]:
    """Return a whole text.

    Raises:
        ReleaseError: there is no such text.

    """
    pieces = opened.blocks[block].block.pieces if 0 <= block < len(opened.blocks) else ()
    found = pieces[piece] if 0 <= piece < len(pieces) else None
    if not isinstance(found, ShownText):
        raise ReleaseError(f"there is no text {piece} in block {block}")
    return {"t": _spans(found, len(found.text))}


def _row(opened: OpenExample, row: ListRow, images: Mapping[str, int], *, is_whole: bool) -> dict[str, object]:
    placed = opened.blocks[row.block]
    pieces = enumerate(placed.block.pieces[row.first : row.last], row.first)
    made = [_piece(opened, placed, number, each, images, is_whole=is_whole) for number, each in pieces]
    return {
        "block": row.block,
        "part": row.first > 0,
        "role": placed.role,
        "look": look(placed.block),
        "unit": placed.block.unit.id if placed.block.unit else "",
        "start": placed.start,
        "cost": placed.tokens,
        "text": placed.text,
        "image": placed.image,
        "marks": list(placed.block.marks),
        "pieces": [each for each in made if each is not None],
    }


def _piece(
    opened: OpenExample,
    placed: PlacedBlock,
    number: int,
    piece: Piece,
    images: Mapping[str, int],
    *,
    is_whole: bool,
) -> dict[str, object] | None:
    if isinstance(piece, ShownImage):
        width, height = fitted(piece.size)
        return {
            "image": images.get(piece.path, -1),
            "path": piece.path,
            "size": list(piece.size),
            "shown": [width, height],
            "tokens": piece.tokens,
            "missing": piece.path in opened.missing,
        }
    if not piece.text.strip():
        return None
    shown = _shown_characters(placed.block, piece)
    made: dict[str, object] = {"t": _spans(piece, shown), "n": len(piece.text), "piece": number}
    if shown < len(piece.text):
        made["folded"] = True
        if is_whole:
            made["whole"] = _spans(piece, len(piece.text))
    return made


def _shown_characters(block: Block, piece: ShownText) -> int:
    """Return how many characters of a text are shown at first."""
    if len(piece.text) <= FOLDED or (len(piece.text) <= MAX_MARKED and (block.marks or not _is_context(block))):
        return len(piece.text)
    return BEGINNING


def _spans(piece: ShownText, most: int) -> list[object]:
    """Return the beginning of a text: texts, and lists with one text, which is a needle."""
    made: list[object] = []
    left = most
    for part, is_needle in piece.parts():
        cut = part[:left]
        left -= len(cut)
        if cut:
            made.append([cut] if is_needle else cut)
    return made


def _images(opened: OpenExample, row: ListRow) -> Iterator[ShownImage]:
    pieces = opened.blocks[row.block].block.pieces[row.first : row.last]
    return (piece for piece in pieces if isinstance(piece, ShownImage))


def _chars(opened: OpenExample, row: ListRow) -> int:
    """Return about how many characters a row shows at first."""
    block = opened.blocks[row.block].block
    pieces = [piece for piece in block.pieces[row.first : row.last] if isinstance(piece, ShownText)]
    return sum(_shown_characters(block, piece) for piece in pieces if piece.text.strip())


def on_model(opened: OpenExample, model: Model) -> dict[str, object]:
    """Return what blocks cost by the rule of a model, and which of them fit its window. Texts are counted as in the
    release.
    """
    sizes = [piece.size for each in opened.blocks for piece in each.block.pieces if isinstance(piece, ShownImage)]
    costs, starts, refused = [], [], set[str]()
    before = seen = 0
    was_image = False
    for placed in opened.blocks:
        cost = placed.text
        for piece in placed.block.pieces:
            if isinstance(piece, ShownImage):
                seen += 1
                cost += _image_cost(model.rule, piece, seen if model.rule.by_place else len(sizes), refused)
                cost -= model.rule.shared if was_image else 0
                was_image = True
            elif piece.text:
                was_image = False
        starts.append(before)
        costs.append(cost)
        before += cost
    room = None if model.window is None else model.window - opened.shown.reserve
    return {
        "name": model.name,
        "start": starts,
        "cost": costs,
        "total": before,
        "window": model.window,
        "room": room,
        "notes": list(_model_notes(model, len(sizes), refused, before, room)),
    }


def _image_cost(rule: VisionRule, piece: ShownImage, place: int, refused: set[str]) -> int:
    try:
        return rule.tokens(*piece.size, place)
    except TokenizationError:
        refused.add(piece.path)
        return 0


def _model_notes(model: Model, images: int, refused: set[str], total: int, room: int | None) -> Iterator[str]:
    yield "images are counted by the rule of the model, texts as in the release"
    if refused:
        yield f"{model.name} refuses {len(refused):,} images because of their size"
    most = model.rule.max_images
    if most is not None and images > most:
        yield f"a request to {model.name} may have {most:,} images, this prompt has {images:,}"
    if room is None:
        return
    if total > room:
        yield f"the prompt has {total - room:,} tokens more than fit the window"
    else:
        yield f"the prompt fits the window: {total:,} of {room:,} tokens, {room - total:,} left"
