"""Which predictions and scores fit no example of what is viewed: each is counted by reason."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from mmlongbench.errors import ScoringError
from mmlongbench.scoring.predictions import REASONS, Key, Problems
from mmlongbench.web.viewer.answers import Answers, key_of_row
from mmlongbench.web.viewer.index import Index
from mmlongbench.web.viewer.sources import ViewedFile


def note_unfit(answers: Answers, index: Index) -> None:
    """Add a note for each reason why predictions or scores of a model fit no example.

    Raises:
        ScoringError: nothing of a model fits.

    """
    fits, unfit = Counter[str](), defaultdict[str, Problems](Problems)
    for model, place in _of_unknown_files(answers):
        unfit[model].add("unknown-file", place)
    for file in answers.viewed.files:
        given = list(_given(answers, file))
        keys = {key_of_row(row) for row in index.file(file.number).rows} if given else set[Key]()
        ids = {id for id, _, _ in keys}
        for model, key, place in given:
            if key in keys:
                fits[model] += 1
            else:
                unfit[model].add("wrong-placement" if key[0] in ids else "unknown-id", place)
    for model, problems in unfit.items():
        notes = [
            f"{model}: {REASONS[reason]}: {each['count']:,}; the first: {each['first'][0]}"
            for reason, each in problems.summary().items()
        ]
        if not fits[model]:
            raise ScoringError(f"{notes[0]}. Nothing of {model} fits; give what was made for {answers.viewed.name}")
        answers.notes += tuple(notes)


def _of_unknown_files(answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield (model, place) of everything that names a file that is not there."""
    for model, read in answers.predictions.items():
        for name, queues in read.by_file.items():
            if name not in answers.viewed.aliases:
                yield from ((model, f"{each} ({name})") for queue in queues.values() for each in queue)
    yield from answers.of_unknown_files


def _given(answers: Answers, file: ViewedFile) -> Iterator[tuple[str, Key, str]]:
    """Yield (model, key, place) of the predictions and the scores of a file."""
    for model, read in answers.predictions.items():
        for name in dict.fromkeys((file.name, *file.aliases)):
            for key, queue in read.by_file[name].items() if name in read.by_file else ():
                yield from ((model, key, f"{each} ({key[0]})") for each in queue)
    for (number, key), scores in answers.scores.items():
        if number == file.number:
            yield from ((model, key, f"a score of {file.name}, {key[0]}") for model, _ in scores)
