"""Decisions about questions, as a sheet that `mmlongbench questions import` reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.errors import Fault, ReleaseError, SourceError
from mmlongbench.io.tables import csv_layout, table_rows
from mmlongbench.questions.question import Question
from mmlongbench.questions.reviewing.decisions import Decision, Label
from mmlongbench.questions.reviewing.merging import wrong_revision
from mmlongbench.questions.reviewing.sheet import (
    COLUMNS,
    FILLED,
    decision_of,
    empty_rows,
    plain_cell,
    safe_cell,
    sheet_bytes,
)
from mmlongbench.web.viewer.reviewing.decisions import Act, Action, Choice, Decided, DecisionFile, as_typed
from mmlongbench.web.viewer.reviewing.subjects import Subject

_LABELS: Mapping[Act, Label] = {"accept": "Retain", "revise": "Revise", "remove": "Remove"}
_ACTS: Mapping[Label, Act] = {label: act for act, label in _LABELS.items()}
_NEW = ("question_new", "answer_new", "pages_new")


class SheetFile(DecisionFile):
    """A sheet of one annotator; a sheet that `questions export` wrote is filled in."""

    actions = (
        Action("accept", "a", "Accept", "question, answer and pages are right"),
        Action("revise", "r", "Revise", "the fields below are right"),
        Action("remove", "x", "Remove", "leave the question out"),
        Action("undo", "u", "Undo", "decide again"),
    )

    def __init__(self, path: Path, by: str, questions: Mapping[str, Question]) -> None:
        super().__init__(path, by)
        if path.suffix.lower() != ".csv":
            raise ReleaseError(f"--write {path}: a sheet is written as CSV; give a name that ends in .csv")
        self._questions = questions

    def read(self) -> Mapping[str, Decided]:
        """Return what is decided; rows that cannot be used are not."""
        if not self.path.exists():
            return {}
        rows = [row for _, row in table_rows(self.path, COLUMNS) if not isinstance(row, Fault)]
        every = [{name: plain_cell(cell) for name, cell in row.items()} for row in rows]
        every.sort(key=lambda cells: cells["annotator"] == self.by)  # of two rows of a question, the own one counts
        made = [(decision_of(cells, self._questions), cells) for cells in every if cells["decision"]]
        return {each.id: self._decided(each, cells) for each, cells in made if isinstance(each, Decision)}

    def _decided(self, found: Decision, cells: Mapping[str, str]) -> Decided:
        """Return what a row decides; only what the own one says is for the fields of the page."""
        said = "; ".join(part for part in (found.label, found.problem, found.comment) if part)
        values = {name: text for name in _NEW if (text := cells.get(name))}
        new = ", ".join(f"{name.removesuffix('_new')}: {text}" for name, text in values.items())
        words = "; ".join(part for part in (said, new, f"by {found.annotator}") if part)
        if found.annotator != self.by:
            return Decided(_ACTS[found.label], words)
        return Decided(_ACTS[found.label], words, values, found.comment, found.problem)

    def change(self, subject: Subject, choice: Choice) -> None:
        """Fill the cells of a row."""
        rows = self._rows()
        row = self._row(rows, subject.id)
        cells = self._cells(subject, choice)
        if not plain_cell(row["decision"]):
            cells["comment"] = cells["comment"] or plain_cell(row["comment"])  # noted in a spreadsheet, not seen here
        row |= {name: safe_cell(text) for name, text in cells.items()}
        if choice.act != "undo":
            self._check({name: plain_cell(text) for name, text in row.items()})
        self.replace(sheet_bytes(rows, self._separator()))

    def _row(self, rows: Sequence[dict[str, str]], id: str) -> dict[str, str]:
        """Return the row of a question to fill: the own one, or one that is nobody's.

        Raises:
            ReleaseError: there is none.

        """
        found = [each for each in rows if plain_cell(each["id"]) == id]
        if not found:
            raise ReleaseError(f"{self.path}: has no row for {id}; export the sheet again, or give a new file")
        own = [each for each in found if plain_cell(each["annotator"]) == self.by]
        free = [each for each in found if not plain_cell(each["annotator"]) and not plain_cell(each["decision"])]
        if not own + free:
            other = next((name for each in found if (name := plain_cell(each["annotator"]))), "somebody")
            did = "has decided" if any(plain_cell(each["decision"]) for each in found) else "has begun"
            raise ReleaseError(f"{self.path}: {other} {did} this; give each annotator a file")
        return (own + free)[0]

    def _rows(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return empty_rows(self._questions.values(), 1.0)
        rows = []
        for place, row in table_rows(self.path, COLUMNS):
            if isinstance(row, Fault):
                raise SourceError(Fault(row.reason, row.expected, row.found, self.path.name, place, todo=row.todo))
            rows.append({**{name: str(cell or "") for name, cell in row.items()}})
        return [{**row, **{name: "" for name in FILLED if name not in row}} for row in rows]

    def _separator(self) -> str:
        """Return what separates the cells of the sheet, which stays as it is.

        Raises:
            ReleaseError: a cell would be lost.

        """
        if not self.path.exists():
            return ","
        separator, is_unnamed = csv_layout(self.path, COLUMNS)
        if is_unnamed:
            raise ReleaseError(f"{self.path}: a column with cells has no name, and they would be lost; name it")
        return separator

    def _cells(self, subject: Subject, choice: Choice) -> dict[str, str]:
        """Return the filled cells of a row."""
        cells = dict.fromkeys(FILLED, "")
        if choice.act == "undo":
            return cells
        cells |= {"decision": _LABELS[choice.act], "annotator": self.by, "comment": choice.comment.strip()}
        if choice.act != "accept":
            cells["problem"] = choice.problem
        if choice.act == "revise":
            before = {field.name: as_typed(field.text).strip() for field in subject.fields}
            new = {name: as_typed(choice.values.get(name, "")).strip() for name in _NEW}
            cells |= {name: text for name, text in new.items() if text != before[name]}
        return cells

    def _check(self, cells: Mapping[str, str]) -> None:
        """Refuse a row that could not be imported."""
        found = decision_of(cells, self._questions)
        if isinstance(found, Fault):
            raise ReleaseError(str(found))
        wrong = wrong_revision(self._questions[found.id], found) if found.revision else None
        if wrong:
            raise ReleaseError(f"{wrong[0]}: {wrong[1]}; revise it again")
