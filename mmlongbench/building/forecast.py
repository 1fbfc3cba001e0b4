"""Forecasts a build before anything is built: its questions, examples and images, its disk space and time, and the
units that run out first.

Documents and rows are read, and questions chosen, as in a build. Then a few questions of each dataset are packed at
every length, and the result is scaled to all questions. Everything but the numbers of questions and examples is an
estimate.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmlongbench.building.build import do_stages
from mmlongbench.building.build_dir import BuildDir, questions_shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.executors import Executor
from mmlongbench.building.planning import check_manifest, plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import QUESTIONS, RowCounts
from mmlongbench.building.stages.documents import needs_ocr
from mmlongbench.building.stages.images import make_pages
from mmlongbench.building.stages.negatives import search_for
from mmlongbench.building.stages.records import finished_record, pack_contexts, pack_row
from mmlongbench.building.stages.table import PREPARED
from mmlongbench.draft import NEEDLES
from mmlongbench.errors import Interrupted, MMLongBenchError, Rejected
from mmlongbench.manifest.binding import bind
from mmlongbench.manifest.model import Manifest
from mmlongbench.packing.pack import DoesNotFitError, PackedExample
from mmlongbench.release.lock import RetrievalCounts
from mmlongbench.release.rejects import Reject
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.file_formats import to_json

RENDERED = 3
"""How many images are made to estimate the size and the time of an image."""


@dataclass(frozen=True, slots=True)
class CellForecast:
    """The forecast of one dataset at one length."""

    length: int
    """The length in tokens."""
    examples: int
    """The number of examples if every question fits."""
    images: float
    """Images per example, on average."""
    fill: float
    """(prompt + reserve) / length, on average."""
    ran_dry: int
    """How many of the packed examples ran out of units before the length was full."""
    missing: int
    """How many more units of mean size would have fitted, in the example where this number is largest."""
    left_over: str
    """The role of the units that run out; an empty text if there are enough."""
    rejected: int
    """How many of the questions that the forecast tried to pack do not fit, or are refused by the task."""
    seconds: float
    """Seconds to pack and write all examples in one process."""
    bytes: int
    """The size of the public file."""


@dataclass(frozen=True, slots=True)
class DatasetForecast:
    """The forecast of one dataset of a manifest."""

    name: str
    problem: str = ""
    """Why the dataset cannot be built, such as a missing source; empty if it can."""
    questions: int = 0
    """How many questions are kept."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Rows that cannot be used, by reason."""
    rejects: tuple[str, ...] = ()
    """Each of these rows: the id, then file, line and field, what is wrong, and what to do."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows that the benchmark itself leaves out, by reason."""
    noted: dict[str, int] = field(default_factory=dict)
    """How many examined rows have each note (`Draft.noted`), also rejected ones; a note says, for example, how an
    article was found."""
    retrieval: RetrievalCounts | None = None
    """What the retriever of pages finds; None if no pages are ranked."""
    probed: int = 0
    """How many questions the forecast tried to pack."""
    cells: tuple[CellForecast, ...] = ()
    """The forecast for each length."""
    image_files: int = 0
    """The number of different images at all lengths together. If the number of images in the sources is known, the
    estimate is never larger."""
    image_bytes: int = 0
    """The size of all images, in bytes."""
    image_seconds: float = 0.0
    """Seconds to make all images in one process."""
    opened_bytes: int = 0
    """How many bytes of archives a build unpacks, of URLs downloads, and of files its reader extracts, for the sources.
    They are kept in the working folder until the release is finished."""
    ocr_pages: int = 0
    """How many pages the build reads by OCR (`pages.ocr: all`). The forecast takes the texts of the PDFs instead."""
    notes: tuple[str, ...] = ()
    """What a user must know about the sources, such as files that are missing, one sentence each."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a build."""

    datasets: tuple[DatasetForecast, ...]
    """The datasets in the order of the manifest. If a dataset cannot be built, its `problem` says why."""


def forecast(manifest: Manifest, executor: Executor, probe: int) -> Iterator[DatasetForecast]:
    """Yield the forecast of each dataset; a dataset with a problem does not stop the others."""
    with tempfile.TemporaryDirectory() as shared:  # the datasets may have the same archives and articles
        for spec in manifest.datasets:
            with tempfile.TemporaryDirectory() as folder:
                build_dir = BuildDir(Path(folder) / "release")
                build_dir.root.mkdir(parents=True, exist_ok=True)
                try:
                    (bound,) = check_manifest(Manifest(datasets=(spec,)))
                    is_read = needs_ocr(bound)
                    if is_read:  # this may take hours, and nothing of a forecast is kept
                        bound = bind(spec.model_copy(update={"pages": spec.pages.model_copy(update={"ocr": False})}))
                    (plan,), _ = plan_build([bound], build_dir, executor, shared=Path(shared))
                    with Session(build_dir.out, [plan]) as session:
                        do_stages(session, executor, stages=PREPARED)
                        documents = session.dataset(spec.name).sources.documents.usable.values() if is_read else ()
                        ocr_pages = sum(len(document.pages) for document in documents)
                        found = replace(_forecast(plan, session, probe), ocr_pages=ocr_pages)
                except Interrupted as stop:
                    raise Interrupted("interrupted; nothing was built") from stop
                except MMLongBenchError as error:
                    found = DatasetForecast(spec.name, str(error))
                yield found


def _forecast(plan: DatasetPlan, session: Session, probe: int) -> DatasetForecast:
    spec, name = plan.spec, plan.spec.name
    dataset, rows = session.dataset(name), session.questions(name)
    lines = list(session.build_dir.read(questions_shard(name), QUESTIONS))
    counts = next(line.counts for line in lines if isinstance(line, RowCounts))
    rejects = [line for line in lines if isinstance(line, Reject) and not line.fault.is_expected]
    is_shared = isinstance(dataset.builder, SharedContextBuilder)  # a context needs all its questions
    # spread evenly over the source
    places = (number * len(rows) // probe for number in range(probe))
    probed = list(rows) if is_shared or len(rows) <= probe else [rows[place] for place in places]
    begun = time.perf_counter()
    if plan.corpus:
        dataset.negatives.add(search_for(session, name, probed))
    searched = time.perf_counter() - begun
    # the ids of the packed questions that show each image, by the path of the image
    shown: dict[str, set[str]] = {}
    cells: list[CellForecast] = []
    for length in spec.lengths:
        begun = time.perf_counter()
        packed, examples, rejected, written = list[list[PackedExample]](), list[PackedExample](), set[str](), 0
        if is_shared:  # the examples of all questions
            for _, context in pack_contexts(dataset, rows, length):
                packed += [[each] for each in context if each.question.is_home] if isinstance(context, list) else []
        for row in () if is_shared else probed:
            try:
                packed.append(pack_row(dataset, row, length))
            except (DoesNotFitError, Rejected):
                rejected.add(row.id)
        for made in packed:
            try:
                written += sum(len(to_json(finished_record(dataset, example))) for example in made)
                examples += made
            except Rejected:
                rejected.add(made[0].id)
        for example in examples:
            for path in example.prompt.images:
                shown.setdefault(path, set()).add(example.id)
        begun -= 0.0 if cells else searched
        kept = len(rows) * (len(probed) - len(rejected)) // len(probed) if probed else len(rows)
        cells.append(_cell(dataset, kept, length, examples, len(rejected), written, begun))
    files = _image_files(shown, len(probed), len(rows), dataset)
    size, seconds = _image_cost(dataset, sorted(shown))
    return DatasetForecast(
        name,
        questions=len(rows),
        rejected=counts.rejected,
        rejects=tuple(f"{reject.id}: {reject.fault}" for reject in rejects),
        skipped=counts.skipped,
        noted=counts.noted,
        retrieval=counts.retrieval,
        probed=len(probed),
        cells=tuple(cells),
        image_files=files,
        image_bytes=round(files * size),
        image_seconds=files * seconds,
        opened_bytes=plan.opened_bytes,
        notes=plan.notes,
    )


def _cell(
    dataset: Dataset, questions: int, length: int, packed: list[PackedExample], rejected: int, size: int, begun: float
) -> CellForecast:
    """Forecast a length from its packed examples, whose records have `size` bytes; its work began at `begun`."""
    seconds = time.perf_counter() - begun
    examples = (
        len(packed)
        if isinstance(dataset.builder, SharedContextBuilder)
        else questions * len(dataset.plan.bound.placements)
    )
    scale = examples / len(packed) if packed else 0.0
    dry = [example for example in packed if example.ran_dry]
    # what runs out is the most frequent role beside gold and needles
    roles = Counter(unit.role for example in dry for unit in example.units if unit.role not in NEEDLES)
    tokens = sum(example.count.total + example.reserve for example in packed)
    return CellForecast(
        length,
        examples,
        images=sum(len(example.prompt.images) for example in packed) / len(packed) if packed else 0.0,
        fill=tokens / (len(packed) * length) if packed else 0.0,
        ran_dry=len(dry),
        missing=max((example.missing for example in dry), default=0),
        left_over=roles.most_common(1)[0][0] if roles else "",
        rejected=rejected,
        seconds=seconds * scale,
        bytes=round(size * scale),
    )


def _image_files(shown: dict[str, set[str]], probed: int, asked: int, dataset: Dataset) -> int:
    if not probed:
        return 0
    own = sum(len(ids) == 1 for ids in shown.values()) if probed > 1 else 0  # the other images are shared by questions
    there = max(len(dataset.sources.sizes), len(dataset.sources.images.names) if dataset.sources.has_images else 0)
    expected = round(own * asked / probed) + len(shown) - own
    return min(expected, there) if there > len(shown) else expected


def _image_cost(dataset: Dataset, shown: Sequence[str]) -> tuple[float, float]:
    sizes, begun = [], time.perf_counter()
    images = dataset.sources.images if dataset.sources.has_images else None
    for path in shown[:: max(1, len(shown) // RENDERED)][:RENDERED]:
        if images and (name := images.origin(path)):
            sizes.append(len(images[name].released()))
        else:
            file = dataset.plan.documents[path.split("/")[-2]]
            sizes.append(sum(len(data) for _, data in make_pages(dataset, file, [path])))
    return (sum(sizes) / len(sizes), (time.perf_counter() - begun) / len(sizes)) if sizes else (0.0, 0.0)
