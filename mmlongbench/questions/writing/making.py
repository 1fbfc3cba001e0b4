"""Makes questions with models, from a folder of PDFs to a folder of questions: what will be asked, then all stages."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.io.files import file_lock
from mmlongbench.io.progress import Progress
from mmlongbench.models.client import Backoff, ModelClient
from mmlongbench.models.settings import EndpointSettings
from mmlongbench.questions.writing import results
from mmlongbench.questions.writing.decontamination import Benchmark, read_benchmark
from mmlongbench.questions.writing.documents import Library, is_date, read_library
from mmlongbench.questions.writing.forecast import RULE, Expected, forecast
from mmlongbench.questions.writing.funnel import Drawn, Funnel, Runner, counts, planned, run, without_benchmarks
from mmlongbench.questions.writing.report import Report, report_of
from mmlongbench.questions.writing.settings import WritingError, WritingSettings

KEPT = ".kept"
"""The folder, below the folder of questions, of what is kept between runs: facts and pictures of pages."""
CALLS = "calls.sqlite"
"""The file of answers, unless another one is named."""


@dataclass(frozen=True)
class Prepared:
    """What is known before the first call."""

    documents: Path
    out: Path
    settings: WritingSettings
    library: Library
    benchmarks: tuple[Benchmark, ...]
    drawn: Drawn
    """The slots, as if models saw figures wherever they look."""
    expected: tuple[Expected, ...]
    """The calls and tokens of each stage."""
    at_most: tuple[Expected, ...]
    """The same if every question passed every check."""

    def cost(self, prices: tuple[float, float] | None) -> float:
        """Return the expected cost."""
        return sum(each.cost(prices) for each in self.expected)


@dataclass(frozen=True)
class Made:
    """What a run did."""

    funnel: Funnel
    report: Report
    counts: Mapping[str, int]
    usage: Mapping[str, float]
    """Calls, tokens and cost of this run (see `ModelClient.usage`)."""
    removed: tuple[str, ...] = ()
    """The files of an earlier result that were removed, because calls are pending."""

    @property
    def is_complete(self) -> bool:
        """Return whether the table is written: no call is pending."""
        return not self.counts["pending"]


def prepare(
    documents: Path,
    out: Path,
    settings: WritingSettings,
    progress: Progress,
    *,
    about: Path | None = None,
    against: Sequence[Path] = (),
    rule: str = RULE,
) -> Prepared:
    """Read the documents, and say what will be asked; no call is made.

    Raises:
        WritingError: the settings make no sense, or no document can be used.
        SourceError: a table or a benchmark cannot be read.

    """
    if settings.published_after and not is_date(settings.published_after):
        raise WritingError(f"--published-after {settings.published_after}: expected a date such as 2024-05-31")
    settings.check()
    kept = out / KEPT
    benchmarks = tuple(read_benchmark(path, kept) for path in against)
    library = read_library(documents, about, kept, settings.dpi, settings.published_after, progress)
    library = without_benchmarks(library, benchmarks)
    if not library.documents:
        reasons = sorted({line.reason for line in library.left_out})
        raise WritingError(f"{documents.name}: no document can be used ({', '.join(reasons)})")
    drawn = planned(library, settings)
    asked = (library.documents, drawn.looks, drawn.slots, settings)
    sure = forecast(*asked, is_sure=True, rule=rule)
    return Prepared(
        documents, out, settings, library, benchmarks, drawn, tuple(forecast(*asked, rule=rule)), tuple(sure)
    )


def make(prepared: Prepared, endpoint: EndpointSettings, progress: Progress, backoff: Backoff | None = None) -> Made:
    """Run all stages; write the table if no call is pending.

    Raises:
        EndpointError: the endpoint cannot be called.
        WritingError: calls about pages failed.
        BuildError: another process writes this folder.

    """
    out, settings = prepared.out, prepared.settings
    with file_lock(out / f".{CALLS}.writing", str(out)), closing(ModelClient(endpoint, backoff or Backoff())) as client:
        runner = Runner(prepared.library, settings, client, out, progress, prepared.benchmarks)
        funnel = run(runner)
        report = report_of(funnel, settings)
        removed: list[str] = []
        if counts(funnel)["pending"]:
            removed = results.remove(out)
        else:
            results.write(out, prepared.documents, prepared.library, settings, funnel, report)
        return Made(funnel, report, counts(funnel), client.usage(), tuple(removed))
