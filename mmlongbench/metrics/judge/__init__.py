"""Metrics that use a model as a judge, over any endpoint that speaks OpenAI's protocol."""

from mmlongbench.metrics.judge.answers import Answers, Extracted
from mmlongbench.metrics.judge.committee import Committee
from mmlongbench.metrics.judge.prompts import JudgeError
from mmlongbench.metrics.judge.summaries import FluencyF1

__all__ = ["Answers", "Committee", "Extracted", "FluencyF1", "JudgeError"]
