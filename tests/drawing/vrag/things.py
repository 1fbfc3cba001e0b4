"""Pictures of the sample's flags and musical instruments."""

from math import pi, sin

from mmlongbench.task import Draws
from tests.drawing.vrag.canvas import BLACK, WHITE, Colour, Point, Sheet, colour, mix, oval_points


def draw_flag(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a waving flag on a staff in front of the sky."""
    sheet = Sheet(size, (116, 172, 214), (226, 238, 244))
    sheet.clouds(draws)
    hue = draws.fraction("hue")
    one, two = colour(hue, 0.75, 0.62), colour(hue + draws.choice("shift", (0.14, 0.36, 0.5)), 0.6, 0.86)
    sheet.box(11, 10, 2.4, 120, (108, 84, 62))
    sheet.oval(12.2, 9, 2.4, 2.4, (206, 172, 84))
    form = ("bands", "cross", "halves", "bands")[variant % 4]
    for row in range(24):
        for column in range(48):
            tone = _cloth(form, row, column, one, two)
            fold = sin(column / 48 * 2.4 * pi)
            corners = [(column + dx, row + dy) for dx, dy in ((0, 0), (1.2, 0), (1.2, 1.2), (0, 1.2))]
            sheet.shape(
                [_wave(*corner) for corner in corners], mix(tone, BLACK if fold > 0 else WHITE, 0.16 * abs(fold))
            )
    if form != "cross":
        _device(sheet, ("disc", "", "star", "diamond")[variant % 4], mix(two, WHITE, 0.75))
    return sheet


def _wave(column: float, row: float) -> Point:
    x = min(column, 48) / 48
    return 13.4 + 76 * x, 18 + 46 * min(row, 24) / 24 + 2.6 * sin(x * 2.4 * pi) * (0.3 + x)


def _cloth(form: str, row: int, column: int, one: Colour, two: Colour) -> Colour:
    if form == "bands":
        return WHITE if 8 <= row < 16 else one if row < 8 else two
    if form == "cross":
        return one if 10 <= row < 14 or 13 <= column < 17 else WHITE if 8 <= row < 16 or 11 <= column < 19 else two
    return one if column * 24 > row * 48 else two


def _device(sheet: Sheet, form: str, tone: Colour) -> None:
    """Draw a disc, a star or a diamond in the middle of a flag, or nearer to the staff."""
    x, y = (30, 31) if form == "diamond" else (51, 41)
    for size, fill in ((8.4, BLACK), (7.4, tone)):
        if form == "disc":
            sheet.oval(x, y, size, size, fill)
        elif form == "diamond":
            sheet.shape([(x, y - size), (x + size * 0.75, y), (x, y + size), (x - size * 0.75, y)], fill)
        else:
            tips = [(size * (1 if at % 2 else 0.42), at * 36 + 18) for at in range(10)]
            sheet.shape([oval_points(x, y, radius, radius, turn)[0] for radius, turn in tips], fill)


def draw_instrument(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a stringed instrument on a wall."""
    ground = colour(draws.fraction("ground"), 0.22, 0.72)
    sheet = Sheet(size, mix(ground, WHITE, 0.45), ground)
    wood = colour(0.05 + 0.04 * draws.fraction("wood"), 0.62, 0.5 + 0.2 * draws.fraction("light"))
    dark = mix(wood, BLACK, 0.55)
    shadow = mix(ground, BLACK, 0.22)
    (_fiddle, _lute, _zither, _harp)[variant % 4](sheet, wood, dark, shadow)
    return sheet


def _neck(sheet: Sheet, dark: Colour, long: float, strings: int) -> None:
    """Draw a neck with pegs, from its head down to the body."""
    sheet.shape([(47.6, long), (47, 52), (53, 52), (52.4, long)], dark)
    sheet.shape([(46.8, long + 1), (47.4, long - 11), (50, long - 14), (52.6, long - 11), (53.2, long + 1)], dark)
    for at in range(strings):
        y = long - 9 + at // 2 * 3.6
        x = 43 if at % 2 else 57
        sheet.line([(50, y), (x, y)], dark, 0.9)
        sheet.oval(x, y, 1.5, 1.1, mix(dark, WHITE, 0.3))


def _strings(sheet: Sheet, top: float, bottom: float, strings: int) -> None:
    for at in range(strings):
        shift = at - (strings - 1) / 2
        sheet.line([(50 + shift * 1.0, top), (50 + shift * 1.6, bottom)], (236, 230, 208), 0.35)


def _fiddle(sheet: Sheet, wood: Colour, dark: Colour, shadow: Colour) -> None:
    parts = ((50, 77, 18, 15), (50, 56, 14, 12), (50, 66, 10.5, 10))
    for grow, shift, tone in ((0, 1.8, shadow), (1, 0, dark), (0, 0, wood)):
        for x, y, rx, ry in parts:
            sheet.oval(x + shift, y + shift, rx + grow, ry + grow, tone)
    sheet.oval(46, 60, 5, 12, mix(wood, WHITE, 0.16), 12)
    _neck(sheet, dark, 20, 4)
    for x, turn in ((42, 8), (58, -8)):
        sheet.line(oval_points(x, 68, 1.6, 5, turn, 100, 260 if x < 50 else -80), dark, 1)
    sheet.shape([(47.5, 80), (46, 89), (54, 89), (52.5, 80)], dark)
    sheet.box(44, 72, 12, 1.5, mix(wood, WHITE, 0.5))
    _strings(sheet, 14, 82, 4)


def _lute(sheet: Sheet, wood: Colour, dark: Colour, shadow: Colour) -> None:
    for grow, shift, tone in ((0, 1.8, shadow), (1, 0, dark), (0, 0, mix(wood, WHITE, 0.3))):
        bowl = oval_points(50 + shift, 70 + shift, 21 + grow, 21 + grow, 0, -20, 200)
        sheet.shape([*bowl, (46 + shift, 40 + shift), (54 + shift, 40 + shift)], tone)
    _neck(sheet, dark, 18, 6)
    for radius, tone in ((6.5, dark), (5.6, wood), (4.2, dark), (2.6, wood), (1.2, dark)):
        sheet.oval(50, 63, radius, radius, tone)
    sheet.box(40, 79, 20, 2, dark)
    _strings(sheet, 12, 79, 6)


def _zither(sheet: Sheet, wood: Colour, dark: Colour, shadow: Colour) -> None:
    frame: list[Point] = [(12, 36), (88, 28), (88, 72), (22, 72)]
    sheet.shape([(x + 1.8, y + 1.8) for x, y in frame], shadow)
    sheet.shape(frame, dark)
    inner: list[Point] = [(15, 38.5), (86, 31), (86, 69.5), (24, 69.5)]
    sheet.shape(inner, wood)
    sheet.oval(58, 52, 8.5, 8.5, dark)
    sheet.oval(58, 52, 6.8, 6.8, mix(dark, BLACK, 0.4))
    for at in range(11):
        share = at / 10
        begin, end = (18 + 7 * share, 42 + 25 * share), (84, 35 + 31 * share)
        sheet.line([begin, end], (238, 232, 212), 0.4)
        sheet.oval(*begin, 0.8, 0.8, (208, 184, 110))
        sheet.oval(*end, 0.8, 0.8, (208, 184, 110))


def _harp(sheet: Sheet, wood: Colour, dark: Colour, shadow: Colour) -> None:
    for shift, tone in ((1.8, shadow), (0, dark)):
        sheet.line([(x + shift, y + shift) for x, y in ((30, 20), (46, 25), (60, 18), (74, 22))], tone, 5.5)
        sheet.line([(74 + shift, 22 + shift), (80 + shift, 46 + shift), (66 + shift, 88 + shift)], tone, 4)
        sheet.shape([(x + shift, y + shift) for x, y in ((26, 20), (33, 18), (72, 88), (58, 92))], tone)
    sheet.shape([(28, 23), (32, 21), (68, 87), (60, 89.5)], wood)
    sheet.line([(30, 20), (46, 25), (60, 18), (74, 22)], wood, 3)
    for at in range(13):
        share = at / 13
        top = (36 + 35 * share, 24 - 2.4 * sin(share * 2 * pi))
        sheet.line([top, (34 + 34 * share, 26 + 58 * share)], (240, 234, 214), 0.4)
