"""The row that every reader of classified pictures gives to the builder."""

from mmlongbench import Row


class ClassifiedImage(Row):
    """A picture to be classified."""

    image: str
    """As the source names it."""
    kind: str
    """The id of its class among the reader's `image_classes`."""


def is_unicode(name: str) -> bool:
    """Whether a name can be written as text: that of a file is bytes on disk, JSON can spell half a character."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
