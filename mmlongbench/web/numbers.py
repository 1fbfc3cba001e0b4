"""Formats numbers for pages."""


def grouped(number: int) -> str:
    """Return a count with separated thousands.

    >>> grouped(1_234_567)
    '1,234,567'
    """
    return f"{number:,}"


def fixed(number: float, digits: int) -> str:
    """Return a number with `digits` digits after the point.

    >>> fixed(0.98765, 4), fixed(12, 1)
    ('0.9877', '12.0')
    """
    return f"{number:.{digits}f}"


def points(score: float) -> str:
    """Return a score from 0 to 1 as points from 0 to 100, like the paper's tables.

    >>> points(0.62491)
    '62.5'
    """
    return f"{100 * score:.1f}"


def whole_points(difference: float) -> str:
    """Return a difference of scores in whole points, with a minus sign as wide as a digit.

    >>> whole_points(-0.173), whole_points(-0.001)
    ('−17', '0')
    """
    return f"{round(100 * difference)}".replace("-", "−")
