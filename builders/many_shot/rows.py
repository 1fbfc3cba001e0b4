"""The row that every reader of classified pictures gives to the builder."""

from mmlongbench import Row


class ClassifiedImage(Row):
    """A picture to be classified."""

    image: str
    """As the source names it."""
    kind: str
    """The id of its class among the reader's `image_classes`."""
