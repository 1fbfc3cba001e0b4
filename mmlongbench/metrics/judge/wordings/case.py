"""The prompts for judging the summary of a civil lawsuit. The cases in the examples are invented."""

from mmlongbench.metrics.judge.calls import MATERIAL
from mmlongbench.metrics.judge.templates import template

_FLUENCY = (
    """You check how a text reads. What it is about, and whether it is true, do not matter.

Give 0 if a reader would stumble: the words are jumbled, the sentences do not belong together, the same thing is said \
again and again (in the same words or in others), or there is no real text, only a heading or a few first words.
Three texts that get 0:
- Only a heading: "Summary of the case"
- A jumble: "The tenants court the the filed of heating and landlord landlord which district the was the motion."
- Again and again: "The tenants sued the city. The city was sued by the tenants. The tenants brought a suit against \
the city. A suit was brought by the tenants."

Give 1 if it reads well: coherent, grammatical, and every sentence adds something. A last sentence that breaks off, \
since the text was cut at some length, is no fault.
Two texts that get 1:
- "Nine tenants sued the city of Alderton over flats without heating. The court ordered repairs within a month."
- "A ferry worker who uses a wheelchair sued his employer, since the new staff rooms could only be reached by stairs. \
The company argued that a lift was too costly. After a hearing the court asked both sides to agree on a plan, which \
they presented in May, and the case remains open until the last of the rooms"

"""
    + MATERIAL
    + """

{text}

Reply with one JSON object and nothing else, {{"fluency": 0}} or {{"fluency": 1}}."""
)

_RECALL = (
    """You check how much of an expert's summary of a civil lawsuit is found in another summary of the same lawsuit. \
Both are made from its legal documents and should tell the background, the parties and the outcome. The expert's \
summary was taken apart into key points, which you are given by number.

A key point counts if the facts that it states are clearly stated by the other summary, in whatever words. It does not \
count if the summary only touches on its subject, or says otherwise.

recall is the number of key points that count.

Example 1

Key points:
1. Nine tenants sued the city of Alderton in 2014.
2. They said that 60 city flats had no heating for a winter.
3. They claimed a breach of the housing act.
4. They asked for repairs and for their rent back.
5. In 2015 the court ordered repairs within a month.
6. The court did not give the rent back.

Summary:
Nine tenants of flats without heating took the city of Alderton to court in 2014, under the housing act. They wanted \
the heating repaired. The court told the city in 2015 to repair it within a month. The mayor resigned soon after.

Reasoning: The parties and the year are there (1). That 60 flats were cold for a whole winter is not said (2). The \
claim under the housing act is there (3). Of what was asked for, the rent is missing (4). The order is there (5). \
Nothing is said of what the court refused (6). The mayor is no key point.

{{"recall": 3}}

Example 2

Key points:
1. A ferry worker who uses a wheelchair sued the Northbank Ferry Company.
2. New staff rooms could only be reached by stairs.
3. The company said that a lift was too costly.
4. In May 2018 both sides agreed on a plan.
5. Under the plan a lift was to be built within two years.

Summary:
The suit of a ferry worker in a wheelchair against the Northbank Ferry Company ended with a plan on which the two \
agreed in May 2018. The worker could not reach the rooms for the staff, which are upstairs. Under the plan all staff \
rooms move to the ground floor.

Reasoning: The parties are there (1), and that the rooms could not be reached (2). The company's argument is missing \
(3). The agreement is there (4). What the plan says is told otherwise: rooms that move, not a lift (5).

{{"recall": 3}}

End of the examples

"""
    + MATERIAL
    + """

{keypoints}

{summary}

First give your reasoning in one short paragraph. Then, as the last thing, give one JSON object of the form \
{{"recall": 2}}."""
)

_PRECISION = (
    """You check how much of a summary of a civil lawsuit is supported by an expert's summary of the same lawsuit. \
Both are made from its legal documents and should tell the background, the parties and the outcome.

Go through the sentences of the summary one by one. A sentence is supported if what it mainly says is also said in the \
expert's summary. Details of lesser weight, such as a date, a name, or the title of a law or of an earlier case, may \
be missing there. A sentence is not supported if what it mainly says is missing in the expert's summary or \
contradicted by it.

precision is the number of supported sentences; sentence_count is the number of all sentences.

Example 1

Expert's summary:
In 2014 nine tenants sued the city of Alderton, whose flats had no heating for a winter. They claimed a breach of the \
housing act, and asked for repairs and for their rent back. In 2015 the court ordered repairs within a month, and did \
not give the rent back.

Summary:
Nine tenants, led by Ms Orla Fenn, sued the city of Alderton over cold flats. They relied on the housing act. The city \
apologised at once. The court had the heating repaired.

Reasoning: Sentence 1 is supported; a name more is a detail. Sentence 2 is supported. Sentence 3 is not supported: the \
expert tells of no apology. Sentence 4 is supported. Three of four sentences are supported.

{{"precision": 3, "sentence_count": 4}}

Example 2

Expert's summary:
A ferry worker who uses a wheelchair sued the Northbank Ferry Company, since new staff rooms could only be reached by \
stairs. The company said that a lift was too costly. In May 2018 both sides agreed on a plan, under which a lift was \
to be built within two years. A monitor reports to the court.

Summary:
A worker sued a ferry company over rooms that he could not reach. The company denied that it employed him. The jury \
found for the worker. Both sides then agreed on a plan. Under it the rooms are closed

Reasoning: Sentence 1 is supported. Sentence 2 is not supported: the company spoke of the cost. Sentence 3 is not \
supported: there was no jury. Sentence 4 is supported. Sentence 5 is contradicted, since a lift was to be built; that \
it breaks off does not matter. Two of five sentences are supported.

{{"precision": 2, "sentence_count": 5}}

End of the examples

"""
    + MATERIAL
    + """

{expert_summary}

{summary}

First give your reasoning in one short paragraph. Then, as the last thing, give one JSON object of the form \
{{"precision": 2, "sentence_count": 5}}."""
)

FLUENCY = template(_FLUENCY, ("text",))
RECALL = template(_RECALL, ("keypoints", "summary"))
PRECISION = template(_PRECISION, ("expert_summary", "summary"))
