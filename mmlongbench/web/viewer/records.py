"""Makes an example of a record, whoever wrote the record: what a record does not say is left out, not refused."""

import json

from mmlongbench.errors import DraftError
from mmlongbench.manifest.binding import calling
from mmlongbench.release.release import Example
from mmlongbench.task.metric import Evidence
from mmlongbench.task.rows import Record
from mmlongbench.web.viewer.sources import Viewed, ViewedFile
from tokenization import TokenCount


def example_of(viewed: Viewed, file: ViewedFile, record: Record, where: str) -> Example:
    """Return the example of a record.

    Raises:
        PluginError: the builder cannot read the record.
        DraftError: the builder refuses the record.

    """
    with calling("builder", file.builder_name, "a method that reads records", about=where):
        evidence = file.builder.evidence(record)
        if not isinstance(evidence, Evidence | None):
            raise DraftError(f"evidence() returned a {type(evidence).__name__}, expected mt.Evidence or None")
        return Example(
            id=str(record.get("id", "")),
            file=file.name,
            record={**record, "tokens": _stated(record, file)},
            prompt=file.builder.prompt(record),
            answer=file.builder.gold(record),
            evidence=evidence,
            tokens=TokenCount(_number(record, "text"), _number(record, "image")),
            facets=file.builder.facets(record),
            dataset=file.dataset,
            length=file.length,
            _release=viewed.release,
        )


def answer_text(answer: object) -> str:
    """Return an answer as text.

    >>> answer_text("528"), answer_text(["red", 2])
    ('528', '["red", 2]')
    """
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)


def _stated(record: Record, file: ViewedFile) -> dict[str, object]:
    found = record.get("tokens")
    stated = dict(found) if isinstance(found, dict) else {}
    reserve = stated.get("reserve")
    return {**stated, "reserve": reserve if type(reserve) is int and reserve >= 0 else file.reserve}


def _number(record: Record, name: str) -> int:
    found = record.get("tokens")
    value = found.get(name) if isinstance(found, dict) else None
    return value if type(value) is int and 0 <= value < 2**53 else 0
