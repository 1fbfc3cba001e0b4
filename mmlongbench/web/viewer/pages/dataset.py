"""The page of a dataset: a table of its examples that filters as one types, sorts and pages."""

from collections.abc import Iterator

from mmlongbench.errors import ReleaseError
from mmlongbench.lengths import format_length
from mmlongbench.web.kit import render
from mmlongbench.web.viewer.site import Links, Site
from mmlongbench.web.viewer.tables import PAGE, Query, table


def dataset_name(site: Site, number: int) -> str:
    """Return the name of a dataset by its number.

    Raises:
        ReleaseError: there is no such dataset.

    """
    names = site.viewed.datasets
    if not 0 <= number < len(names):
        raise ReleaseError(f"there is no dataset {number}")
    return names[number]


def dataset_page(site: Site, links: Links, number: int) -> Iterator[str]:
    """Yield the page of a dataset in pieces.

    Raises:
        ReleaseError: there is no such dataset.

    """
    name = dataset_name(site, number)
    return render(
        "view_dataset.html",
        title=name,
        site=site,
        links=links,
        key=f"dataset/{number}",
        lengths=[format_length(length) for length in dict.fromkeys(file.length for file in site.viewed.of(name))],
        models=site.answers.models,
        page=PAGE,
    )


def dataset_data(site: Site, links: Links, number: int, query: Query, size: int = PAGE) -> dict[str, object]:
    """Return a page of the table of a dataset.

    Raises:
        ReleaseError: there is no such dataset.

    """
    return table(site, links, dataset_name(site, number), query, size)
