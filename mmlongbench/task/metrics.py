"""What metrics need: the contract of a metric, what it is given, and formats of answers.

A metric of one task is a function in its file (`Task.metric`). Use `import mmlongbench.task as mt`, and
`mt.metrics.RuleMetric`.
"""

from mmlongbench.answers import (
    ANSWER_FORMATS,
    NOT_ANSWERABLE,
    AnswerFormat,
    format_of,
    is_not_answerable,
    literal_list,
    number_format,
)
from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.task.metric import (
    Details,
    Judge,
    Metric,
    MetricWithTotals,
    Profile,
    Provenance,
    RuleMetric,
    ScoringInput,
    Settings,
)

__all__ = ["ANSWER_FORMATS", "AnswerFormat", "Details", "Judge", "format_of", "is_not_answerable", "literal_list"]
__all__ += ["NOT_ANSWERABLE", "Metric", "MetricWithTotals", "Profile", "Provenance", "ReleaseError", "number_format"]
__all__ += ["RuleMetric", "ScoringError", "ScoringInput", "Settings"]
