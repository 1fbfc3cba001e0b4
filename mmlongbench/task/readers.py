"""What readers of upstream data need: the contract of a reader, its rows and faults, and files read in bounds.

A `Task` has a reader by itself (`mt.Table`, `mt.Pdfs`, `mt.Folder`). Use `import mmlongbench.task as mt`, and
`mt.readers.Reader`.
"""

from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.documents.pictures import PictureBytes
from mmlongbench.documents.pixels import PICTURE_ENDINGS, PictureFile, is_like_any
from mmlongbench.errors import SourceError, nearest
from mmlongbench.io.files import file_inside, pdfs_by_name, read_whole, text_lines, two_of_one_name, visible_files
from mmlongbench.io.json_lines import json_line_at, json_lines, json_object, load_json
from mmlongbench.io.tables import Columns, columns_of, id_in, parquet_file, table_rows
from mmlongbench.task.file_formats import FileFormat, FilePattern, JsonLines
from mmlongbench.task.reader import Reader, SampleFiles, SampleFunction
from mmlongbench.task.rows import RawRow, RowFault, SourcePaths, raw_row
from mmlongbench.task.sources import ImageClass, ImageClasses
from mmlongbench.task.task import SourceForm

__all__ = ["Columns", "FileFormat", "FilePattern", "ImageClass", "columns_of", "file_inside", "id_in"]
__all__ += ["ImageClasses", "JsonLines", "is_like_any", "json_line_at", "json_lines", "json_object", "load_json"]
__all__ += ["PICTURE_ENDINGS", "PageImages", "Pages", "PictureBytes", "nearest", "parquet_file", "pdfs_by_name"]
__all__ += ["PictureFile", "RawRow", "Reader", "RowFault", "SampleFiles", "SampleFunction", "raw_row", "read_whole"]
__all__ += ["SourceError", "SourceForm", "SourcePaths", "table_rows", "text_lines", "two_of_one_name"]
__all__ += ["visible_files"]
