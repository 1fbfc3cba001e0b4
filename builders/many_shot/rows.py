"""The row that every reader of classified pictures makes for the builder."""

from mmlongbench.task import Row


class ClassifiedImage(Row):
    """A picture to classify."""

    image: str
    """The source's name of the picture."""
    kind: str
    """The id of its class among the reader's `image_classes`."""
