"""The table of all rules, in the order in which they are shown."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from mmlongbench.checking.again import rows_digest
from mmlongbench.checking.answers import answers_score_full
from mmlongbench.checking.contexts import (
    contexts_are_nested,
    files_have_the_same_questions,
    questions_have_one_cluster,
    shared_contexts_are_rounds,
)
from mmlongbench.checking.examples import (
    examples_are_within_their_budgets,
    images_are_as_planned,
    needles_stand_at_their_depths,
    no_negative_holds_an_answer,
    nothing_is_left_of_a_template,
    recounts_equal_the_counts,
    required_units_are_shown_once,
)
from mmlongbench.checking.findings import Failure, Outcome
from mmlongbench.checking.purity import drafts_are_pure, prompts_come_back
from mmlongbench.checking.world import World

Find: TypeAlias = Callable[[World], Iterable[Outcome]]
"""Yields the cases in which a rule does not hold; or why the rule does not apply."""

BUILT = "a small release can be built"
KEPT = "questions are kept, and fit every length"
ROWS = "rows are the same when they are read again"
IDS = "ids are unique, and stay the same"
BYTES = "another process builds the same bytes"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about a dataset whose small release is built."""

    text: str
    """What it says, in a few words."""
    find: Find
    needs_release: bool = True
    """Whether it needs the release, or only the chosen questions."""


def audit_finds_nothing(world: World) -> Iterator[Outcome]:
    """Yield every kind of problem that the audit found in another process."""
    rechecked = world.rechecked
    if rechecked.prompt_fault:
        detail = f"in a new process, the prompt cannot be rebuilt from the record: {rechecked.prompt_fault}"
        yield Failure(detail, "prompt()", rechecked.prompt_row)
    if rechecked.audit_error:
        yield Failure(rechecked.audit_error)
    for found in rechecked.audit:
        yield Failure(f"{found.file}: {found.problem} ({found.count} times): {found.first}")


def bytes_are_the_same(world: World) -> Iterator[Outcome]:
    """Yield what another process read or built otherwise, or why it built nothing."""
    rechecked, plan = world.rechecked, world.dataset.plan
    where = "in other surroundings (hash seed, date, HOME, LANG, working directory, workers)"
    if rechecked.rows and rechecked.rows != rows_digest(plan.spec.reader, plan.sources):
        yield Failure(f"{where}: the rows of the source, or their order, differ", "raw_rows()")
    if fault := rechecked.build_error or rechecked.difference.text:
        yield Failure(f"{where}: {fault}", rechecked.difference.method, rechecked.difference.row)


RULES = (
    Rule("a draft is the same each time it is made", drafts_are_pure, needs_release=False),
    Rule("prompts come back from records", prompts_come_back),
    Rule("examples are within their budgets", examples_are_within_their_budgets),
    Rule("recounts equal the counts, to the token", recounts_equal_the_counts),
    Rule("required units are shown once", required_units_are_shown_once),
    Rule("needles stand at their depths", needles_stand_at_their_depths),
    Rule("no negative holds an answer", no_negative_holds_an_answer),
    Rule("shorter contexts are nested in longer ones", contexts_are_nested),
    Rule("each round shows every label once", shared_contexts_are_rounds),
    Rule("every file has the same questions", files_have_the_same_questions),
    Rule("a question has the same cluster everywhere", questions_have_one_cluster),
    Rule("answers score full, empty outputs do not", answers_score_full),
    Rule("images can be decoded, in the planned sizes", images_are_as_planned),
    Rule("no slot or marker is left in prompts", nothing_is_left_of_a_template),
    Rule("an audit in another process finds nothing", audit_finds_nothing),
    Rule(BYTES, bytes_are_the_same),
)
"""The rules about a built dataset. `check` adds those before: `BUILT`, `KEPT`, `ROWS` and `IDS`."""
