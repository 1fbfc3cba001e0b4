"""The pages of a review: a list of what is to be decided, and each subject with its pages beside the claimed answer."""

from collections.abc import Iterator

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.web.kit import render
from mmlongbench.web.viewer.reviewing.beside import beside
from mmlongbench.web.viewer.reviewing.decisions import Choice
from mmlongbench.web.viewer.reviewing.review import Review
from mmlongbench.web.viewer.site import Links, Site

_NONE = "nothing is under review: start the viewer with --suspects or --review"


def review_of(site: Site) -> Review:
    """Return the review of a site.

    Raises:
        ReleaseError: there is none.

    """
    if site.review is None:
        raise ReleaseError(_NONE)
    return site.review


def review_page(site: Site, links: Links) -> Iterator[str]:
    """Yield the list of what is reviewed in pieces.

    Raises:
        MMLongBenchError: nothing is reviewed, or the file of decisions cannot be read.

    """
    review = review_of(site)
    decided = review.decided()
    return render(
        "view_review.html",
        title="Review",
        site=site,
        links=links,
        review=review,
        decided=decided,
        left=sum(each.id not in decided for each in review.subjects),
    )


def subject_page(site: Site, links: Links, number: int) -> Iterator[str]:
    """Yield the page of a subject in pieces.

    Raises:
        MMLongBenchError: there is no such subject, or the file of decisions cannot be read.

    """
    review = review_of(site)
    subject, count = review.subject(number), len(review.subjects)
    found = beside(site, subject)
    return render(
        "view_subject.html",
        title=subject.id,
        site=site,
        links=links,
        review=review,
        subject=subject,
        decided=review.decided().get(subject.id),
        pages=found.pages,
        example=links.example(found.example[0], found.example[1]) if found.example else "",
        previous=links.subject(number - 1) if number > 0 else "",
        next=links.subject(number + 1) if number + 1 < count else "",
        token=review.token if review.file and links.mode == "server" else "",
    )


def decide(site: Site, links: Links, number: int, choice: Choice) -> dict[str, object]:
    """Write a decision, and return where to go on: to the next subject that nobody has decided.

    Raises:
        MMLongBenchError: it cannot be written; the file is as before.

    """
    review = review_of(site)
    subject = review.subject(number)
    if review.file is None:
        raise ReleaseError("the viewer is read-only: start it with --write FILE")
    review.file.decide(subject, choice)
    try:
        decided = review.decided()
    except MMLongBenchError as error:
        raise ReleaseError(f"written, but cannot be read again: {error}") from error
    left = [each.number for each in review.subjects if each.id not in decided]
    after = next((each for each in left if each > number), left[0] if left else None)
    here = decided.get(subject.id)
    return {
        "act": here.act if here else "",
        "words": here.words if here else "",
        "seen": here.mark if here else "",
        "left": len(left),
        "next": "" if after is None or choice.act == "undo" else links.subject(after),
    }
