"""Fluency-F1 of summaries: recall over the claims of the gold summary, precision over the prediction's sentences.

Score = fluency (0 or 1) × F1, as HELMET and the benchmark have it. Their judge counts; ours names the claims and the
sentences that hold, which can be looked up and cannot be more than there are. The rubrics are our own words.
"""

from collections.abc import Sequence
from typing import ClassVar

from mmlongbench.passages.splitting import sentences
from mmlongbench.scoring.judge.calls import Call, blocks, fence, listed
from mmlongbench.scoring.judge.claims import GoldClaims
from mmlongbench.scoring.judge.client import Failed
from mmlongbench.scoring.judge.judged import Judged, too_long, unscored
from mmlongbench.scoring.judge.pace import Waits
from mmlongbench.scoring.judge.verdicts import Fluent, Supported
from mmlongbench.scoring.metric import Asked, Scored, Settings

_FLUENT = """You mark how a text reads, whatever it is about and whether it is true.

fluent is 0 if the text is incoherent or gibberish, says the same again and again (in the same words or others), or is \
no text at all but, say, a heading with nothing after it. fluent is 1 if it is coherent, grammatical and does not \
repeat itself; a last sentence that is cut off does not count against it. In reason, say why in a sentence."""
_RECALL = """You check which claims a summary makes. You are given claims that an expert's summary was taken apart \
into, by number, and another summary.

A claim holds if the summary says it, in whatever words; of a claim with several facts, most must be there. What the \
summary only touches on, or contradicts, does not hold. supported lists the numbers of the claims that hold, each \
once; it is empty if none does."""
_PRECISION = """You check which sentences of a summary an expert's summary bears out. You are given the expert's \
summary, and the sentences of another one by number.

A sentence holds if its main facts stand in the expert's summary; minor details, such as a date, a name or the title \
of a law, may be missing there. It does not hold if a main fact is missing there or contradicted. supported lists the \
numbers of the sentences that hold, each once; it is empty if none does."""
_MOST_BLOCKS = 10
"""Calls that the statements of one text are judged in."""
_PREFIX = "Summary:"
"""Which models repeat after the prompt; the public scorer takes it off too."""


class FluencyF1(Judged):
    """Fluency × F1 of a summary: claims of the gold summary recalled, sentences that it bears out; by a judge."""

    name: ClassVar[str] = "judge-fluency-f1"

    def __init__(self, settings: Settings, waits: Waits | None = None) -> None:
        """Claims that were released with the data are taken from there."""
        super().__init__(settings, waits)
        self._claims = GoldClaims(self.client, settings.data)

    def score(self, asked: Asked) -> Scored:
        """From 0 to 1; an empty prediction scores 0 without asking."""
        prediction = asked.prediction.strip().removeprefix(_PREFIX).strip()
        said = sentences(prediction)
        if not said:
            return Scored(0.0, {"is_empty": True})
        id, source_id = (str(asked.record.get(name, "")) for name in ("id", "source_id"))
        claims = self._claims.of(asked.file, asked.dataset, id, str(asked.gold), source_id)
        fluent = self.client.ask(Call(self.model, _FLUENT, fence("text", prediction), Fluent))
        recalled = claims if isinstance(claims, Failed) else self._recalled(claims, prediction)
        precise = self._supported(_PRECISION, fence("expert", str(asked.gold)), "sentences", said)
        match claims, fluent, recalled, precise:  # all are asked: what is answered is kept for the next run
            case tuple(), Fluent(), int(), int():
                return _scored(fluent, recalled, len(claims), precise, len(said))
        return unscored(next(found for found in (claims, fluent, recalled, precise) if isinstance(found, Failed)))

    def _recalled(self, claims: tuple[str, ...], prediction: str) -> int | Failed:
        return self._supported(_RECALL, fence("summary", prediction), "claims", claims)

    def _supported(self, rubric: str, text: str, name: str, statements: Sequence[str]) -> int | Failed:
        """How many statements hold; each is shown, in as many calls as that takes."""
        calls: list[Call[Supported]] = []
        for block in blocks(statements):
            if not (shown := listed(name, block)) or len(calls) == _MOST_BLOCKS:
                return too_long(name, statements)
            calls.append(Call(self.model, rubric, f"{text}\n\n{shown}", Supported, {"statements": len(block)}))
        found = [self.client.ask(call) for call in calls]  # all, as above
        failed = next((each for each in found if isinstance(each, Failed)), None)
        return failed or sum(len(each.supported) for each in found if isinstance(each, Supported))


def _scored(fluent: Fluent, recalled: int, claims: int, precise: int, said: int) -> Scored:
    recall, precision = recalled / claims, precise / said
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    details = {"fluency": fluent.fluent, "f1": f1, "recall": recall, "precision": precision}
    return Scored(fluent.fluent * f1, {**details, "claims": claims, "sentences": said})
