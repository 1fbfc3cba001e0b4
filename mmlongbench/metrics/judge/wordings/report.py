"""The prompts for judging the summary of a government report. The report in the examples is invented."""

from mmlongbench.metrics.judge.calls import MATERIAL
from mmlongbench.metrics.judge.templates import template

_FLUENCY = (
    """You check how a text reads. What it is about, and whether it is true, do not matter.

Give 0 if a reader would stumble: the words are jumbled, the sentences do not belong together, the same thing is said \
again and again (in the same words or in others), or there is no real text, only a heading or a few first words.
Three texts that get 0:
- Only a heading: "What the Office Found"
- A jumble: "Lighthouses the river inspected and inspected of lamps keepers funding the not which keepers were lamps."
- Again and again: "The office lacks a list of its lamps. A list of lamps is missing at the office. The office has no \
list of lamps. There is no list of the office's lamps."

Give 1 if it reads well: coherent, grammatical, and every sentence adds something. A last sentence that breaks off, \
since the text was cut at some length, is no fault.
A text that gets 1:
- "Why the Office Did This Study:
River pilots depend on 212 lighthouses. After two groundings in one winter, lawmakers asked how the lamps are \
maintained.

What the Office Found:
Most lamps are inspected on time, but the results are kept on paper at eleven depots, so that nobody can tell which \
lamps fail most often. Three depots have begun to record failures together; the others plan to follow once they have"

"""
    + MATERIAL
    + """

{text}

Reply with one JSON object and nothing else, {{"fluency": 0}} or {{"fluency": 1}}."""
)

_RECALL = (
    """You check how much of an expert's summary of a government report is found in another summary of the same \
report. Such a summary may say why the study was made, what was found, and what is recommended. The expert's summary \
was taken apart into key points, which you are given by number.

A key point counts if the other summary says what it says, in whatever words. If a key point holds several facts, it \
counts if most of them are there. It does not count if the summary only touches on its subject, or says otherwise.

recall is the number of key points that count.

Example

Key points:
1. The Office of River Lighthouses maintains 212 lighthouses.
2. It maintains them from eleven depots.
3. Two ships ran aground in the winter of 2017.
4. Lawmakers asked the Office to report on how lamps are maintained.
5. The study reviewed inspection records of 2015 to 2018.
6. The study visited four depots.
7. Most lamps are inspected on time.
8. Inspection results are kept on paper.
9. The Office cannot tell which lamps fail most often.
10. Spare lamps are bought by each depot on its own.
11. It is recommended that the Office record failures in one place.
12. The Office agreed.

Summary:
Why the study was made: the Office of River Lighthouses looks after 212 lighthouses, and lawmakers wanted to know how \
their lamps are kept working after two ships had run aground. What was found: inspections are nearly always on time, \
but since the results stay on paper, the Office does not know its weakest lamps. New lamps would cost 9 million. It \
should collect all failures in one place, which it accepted.

Reasoning: The summary gives the number of lighthouses (1), the groundings (3; the year is missing, the main fact is \
there) and the request (4). It says that inspections are on time (7), that results are on paper (8) and that weak \
lamps are not known (9). It gives the recommendation (11) and that the Office agreed (12). It does not mention the \
depots (2), what the study reviewed (5) or visited (6), or who buys spare lamps (10); the cost is no key point.

{{"supported_key_points": [1, 3, 4, 7, 8, 9, 11, 12], "recall": 8}}

End of the example

"""
    + MATERIAL
    + """

{keypoints}

{summary}

First give your reasoning in one short paragraph. Then, as the last thing, give one JSON object of the form \
{{"supported_key_points": [1, 3], "recall": 2}}: the numbers of the key points that count, and how many they are."""
)

_PRECISION = (
    """You check how much of a summary of a government report is supported by an expert's summary of the same report. \
Such a summary may say why the study was made, what was found, and what is recommended.

Go through the sentences of the summary one by one. A sentence is supported if what it mainly says is also said in the \
expert's summary. Details of lesser weight, such as a date, a place or a name, may be missing there. A sentence is not \
supported if what it mainly says is missing in the expert's summary or contradicted by it; that also holds for \
analysis or comment that the expert does not give.

precision is the number of supported sentences; sentence_count is the number of all sentences.

Example 1

Expert's summary:
The Office of River Lighthouses maintains 212 lighthouses from eleven depots. After two groundings, lawmakers asked \
how lamps are maintained. Most lamps are inspected on time. Results are kept on paper, so the Office cannot tell which \
lamps fail most often. The report recommends to record failures in one place. The Office agreed.

Summary:
The Office maintains lighthouses along rivers from its depots. In 2016 it replaced half of its boats. Its lamps are \
mostly inspected when they should be. Because records are on paper, it does not know where lamps fail most. Keepers \
are said to be unhappy about that. The report asks the Office to gather all failures in one place.

Reasoning: Sentence 1 is supported; the number of lighthouses may be missing. Sentence 2 is not supported: nothing is \
said of boats. Sentences 3 and 4 are supported. Sentence 5 is not supported: the expert says nothing of keepers. \
Sentence 6 is supported as the recommendation. Four of six sentences are supported.

{{"precision": 4, "sentence_count": 6}}

Example 2

Expert's summary:
Four agencies pay for school meals in mountain districts. None of them counts how many pupils get a meal on days with \
snow. Roads were closed on 31 days in 2019. The report recommends that one agency counts the meals. Two agencies \
agreed; two did not comment.

Summary:
Several agencies pay for meals at mountain schools. The meals of snowy days are counted by every agency. Roads were \
closed on more than thirty days in a year. Closing the schools in winter would be cheaper. All agencies agreed that \
one of them should count.

Reasoning: Sentence 1 is supported. Sentence 2 is contradicted: none of them counts. Sentence 3 is supported. Sentence \
4 is a comment that the expert does not give. Sentence 5 is contradicted, since two agencies did not comment. Two of \
five sentences are supported.

{{"precision": 2, "sentence_count": 5}}

End of the examples

"""
    + MATERIAL
    + """

{expert_summary}

{summary}

First give your reasoning in one short paragraph. Then, as the last thing, give one JSON object of the form \
{{"precision": 3, "sentence_count": 9}}."""
)

FLUENCY = template(_FLUENCY, ("text",))
RECALL = template(_RECALL, ("keypoints", "summary"))
PRECISION = template(_PRECISION, ("expert_summary", "summary"))
