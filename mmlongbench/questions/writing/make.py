"""Makes questions with models, from a folder of PDFs to a folder of questions: the plan, the stages, the files.

Besides the files of `questions.table` the folder has

    held.jsonl             questions about which people decide (`questions export`)
    surplus.jsonl          questions that passed, but that no quota wants
    provenance.jsonl       what every stage said about each of these questions, with every call by digest
    report.json            the funnel, quotas, distributions (`report.Report`)
    stages/                a file for each stage (`lines`)
    calls.sqlite           every reply of a model, unless another file is named
    questions.lock.json    hashes of all files and documents, settings, versions; written last
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from mmlongbench.answers import NOT_ANSWERABLE
from mmlongbench.io.files import file_lock, sha256_of, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.likeness import missing
from mmlongbench.models.client import Backoff, ModelClient
from mmlongbench.models.settings import EndpointSettings
from mmlongbench.questions import table
from mmlongbench.questions.table import Grounding, Question, Reject, question_id
from mmlongbench.questions.writing import pages
from mmlongbench.questions.writing.asking import WritingError, WritingSettings, family, wordings
from mmlongbench.questions.writing.documents import Library, is_date, read_benchmark, read_library
from mmlongbench.questions.writing.funnel import STAGES, Funnel, draw
from mmlongbench.questions.writing.lines import Candidate, QuotaLine, Slot
from mmlongbench.questions.writing.model_stages import CHECKS
from mmlongbench.questions.writing.report import RULE, Expected, Report, forecast, report_of

KEPT = ".kept"  # the folder, below the folder of questions, of what is kept between runs: facts and pictures of pages
CALLS = "calls.sqlite"
HELD = "held.jsonl"
SURPLUS = "surplus.jsonl"
PROVENANCE = "provenance.jsonl"
REPORT = "report.json"
LOCK = "questions.lock.json"
OF_RESULT = (  # the files that are written when no call is pending
    *(table.TABLE, table.QUESTIONS, table.REJECTS, table.SUMMARY, table.MANIFEST),
    *(HELD, SURPLUS, PROVENANCE, REPORT),
)
MAKERS = ("mmlongbench", "pymupdf", "pillow", "rank-bm25")  # the packages whose versions are in the lock


@dataclass(frozen=True)
class Plan:
    documents: Path
    out: Path
    settings: WritingSettings
    library: Library
    quotas: Sequence[QuotaLine]
    slots: Sequence[Slot]  # the slots, as if models saw figures wherever they look
    expected: tuple[Expected, ...]  # the calls and tokens of each stage
    at_most: tuple[Expected, ...]  # the same if every question passed every check

    def cost(self, prices: tuple[float, float] | None) -> float:
        return sum(stage.cost(prices) for stage in self.expected)


@dataclass(frozen=True)
class Made:
    funnel: Funnel
    report: Report
    usage: Mapping[str, float]  # calls, tokens and cost of this run (see `ModelClient.usage`)
    removed: tuple[str, ...] = ()  # the files of an earlier result that were removed, because calls are pending

    @property
    def is_complete(self) -> bool:
        """Return whether the table is written: no call is pending."""
        return not self.report.counts["pending"]


def prepare(
    documents: Path,
    out: Path,
    settings: WritingSettings,
    progress: Progress,
    *,
    about: Path | None = None,
    against: Sequence[Path] = (),
    rule: str = RULE,
) -> Plan:
    """Read the documents, and say what will be asked; no call is made."""
    if settings.published_after and not is_date(settings.published_after):
        raise WritingError(f"--published-after {settings.published_after}: expected a date such as 2024-05-31")
    for author in settings.authors:
        if all(family(model) == family(author) for model in settings.models):
            raise WritingError(
                f"--model {author}: no model of another family checks its questions; add one with --model or "
                "--check-model (a model that checks itself lets its own mistakes pass)"
            )
    if find_spec("sklearn") is None:  # `words-alone` comes after all calls: it is named before the first one
        raise missing("scikit-learn", "questions by models")
    kept, benchmarks = out / KEPT, tuple(read_benchmark(path, out / KEPT) for path in against)
    library = read_library(documents, about, kept, settings.dpi, settings.published_after, progress, benchmarks)
    used = library.documents
    if not used:
        reasons = sorted({line.reason for line in library.left_out})
        first = f"{library.left_out[0].doc}: {library.left_out[0].detail}"
        raise WritingError(f"{documents.name}: no document can be used ({', '.join(reasons)}); the first is {first}")
    layers = pages.layer_pages(used)
    looked = pages.looked_at(library, layers, settings)
    assumed = [
        page.model_copy(update={"kinds": (*page.kinds, "figure")})
        if (page.doc, page.page) in looked
        else pages.unconfirmed(page)
        for page in layers
    ]
    quotas, slots = draw(library, assumed, settings)
    expected = forecast(used, len(looked), slots, settings, rule=rule)
    at_most = forecast(used, len(looked), slots, settings, is_sure=True, rule=rule)
    return Plan(documents, out, settings, library, quotas, slots, expected, at_most)


def make(plan: Plan, endpoint: EndpointSettings, progress: Progress, backoff: Backoff | None = None) -> Made:
    """Run all stages; write the table if no call is pending, and otherwise remove that of an earlier run."""
    out = plan.out
    with file_lock(out / f".{CALLS}.writing", str(out)), closing(ModelClient(endpoint, backoff or Backoff())) as client:
        funnel = Funnel(plan.library, plan.settings, client, out, progress)
        funnel.run()
        report, removed = report_of(funnel), list[str]()
        if report.counts["pending"]:
            removed = [name for name in (LOCK, *OF_RESULT) if (out / name).exists()]
            for name in removed:
                (out / name).unlink()
        else:
            _write(plan.documents, funnel, report)
        return Made(funnel, report, client.usage(), tuple(removed))


def _write(documents: Path, funnel: Funnel, report: Report) -> None:
    out, library = funnel.out, funnel.library
    (out / LOCK).unlink(missing_ok=True)
    accepted = [_question(candidate, library) for candidate in funnel.accepted]
    table.write_folder(out, documents, "model", accepted, _rejects(funnel), report.counts)
    table.write_lines(out / HELD, [_question(candidate, library) for candidate in funnel.held])
    table.write_lines(out / SURPLUS, [_question(candidate, library) for candidate in funnel.surplus])
    steps: dict[str, list[dict[str, object]]] = {}  # what every stage said about a question, with every call
    for stage, lines in funnel.stages.items():
        for line in lines:
            if line.calls or line.reason or line.detail:
                said = line.model_dump(mode="json", exclude={"slot", "candidate"}, exclude_defaults=True)
                steps.setdefault(line.slot, []).append({"stage": stage, **said})
    provenance = [
        {
            "id": _id(candidate.slot, candidate.doc, library),
            "slot": candidate.slot,
            "document": candidate.doc,
            "author": candidate.author,
            "steps": steps[candidate.slot],
        }
        for candidate in sorted((*funnel.accepted, *funnel.held, *funnel.surplus), key=lambda candidate: candidate.slot)
    ]
    texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in provenance)
    write_whole(out / PROVENANCE, (f"{text}\n".encode() for text in texts))
    write_whole(out / REPORT, [report.model_dump_json(indent=1).encode(), b"\n"])

    files = [out / name for name in OF_RESULT] + sorted((out / STAGES).glob("*.jsonl"))
    rejected: dict[str, Counter[str]] = {}
    for stage, line in funnel.ended.values():
        rejected.setdefault(stage, Counter())[line.reason] += 1
    calls = "\n".join(f"{call.key} {call.reply}" for call in funnel.calls())
    lock = {
        "settings": funnel.settings.model_dump(mode="json"),
        "wordings": sha256("\0".join(wordings()["instructions"].values()).encode()).hexdigest(),
        "rules_of_pages": pages.VERSION,
        "versions": {name: version(name) for name in MAKERS},
        "documents": {line.doc: line.sha256 for line in funnel.documents if not line.reason},
        "counts": report.counts,
        "rejected": {stage: dict(sorted(reasons.items())) for stage, reasons in sorted(rejected.items())},
        "calls": sha256(calls.encode()).hexdigest(),
        "files": {path.relative_to(out).as_posix(): sha256_of(path) for path in files},
    }
    write_whole(out / LOCK, [json.dumps(lock, indent=1, sort_keys=True).encode(), b"\n"])


def _id(slot: str, doc: str, library: Library) -> str:
    return question_id(library.documents[doc].line.sha256, "model", slot)


def _question(candidate: Candidate, library: Library) -> Question:
    document = library.documents[candidate.doc].line
    notes = {"slot": candidate.slot, "author": candidate.author}
    notes |= {"flags": ", ".join(candidate.flags)} if candidate.flags else {}
    notes |= {"repairs": ", ".join(candidate.repairs)} if candidate.repairs else {}
    role = "operand" if candidate.is_computed else "answer"
    rests = [Grounding(page=page, text=candidate.quote, role=role) for page in candidate.pages[:1] if candidate.quote]
    answer = candidate.answer if candidate.answer_format == "List" else candidate.answer[0]
    is_answerable = candidate.is_answerable
    return Question(
        id=_id(candidate.slot, candidate.doc, library),
        document=candidate.doc,
        document_sha256=document.sha256,
        question=candidate.question,
        answer=answer if is_answerable else NOT_ANSWERABLE,
        answer_format=candidate.answer_format,
        pages=candidate.pages,
        sources=candidate.sources if is_answerable else (),  # type: ignore[arg-type]  # the form of a draft has these
        kind="cross-page" if candidate.kind == "cross" else candidate.kind,
        synthetic="model",
        doc_type=document.doc_type,
        grounding=tuple(rests),
        derived="computed" if candidate.is_computed and is_answerable else "",
        twin_of=_id(candidate.parent, candidate.doc, library) if candidate.parent else "",
        edit=f"{candidate.was} → {candidate.now}" if candidate.parent else "",
        alternatives=candidate.alternatives,
        notes=notes,
    )


def _rejects(funnel: Funnel) -> list[Reject]:
    last = {line.slot: line.candidate for lines in funnel.stages.values() for line in lines if line.candidate}
    slots, what = {slot.id: slot for slot in funnel.slots}, {check.name: check.what for check in CHECKS}
    rejects = []
    for id, (stage, line) in sorted(funnel.ended.items()):
        slot, candidate = slots[id], last.get(id)
        expected = next((what[name] for name in what if stage.endswith(name)), "a reply of the form")
        if stage == "words-alone":
            expected = "words that do not tell whether the document answers the question"
        rejects.append(
            Reject(
                id=_id(id, slot.doc, funnel.library),
                document=slot.doc,
                stage=stage,
                reason=line.reason,
                found=line.detail,
                expected=expected,
                kind=slot.kind,
                question=candidate.question if candidate else "",
                pages=candidate.pages if candidate else slot.pages,
                notes={"slot": id, "author": slot.author},
            )
        )
    return rejects
