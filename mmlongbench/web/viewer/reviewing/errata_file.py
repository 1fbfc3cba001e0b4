"""Decisions about suspects, as a file of errata, which a manifest can name."""

import codecs
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

from pydantic import JsonValue

from mmlongbench.errors import Fault, ManifestError, ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.io.yaml_text import MAX_BYTES
from mmlongbench.manifest.errata import Erratum, corrected, edited, errata_of, kept_ids
from mmlongbench.web.viewer.reviewing.decisions import Action, Choice, Decided, DecisionFile, as_typed
from mmlongbench.web.viewer.reviewing.subjects import Field, Subject, SuspectLine, shown_value

_DRAFT = "mmlongbench doctor:"
"""The beginning of the source of errata that nobody has checked."""
_FIXED = "cannot be changed here without touching other entries; change it by hand, or give another file"
_HEAD = "# What people decided about suspects of `mmlongbench doctor`. A manifest applies it with `errata: FILE`.\n"


class ErrataFile(DecisionFile):
    """A file of errata. Rows whose source is right stand in it as comments."""

    actions = (
        Action("accept", "a", "Accept", "the proposed correction is right"),
        Action("revise", "r", "Revise", "the fields below are right"),
        Action("remove", "x", "Remove", "leave the row out"),
        Action("keep", "s", "Source is right", "nothing is to be changed"),
        Action("undo", "u", "Undo", "decide again"),
    )

    def __init__(self, path: Path, by: str, lines: Sequence[SuspectLine]) -> None:
        super().__init__(path, by)
        names = {line.dataset for line in lines}
        if len(names) > 1:
            known = ", ".join(sorted(names))
            raise ReleaseError(f"--write: suspects of {len(names)} datasets ({known}), but errata are for one")
        self._lines = {line.id: line for line in lines}

    def read(self) -> Mapping[str, Decided]:
        """Return what is decided; drafts of the doctor are not."""
        text, errata = self._load()
        kept = {id: Decided("keep", f"the source is right, says {by}") for id, by in kept_ids(text).items()}
        found = {id: each for id, each in errata.items() if not each.source.startswith(_DRAFT)}
        return {**kept, **{id: self._decided(id, each) for id, each in found.items()}}

    def change(self, subject: Subject, choice: Choice) -> None:
        """Change the entry of a row."""
        old, before = self._load()
        entry = self._entry(subject, choice)
        new = edited(old or _HEAD, subject.id, entry, kept_by=self.by if choice.act == "keep" else "")
        text = self._checked(new, before, subject.id, entry)
        if entry:
            self._check_meaning(text, subject.id, entry)
        self.replace(self._mark() + text.encode())

    def _load(self) -> tuple[str, Mapping[str, Erratum]]:
        if not self.path.exists():
            return "", {}
        try:
            data = read_regular(self.path, MAX_BYTES)
            return data.decode("utf-8-sig"), errata_of(data, self.path.name)
        except ValueError as error:
            raise ReleaseError(f"{self.path}: expected errata of at most {MAX_BYTES:,} bytes in UTF-8") from error

    def _mark(self) -> bytes:
        """Return the byte order mark with which the file begins; empty if it has none."""
        if not self.path.exists():
            return b""
        with self.path.open("rb") as file:
            found = file.read(len(codecs.BOM_UTF8))
        return found if found == codecs.BOM_UTF8 else b""

    def _checked(self, text: str, before: Mapping[str, Erratum], id: str, entry: Mapping[str, object] | None) -> str:
        """Return a text if it says what it should; a change must not touch other entries."""
        try:
            after = dict(errata_of(self._mark() + text.encode(), self.path.name))
        except ManifestError as error:
            raise ReleaseError(f"{self.path}: {_FIXED} ({error})") from error
        others = {key: each for key, each in before.items() if key != id}
        if (after.pop(id, None) is None) != (entry is None) or after != others:
            raise ReleaseError(f"{self.path}: {_FIXED}")
        return text

    def _check_meaning(self, text: str, id: str, entry: Mapping[str, object]) -> None:
        """Refuse an entry that would correct the row otherwise than was decided: errata cannot say every value."""
        found, fields = errata_of(text.encode(), self.path.name)[id], self._lines[id].fields
        if found.source != entry["source"]:
            raise ReleaseError("the comment: has characters that errata cannot have; write it in others")
        new = cast(Mapping[str, JsonValue], entry.get("set", {}))
        if not fields:  # the doctor could not read the row, so only the entry can be compared
            if found.set != _as_read(dict(new)):
                raise ReleaseError(f"{', '.join(new)}: has a value that errata cannot say; mend the row in the source")
            return
        got = corrected(fields, found)
        if isinstance(got, Fault):
            raise ReleaseError(f"errata cannot say this: {got}; mend the row in the source, or remove it")
        for name, value in fields.items():
            meant = _meant(new[name], value) if name in new else value
            if _exact(got[name]) != _exact(meant):
                said = f"{name}: errata cannot say {_exact(meant)[:80]}, they would set {_exact(got[name])[:80]}"
                raise ReleaseError(f"{said}; mend the row in the source, or remove it")

    def _entry(self, subject: Subject, choice: Choice) -> Mapping[str, object] | None:
        """Return the erratum for a choice; None if the row has none."""
        if choice.act in ("undo", "keep"):
            return None
        line = self._lines[subject.id]
        said = f"; {choice.comment.strip()}" if choice.comment.strip() else ""
        source = f"{self._why(line)}{said}"
        if choice.act == "remove":
            return {"source": source, "drop": True}
        new = line.correction if choice.act == "accept" else _changed(subject, choice)
        if not new:
            what = "the doctor proposes no correction" if choice.act == "accept" else "no field was changed"
            raise ReleaseError(f"{what}: change a field and revise, or remove the row, or say that the source is right")
        was = {name: line.fields[name] for name in new if name in line.fields}
        return {"source": source, "set": dict(new), **({"was": was} if was else {})}

    def _why(self, line: SuspectLine) -> str:
        """Return the beginning of the source of an erratum; a comment comes after it."""
        return f"review by {self.by}: {line.kind}: {line.evidence}"

    def _decided(self, id: str, erratum: Erratum) -> Decided:
        line = self._lines.get(id)
        start = f"{self._why(line)}; " if line else ""
        comment = erratum.source.removeprefix(start) if start and erratum.source.startswith(start) else ""
        if erratum.drop:
            return Decided("remove", erratum.source, comment=comment)
        is_accepted = line is not None and erratum.set == _as_read(line.correction)
        words = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in erratum.set.items())
        got = corrected(line.fields, erratum) if line else {}
        values = (
            {name: shown_value(value) for name, value in got.items() if name in erratum.set}
            if isinstance(got, dict)
            else {}
        )
        return Decided("accept" if is_accepted else "revise", f"{words}; {erratum.source}", values, comment)


def _as_read(value: JsonValue) -> object:
    """Return a value as errata have it after reading: everything but true and false is a text."""
    if isinstance(value, dict):
        return {key: _as_read(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_read(each) for each in value]
    return value if isinstance(value, bool | str) else "null" if value is None else str(value)


def _meant(new: JsonValue, old: JsonValue) -> JsonValue:
    """Return the value that a field should have: a text stays a text."""
    if not isinstance(old, str) or isinstance(new, str):
        return new
    return str(new).lower() if isinstance(new, bool) else str(new)


def _exact(value: object) -> str:
    """Return a value so that 5, 5.0 and "5" differ."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _changed(subject: Subject, choice: Choice) -> dict[str, JsonValue]:
    known = {field.name: field for field in subject.fields}
    if unknown := [name for name in choice.values if name not in known]:
        raise ReleaseError(f"{unknown[0][:80]}: is no field of this row")
    return {
        name: _value(known[name], text)
        for name, text in choice.values.items()
        if as_typed(text) != as_typed(known[name].text)
    }


def _value(field: Field, text: str) -> JsonValue:
    if field.is_text:
        return text
    try:
        found: JsonValue = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ReleaseError(f"{field.name}: expected JSON, such as {field.text[:60]}; found {text[:60]!r}") from error
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
