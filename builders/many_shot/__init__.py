"""Many-shot in-context learning: name the class of a picture, given many pictures with labels."""

from builders.many_shot.builder import ManyShot
from builders.many_shot.readers import ImageFolders, ImageTables, INaturalist

__all__ = ["INaturalist", "ImageFolders", "ImageTables", "ManyShot"]
