"""Finds the files of pictures that annotations name by a path."""

from pathlib import Path, PurePosixPath

from mmlongbench.task import file_inside


def picture_below(folder: Path, name: str) -> Path | None:
    """Return the file of a picture below a folder; None if there is no such file or it is outside the folder.

    If no file has the name, the first folder of the name is left out, because a user may give this folder itself: the
    picture `train_mini/a/1.jpg` is the file `a/1.jpg` below `train_mini`.
    """
    parts = PurePosixPath(name).parts
    found = (file_inside(folder, PurePosixPath(*tried)) for tried in (parts, parts[1:]) if tried)
    return next(filter(None, found), None)
