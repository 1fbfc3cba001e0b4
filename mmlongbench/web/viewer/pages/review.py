"""The pages of a review: a list of its subjects, and each subject with its pages beside the claimed answer."""

from collections.abc import Iterator

from mmlongbench.errors import ReleaseError
from mmlongbench.web.kit import render
from mmlongbench.web.viewer.beside import beside
from mmlongbench.web.viewer.review import Review
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
        ReleaseError: nothing is reviewed.

    """
    return render("view_review.html", title="Review", site=site, links=links, review=review_of(site))


def subject_page(site: Site, links: Links, number: int) -> Iterator[str]:
    """Yield the page of a subject in pieces.

    Raises:
        ReleaseError: there is no such subject.

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
        pages=found.pages,
        example=links.example(found.example[0], found.example[1]) if found.example else "",
        previous=links.subject(number - 1) if number > 0 else "",
        next=links.subject(number + 1) if number + 1 < count else "",
    )
