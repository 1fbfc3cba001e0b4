"""Finds the files of pictures that annotations name by a path."""

from pathlib import Path, PurePosixPath

from mmlongbench.task import file_inside


def picture_below(folder: Path, name: str, root: Path | None = None) -> Path | None:
    """Return the file of a picture below a folder; None if there is no such file or it is outside the folder.

    Names are relative to `root`, which is `folder` or a folder below it; by default, it is `folder`. If no file has the
    name, the first folder of the name is left out, because a user may give this folder itself: the picture
    `train_mini/a/1.jpg` is the file `a/1.jpg` below `train_mini`.
    """
    parts, root = PurePosixPath(name).parts, root or folder
    for tried in (parts, parts[1:]):
        if tried and (path := file_inside(root, PurePosixPath(*tried))):
            return path if file_inside(folder, path.absolute()) else None
    return None
