"""Metrics that a model is asked for, over any endpoint that speaks OpenAI's protocol."""

from mmlongbench.scoring.judge.answers import Answers
from mmlongbench.scoring.judge.committee import Committee
from mmlongbench.scoring.judge.errors import JudgeError
from mmlongbench.scoring.judge.extracted import Extracted
from mmlongbench.scoring.judge.pace import Waits
from mmlongbench.scoring.judge.summaries import FluencyF1

__all__ = ["Answers", "Committee", "Extracted", "FluencyF1", "JudgeError", "Waits"]
