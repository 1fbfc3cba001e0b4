"""Many-shot in-context learning: rounds of labelled pictures, then a picture to classify (paper, section 3; files
`ICL/*`).

Class names are hidden: a label is a number, the place of the class in a drawn order. All test images of a domain share
four sets of exemplars. Each set is packed once, so that it fits with the costliest test image. The record of a test
image has the set that was drawn for it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, ClassVar

from pydantic import Field

import mmlongbench.task as mt
from builders.many_shot.public import OneObject
from builders.many_shot.readers import ClassifiedImage

INSTRUCTION = (
    "You need to recognize entities in images. Use the provided mapping from the image to label to assign a label to "
    'the test image. Only output "label: {label}" and nothing else.\n\nTraining examples:\n'
)
_PAPER_IMAGES = {
    "cars196": (36.1, 72.6, 156.3, 324.0, 628.8),
    "food101": (25.0, 52.0, 106.1, 215.5, 432.5),
    "sun397": (37.0, 80.1, 161.3, 326.8, 656.6),
    "inat2021": (31.2, 66.1, 134.6, 271.0, 543.8),
}
"""The images per example at 8K, 16K, 32K, 64K and 128K in Table 3 of the paper."""


class ManyShotOptions(mt.Options):
    """The options that a manifest may set."""

    sets: int = Field(default=4, ge=1)
    """The number of sets of exemplars for each domain."""
    domains: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """The domains to use, if the source has several; all by default."""
    classes_per_8k: int = Field(default=5, ge=1)
    """The number of classes that a context of 8K shows. It grows in proportion to the length, up to `most_classes`."""
    most_classes: int = Field(default=50, ge=2)
    """The maximum number of classes; above 128K there may be more if the pictures of a class are exhausted."""


class ManyShot(mt.advanced.SharedContextBuilder[ClassifiedImage]):
    """Classification of pictures by exemplars."""

    row_type: ClassVar[type[mt.Row]] = ClassifiedImage
    options: ManyShotOptions

    options_type: ClassVar[type[mt.Options]] = ManyShotOptions
    record_fields: ClassVar[Mapping[str, str]] = {
        "id": "The id of the test image, the same at every length.",
        "domain": "The domain of the class; the name of the dataset if the source has no domains.",
        "set": "The number of the set of exemplars that was drawn for the test image, from 0.",
        "exemplars": "The exemplars in the order of the prompt, each with image (its path below `mmlb_image/`) and id "
        "(its label).",
        "image": "The path of the test image below `mmlb_image/`.",
        "answer": "The label of the class of the test image.",
        "name": "The name of the class of the test image, which no prompt shows.",
        "labels": "The names of the classes that the context shows, in the order of their labels from 0.",
        "image_tokens": "The tokens of the test image alone.",
    }

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("ICL/{name}_K{k}.frozen.jsonl"),
            "cls_acc",
            category="ICL",
            most_tokens=2048,
            bundle=mt.advanced.Bundle(mt.readers.FilePattern("ICL/{name}_K{k}.json"), OneObject()),
            is_answer_of_context=True,
            paper_images=_PAPER_IMAGES.get(self.dataset, ()),
            shown_slots=("{label}",),
        )

    def selects(self, sources: mt.Sources) -> Callable[[ClassifiedImage], bool]:
        """Return whether a test image has one of the classes that the longest standard length shows."""
        domains = {each.domain for each in sources.image_classes.classes.values()}
        if unknown := sorted(set(self.options.domains) - domains):
            known = ", ".join(sorted(domains)) or "none"
            raise mt.advanced.DraftError(f"options.domains: the source has no domain {unknown[0]!r}; it has {known}")
        shown = {kind for domain in domains for kind in self._table(sources, domain)[: self.options.most_classes]}
        return lambda row: row.kind in shown

    def draft(self, row: ClassifiedImage, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """Return the context of the set that is drawn for a test image, with the question about this image alone."""
        return self._context(sources.image_classes.classes[row.kind].domain, self._set_of(row, sources), [row], sources)

    def contexts(self, rows: Sequence[ClassifiedImage], sources: mt.Sources) -> list[mt.advanced.ContextDraft]:
        domains: dict[str, list[ClassifiedImage]] = {}
        for row in rows:
            domains.setdefault(sources.image_classes.classes[row.kind].domain, []).append(row)
        numbers = range(self.options.sets)
        return [self._context(name, number, domains[name], sources) for name in sorted(domains) for number in numbers]

    def record(self, example: mt.PackedExample) -> mt.Record:
        data = example.question.data
        labels = {str(unit.group): int(unit.data["label"]) for unit in example.units}
        return {
            "id": example.id,
            "domain": data["domain"],
            "set": data["set"],
            "exemplars": [
                {"image": path, "id": unit.data["label"]}
                # the last one is the test image
                for path, unit in zip(example.prompt.images, example.units, strict=False)
            ],
            "image": data["image"],
            "answer": labels[data["kind"]],
            "name": data["names"][data["kind"]],
            "labels": [data["names"][kind] for kind in sorted(labels, key=labels.__getitem__)],
            "image_tokens": example.count.image - sum(count.image for count in example.counts),
        }

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Return the prompt of a record, or of what `OneObject` makes from a set and a test image."""
        exemplars = enumerate(record["exemplars"])
        units = [_exemplar(str(number), exemplar["image"], exemplar["id"]) for number, exemplar in exemplars]
        return mt.advanced.assemble((INSTRUCTION,), units, "\n\n", _ask(record["image"]))

    def facets(self, record: mt.Record) -> Mapping[str, Sequence[str]]:
        domain = record.get("domain", self.dataset)
        return {} if domain == self.dataset else {"domain": [domain]}

    def choices(self, record: mt.Record) -> mt.Choices | None:
        labels = sorted({exemplar["id"] for exemplar in record["exemplars"]})
        if record["answer"] not in labels:
            return None
        return mt.Choices(tuple(map(str, labels)), labels.index(record["answer"]))

    def cluster(self, record: mt.Record) -> str:
        """Return the class of the test image, because models confuse whole classes. The sets of exemplars are no
        clusters, because they are few, and the same for every release.
        """
        name = str(record.get("name", ""))
        return f"{record.get('domain', self.dataset)}: {name}" if name else ""

    def _table(self, sources: mt.Sources, domain: str) -> tuple[str, ...]:
        """Return the classes of a domain that have exemplars and test images; empty for a domain that the options leave
        out. They are in the order in which a stratified sample visits them, so that even a small sample has test images
        of the first classes, which short contexts show.
        """
        if self.options.domains and domain not in self.options.domains:
            return ()
        classes = sources.image_classes.classes.items()
        kinds = (kind for kind, each in classes if each.domain == domain and each.exemplars and each.tests)
        return tuple(sources.sample_draws.order("stratum", kinds))

    def _set_of(self, row: ClassifiedImage, sources: mt.Sources) -> int:
        return sources.draws.integer(f"set of {row.id}", 0, self.options.sets - 1)

    def _context(
        self, domain: str, number: int, rows: Sequence[ClassifiedImage], sources: mt.Sources
    ) -> mt.advanced.ContextDraft:
        table, images, draws = self._table(sources, domain), sources.images, sources.draws.at("set", number)
        classes = {kind: sources.image_classes.classes[kind] for kind in table}

        asked = cache(lambda: [images.likeness(row.image) for row in rows])

        def unit(kind: str, name: str, label: int, turn: int) -> mt.Unit:
            id = f"{kind}: {name}"
            try:
                looks, path = images.likeness(name), images[name].path
            except mt.Rejected as reject:
                return mt.Unit(id, "", (), "exemplar", excluded=reject.fault.reason)
            is_copy = mt.readers.is_like_any(looks, asked())
            return _exemplar(id, path, label, kind, "near-duplicate-of-a-test-image" if is_copy else "")

        rounds = mt.advanced.Rounds(
            table,
            exemplars=lambda kind: draws.order(f"exemplars of {kind}", classes[kind].exemplars),
            unit=unit,
            order=draws.order,
            labels=lambda kinds: sources.draws.order("labels", kinds),
            per_8k=self.options.classes_per_8k,
            most=self.options.most_classes,
        )
        name = domain or self.dataset
        about = {"domain": name, "set": number, "names": {kind: each.name for kind, each in classes.items()}}
        questions = []
        for row in rows:
            path, is_asked = images[row.image].path, self._set_of(row, sources) == number
            data = {**about, "image": path, "kind": row.kind}
            questions.append(mt.advanced.Question(row.id, _ask(path), data, row.kind, is_asked))
        id = f"{name}, set {number}"
        return mt.advanced.ContextDraft(
            (), rounds, id=id, instruction=(INSTRUCTION,), questions=tuple(questions), family=domain
        )


def _exemplar(id: str, path: str, label: int, kind: str | None = None, excluded: str = "") -> mt.Unit:
    tail, data = f"\nlabel: {label}", {"label": label}
    return mt.Unit(id, mt.Image(path), (), "exemplar", tail=tail, group=kind, data=data, excluded=excluded)


def _ask(path: str) -> tuple[mt.Part, ...]:
    return ("\n\nNow classify this image: ", mt.Image(path), "\nlabel:")
