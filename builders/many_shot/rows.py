"""The row that every reader of classified pictures makes for the builder."""

from mmlongbench.task import Row


class ClassifiedImage(Row):
    """A picture to classify."""

    image: str
    """The name of the picture in the source."""
    kind: str
    """The id of its class among the reader's `image_classes`."""
