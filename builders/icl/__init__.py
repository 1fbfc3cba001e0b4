"""Many-shot in-context learning: name the class of a picture by the labels of many others."""

from builders.icl.builder import ManyShot
from builders.icl.folders import ImageFolders
from builders.icl.inaturalist import INaturalist
from builders.icl.tables import ImageTables

__all__ = ["INaturalist", "ImageFolders", "ImageTables", "ManyShot"]
