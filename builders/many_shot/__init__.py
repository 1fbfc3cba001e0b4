"""Many-shot in-context learning: name the class of a picture by the labels of many others."""

from builders.many_shot.builder import ManyShot
from builders.many_shot.folders import ImageFolders
from builders.many_shot.inaturalist import INaturalist
from builders.many_shot.tables import ImageTables

__all__ = ["INaturalist", "ImageFolders", "ImageTables", "ManyShot"]
