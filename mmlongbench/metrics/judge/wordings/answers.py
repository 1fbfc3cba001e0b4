"""The prompts for judging answers to questions about documents. The documents in the examples are invented."""

from mmlongbench.metrics.judge.calls import MATERIAL
from mmlongbench.metrics.judge.templates import template

_SAME = (
    "Two answers are the same if they mean the same without doubt: numbers of equal value however they are written "
    "(1,250 and 1250; a quarter, 0.25 and 25 %; with or without the unit or currency that the question implies), two "
    "names of one thing (Holland in the sense of the Netherlands, an abbreviation and what it stands for), one or many "
    "of a word. A number that is only close, or a notion that is only related, is not the same."
)
_ANSWER = (
    """You mark an answer to a question about a document. You are given the question, the reference answer, and a \
response. Find the final answer in the response and compare it with the reference. How the response got there does \
not count.

"""
    + _SAME
    + """

1 point: the final answer is the reference, whole and with nothing added; of a question in several parts, every part \
is right. Where the reference says that the document does not answer the question, only a response that comes to the \
same earns the point.
0 points: everything else.

Reply in this form, in at most 150 words:
[Reasoning]: what the final answer is, and how it compares
[Score]: 1 points
[JSON]: {{"answer_score": 1}}

Example 1
Question: How many boats did the harbour count in June?
Reference: 1250
Response: The table gives 1,250 boats.
[Reasoning]: The final answer is 1,250, which is the number of the reference.
[Score]: 1 points
[JSON]: {{"answer_score": 1}}

Example 2
Question: What did the new pier cost, in euros?
Reference: 3.4 million
Response: Answer: €3,400,000
[Reasoning]: The final answer is 3,400,000 euros. The reference is 3.4 million, of euros by the question: the same sum.
[Score]: 1 points
[JSON]: {{"answer_score": 1}}

Example 3
Question: What share of the visitors came by ferry?
Reference: 41.7%
Response: Answer: about 42 %
[Reasoning]: The final answer is 42 %, the reference is 41.7 %. It is close, but not the same number.
[Score]: 0 points
[JSON]: {{"answer_score": 0}}

Example 4
Question: Who opened the lighthouse?
Reference: Ida Brandt
Response: It was opened by Ida Brandt and Carl Moe.
[Reasoning]: The final answer names Ida Brandt, which is right, and Carl Moe beside her, who is not in the reference.
[Score]: 0 points
[JSON]: {{"answer_score": 0}}

End of the examples

"""
    + MATERIAL
    + """

{question}

{reference}

{response}

Now mark this response in the form above; the JSON object is the last thing in your reply."""
)

_LIST = (
    """You mark an answer that is a list. You are given a question, the items of the reference list by number, and a \
response. Pick the list out of the response and leave out what is only said around it. Then go through the reference \
items one by one.

"""
    + _SAME
    + """

student_answer_count is the number of items in the response's list. covered_count is the number of reference items \
that one of them is the same as.

Reply in this form, in at most 200 words:
[Reasoning]: what you picked, and which reference items are not there
[JSON]: {{"student_answer_count": 3, "covered_count": 2}}

Example 1
Question: Which three boats came in first?
Reference: 1. Heron 2. Tern 3. Gull
Response: First came Heron, then Tern, and Gull was third.
[Reasoning]: The list is Heron, Tern, Gull. All three items of the reference are there.
[JSON]: {{"student_answer_count": 3, "covered_count": 3}}

Example 2
Question: Which colours does the signal have?
Reference: 1. green 2. white
Response: Looking at the picture, I see a tower by the sea. Its signal shows two colours, so the answer is: white, green
[Reasoning]: The list is white, green; the tower is only said around it. Both items of the reference are there.
[JSON]: {{"student_answer_count": 2, "covered_count": 2}}

Example 3
Question: Which four crops does the map show?
Reference: 1. Winter wheat 2. Rye 3. Flax 4. Sugar beet
Response: rye, wheat products and flax
[Reasoning]: The list has three items. Rye and flax are there. Wheat products are related to winter wheat and not the \
same; sugar beet is missing.
[JSON]: {{"student_answer_count": 3, "covered_count": 2}}

End of the examples

"""
    + MATERIAL
    + """

{question}

{reference}

{response}

Now mark this response in the form above; the JSON object is the last thing in your reply."""
)

ANSWER = template(_ANSWER, ("question", "reference", "response"))
LIST = template(_LIST, ("question", "reference", "response"))
