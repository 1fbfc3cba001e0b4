"""Many-shot in-context learning: name the class of a picture, given many pictures with labels."""

from builders.many_shot.builder import ManyShot
from builders.many_shot.folders import ImageFolders
from builders.many_shot.inaturalist import INaturalist
from builders.many_shot.tables import ImageTables

__all__ = ["INaturalist", "ImageFolders", "ImageTables", "ManyShot"]
