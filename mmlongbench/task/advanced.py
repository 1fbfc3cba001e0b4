"""What the families of the paper need beyond a `Task`: builders with records of their own, questions that share a
context, hard negatives, ranked pages.

Use `import mmlongbench.task as mt`, and `mt.advanced.Builder`.
"""

from mmlongbench.corpus.corpus import Passage
from mmlongbench.corpus.retrieval.bm25 import rank_texts
from mmlongbench.corpus.retrieval.negatives import Facts, Query
from mmlongbench.corpus.retrieval.numbers import numbers_in
from mmlongbench.corpus.retrieval.pages import MAX_RANKED, PageId, PageQuery, PageRanking
from mmlongbench.corpus.retrieval.search import SearchedCorpus
from mmlongbench.corpus.retrieval.spellings import number_spellings, ordinal_words
from mmlongbench.corpus.retrieval.text import holder, normalise
from mmlongbench.documents.joined_pages import MAX_JOINED_PIXELS, JoinPages
from mmlongbench.documents.names import LABEL_WIDTH, label
from mmlongbench.documents.pdf import has_words
from mmlongbench.documents.pictures import Picture
from mmlongbench.draft import ContextDraft, Question, Rendering, Role, TakeOrder
from mmlongbench.errors import DraftError
from mmlongbench.packing.pack import PlacedNeedle, assemble
from mmlongbench.prompt import MARKER
from mmlongbench.sentences import sentences
from mmlongbench.task.builder import Builder, ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.rows import Suspect
from mmlongbench.task.sources import Crop, Documents, Images, WebPages
from mmlongbench.task.spec import Bundle, FullPrompt, Remark, TaskSpec
from mmlongbench.task.take_orders import Rounds

__all__ = ["Builder", "Bundle", "ContextDraft", "Crop", "Documents", "DraftError", "ExaminingBuilder", "Facts"]
__all__ += ["LABEL_WIDTH", "MARKER", "FullPrompt", "Images", "JoinPages", "assemble", "has_words", "holder", "label"]
__all__ += ["MAX_JOINED_PIXELS", "MAX_RANKED", "normalise", "number_spellings", "numbers_in", "ordinal_words"]
__all__ += ["PageId", "PageQuery", "PageRanking", "Passage", "Picture", "PlacedNeedle", "Query", "Question"]
__all__ += ["Remark", "Rendering", "Role", "Rounds", "SearchedCorpus", "rank_texts", "sentences"]
__all__ += ["SharedContextBuilder", "Suspect", "TakeOrder", "TaskSpec", "WebPages"]
