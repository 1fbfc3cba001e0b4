r"""What units cost in tokens. Token counts add up where texts meet at a newline, so a context is planned as a sum of
integers.

`price(b) = count("\\n" + b) − count("\\n")` is exact for the embedded Llama 2 tokenizer wherever texts meet at a
newline. For any other tokenizer the sum is an estimate, and the whole prompt is counted once more (see `pack`).
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from mmlongbench.draft import ContextDraft, Question, Unit
from mmlongbench.errors import DraftError, Fault, Rejected
from mmlongbench.prompt import MARKER, Image, Part, Prompt
from tokenization import CrossModalCounter, TokenCount, TokenizationError

Size = tuple[int, int]


class RefusedImage(Rejected):
    """The model that is counted for takes no image of this size."""

    def __init__(self, path: str, why: str) -> None:
        todo = "crop or pad it, leave its document or picture out (exclude), or count for another model"
        super().__init__(Fault("refused-image", "an image that the counted model takes", why, path, todo=todo))


class Prices(Protocol):
    """A store of known prices: the tokens of texts for one tokenizer. A dict from texts to prices is enough."""

    def get(self, text: str, /) -> int | None:
        """Return the price of a text in tokens, or None if it is not known."""
        ...

    def __setitem__(self, text: str, price: int, /) -> None: ...


class Pricer:
    """Gives the prices of texts and images, in tokens. Each text is tokenised once; the price of an image depends on
    its size.
    """

    def __init__(self, counter: CrossModalCounter, sizes: Mapping[str, Size], prices: Prices | None = None) -> None:
        """`sizes` maps an image's path to (width, height) in pixels; `prices` has the prices that are already known,
        for example from earlier builds.
        """
        self.counter = counter
        self._sizes = sizes
        self._prices: Prices = {} if prices is None else prices
        self._frames: dict[Prompt, TokenCount] = {}
        self._turns: dict[str, int] = {}
        self._costliest: dict[tuple[str, ...], str] = {}

    def text(self, text: str) -> int:
        """Return the tokens that a text adds between two newlines."""
        price = self._prices.get(text)
        if price is None:
            _no_marker(text)
            price = self._prices[text] = self.counter.text.price(text)
        return price

    def part(self, part: Part) -> TokenCount:
        """Return the tokens of one text or one image by itself."""
        if isinstance(part, Image):
            return TokenCount(0, self._image(part.path))
        return TokenCount(self.text(part), 0)

    def unit(self, unit: Unit) -> TokenCount:
        """Return the tokens of a unit between two newlines, without the separator."""
        images = sum(map(self._image, unit.images))
        if unit.turns:
            return TokenCount(Prompt(unit.turns).text_tokens(self.turn), images)
        return TokenCount(self.text(unit.text), images)

    def cost(self, unit: Unit, separator: int) -> int:
        """Return the tokens by which a unit makes a prompt longer, if a separator costs `separator` tokens. Between
        turns stands none, unless two of one speaker meet; then the recount of the whole prompt finds it.
        """
        if isinstance(unit.body, str) and not (unit.further or unit.turns):  # most units: no image to count
            return self.text(unit.text) + separator
        return self.unit(unit).total + (0 if unit.turns else separator)

    def turn(self, text: str) -> int:
        """Return the tokens of a text at the beginning of a turn."""
        tokens = self._turns.get(text)
        if tokens is None:
            _no_marker(text)
            tokens = self._turns[text] = self.counter.text.count(text)
        return tokens

    def whole(self, prompt: Prompt) -> TokenCount:
        """Count a prompt as a whole, not as a sum of prices.

        Raises:
            Rejected: the model refuses an image, or the chat template cannot show the prompt.

        """
        try:
            return self.counter.prompt(prompt.sized(self._size))
        except TokenizationError as error:
            for path in prompt.images:
                self._image(path)  # names the image, if it is one that the model refuses
            raise Rejected(not_countable(error, [self.counter])) from error

    def frame(self, draft: ContextDraft, question: Question) -> TokenCount:
        """Return the tokens of instruction and question together, without any unit."""
        return self._frame(Prompt.of((*draft.instruction, *question.parts)))

    def reserved_frame(self, draft: ContextDraft, question: Question) -> TokenCount:
        """Return the tokens of instruction and question, with the costliest wording that may be chosen once units are
        placed.
        """
        if question.wording is None:
            return self.frame(draft, question)
        texts = question.wording.texts
        if texts not in self._costliest:
            # The text with the most tokens between two words makes the costliest question if the tokenizer never merges
            # across a blank. With any other tokenizer a prompt may still be over the budget; then the context is packed
            # again (see `examples`).
            self._costliest[texts] = max(texts, key=lambda text: (self.text(f"a {text} b"), len(text), text))
        return self.frame(draft, question.worded(self._costliest[texts]))

    def _image(self, path: str) -> int:
        size = self._size(path)
        try:
            return self.counter.image_price(*size)
        except TokenizationError as error:
            raise RefusedImage(path, str(error).partition(";")[0]) from error

    def _size(self, path: str) -> Size:
        try:
            return self._sizes[path]
        except KeyError as error:
            raise DraftError(
                f"an image {path!r:.120} is shown that is neither the path of a page nor that of a picture; take it "
                "from `sources.documents[…].pages` or `sources.images[…]`"
            ) from error

    def opening(self, draft: ContextDraft) -> TokenCount:
        """Return the tokens of everything before the first unit."""
        return self._frame(Prompt.of(draft.instruction))

    def _frame(self, prompt: Prompt) -> TokenCount:
        if prompt not in self._frames:
            _no_marker(prompt.text)
            # its images will be among those of the units
            images = sum(map(self._image, prompt.images))
            self._frames[prompt] = TokenCount(self.whole(prompt).text, images)
        return self._frames[prompt]

    def is_exact(self, draft: ContextDraft) -> bool:
        """Return whether sums of prices are exact: the tokenizer adds up at newlines, and all parts meet at
        newlines.
        """
        joints = (draft.separator[:1], draft.separator[-1:], Prompt.of(draft.instruction).text[-1:])
        starts = {Prompt.of(question.parts).text[:1] for question in draft.questions}
        return self.counter.additive and {*joints, *starts} == {"\n"}


def _no_marker(text: str) -> None:
    if MARKER in text:
        at = max(0, text.index(MARKER) - 30)
        raise DraftError(
            f"a text holds a literal {MARKER}: …{text[at : at + 70]!r}…; pass source text to escape_markers"
        )


def not_countable(error: TokenizationError, counters: Iterable[CrossModalCounter]) -> Fault:
    """Return why a prompt is rejected that one of these counters cannot count. It does not name the template's file,
    which would be a path of this machine.
    """
    why, _, todo = str(error).partition("; ")
    for counter in counters:
        if counter.template:
            why = why.replace(f" {counter.template.name!r}:", ":")
    return Fault("not-countable", "a prompt that can be counted", why, todo=todo)
