"""What mends a finding that drops of questions cannot mend: one sentence for each kind."""

_BALANCE = "balance the answers when questions are drawn, so that none is usual"
_SHAPE = "fill and pad the contexts of all answers alike"
_PLACE = "draw the place of gold anew for each question, at depths or in permutations that do not depend on it"
_SAME_DRAW = "draw wrong choices from the source of the right ones, and encode or word all of them alike"
ADVICE = {
    "answer from priors": _BALANCE,
    "answer from the question": "balance the answers of each wording when questions are drawn, or word all alike",
    "answer from the shape of the context": _SHAPE,
    "not answerable from what is shown": _SHAPE,
    "not answerable from": "word all questions alike, whether they have an answer or not",
    "answer from the place of gold": _PLACE,
    "answer in a negative": "filter the negatives again by the accepted answers",
    "answer in": "ask one question about each subject, or word the questions without the answers of others",
    "place of gold": _PLACE,
    "gold from file names": "give all images neutral names, such as a number or a hash",
    "gold from image files": "encode all images of the contexts alike: one format, colour mode and quality",
    "gold from metadata of images": "write all images without metadata and with equal dots per inch",
    "gold from sizes of images": "scale all images to one size, or draw negatives with the sizes of gold",
    "gold from its place": _PLACE,
    "gold from its neighbours": "shuffle the units of each context",
    "gold from": "draw negatives from the source of gold, and cut and format all of them alike",
    "right choice": _SAME_DRAW,
}
"""By the beginning of a kind; the longest beginning counts."""
OTHERWISE = "balance what tells when questions are drawn, or make it equal for gold and the rest"


def advice_for(kind: str) -> str:
    """Return what mends a finding of a kind.

    >>> advice_for("gold from titles") == ADVICE["gold from"]
    True
    """
    return next((ADVICE[key] for key in sorted(ADVICE, key=len, reverse=True) if kind.startswith(key)), OTHERWISE)
