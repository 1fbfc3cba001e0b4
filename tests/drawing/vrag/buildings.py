"""Pictures of the sample's lighthouses, bridges and towers."""

from math import pi, sin

from mmlongbench.task import Draws
from tests.drawing.vrag.canvas import BLACK, WHITE, Colour, Sheet, colour, mirrored, mix, oval_points
from tests.drawing.vrag.nature import meadow

STONE, PANE = (176, 170, 158), (250, 226, 150)


def draw_lighthouse(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a lighthouse on a rock in the sea."""
    hue = (0.57, 0.07, 0.55, 0.93, 0.6)[variant % 5]
    sheet = Sheet(size, colour(hue, 0.42, 0.82), colour(hue + 0.03, 0.12, 0.97))
    sheet.clouds(draws)
    sheet.waves(74, (86, 142, 168), (30, 76, 108), draws)
    rock = (96, 90, 88)
    sheet.shape([(14, 92), (22, 80), (34, 76), (46, 73), (60, 75), (72, 78), (84, 86), (88, 93)], rock)
    sheet.shape([(14, 92), (22, 80), (34, 76), (40, 84), (30, 92)], mix(rock, WHITE, 0.15))
    paint = colour((0.0, 0.6, 0.4, 0.98, 0.08)[variant % 5], 0.75, 0.62)
    foot, neck, top = draws.choice("foot", (10, 13, 15)), draws.choice("neck", (6, 7, 8)), draws.integer("top", 22, 30)
    many = (5, 3, 1, 7, 5)[variant % 5]

    def half(y: float) -> float:
        return float(neck + (foot - neck) * ((y - top) / (76 - top)) ** 1.6)

    for at in range(many):
        upper, lower = top + (76 - top) * at / many, top + (76 - top) * (at + 1) / many
        edge = [(50 - half(y), y) for y in (upper, (upper + lower) / 2, lower)]
        band = [*edge, *reversed(mirrored(edge))]
        sheet.shape(band, WHITE if at % 2 else paint)
        shade = [*((x + 1.25 * half(y), y) for x, y in edge), *reversed(mirrored(edge))]
        sheet.shape(shade, mix(WHITE if at % 2 else paint, BLACK, 0.14))
    for at in range(3):
        sheet.box(48.8, top + 8 + at * 14, 2.4, 4, BLACK)
    _lantern(sheet, neck, top, mix(paint, BLACK, 0.3))
    sheet.shape([(66, 79), (66, 72), (72, 68), (78, 72), (78, 81)], WHITE)
    sheet.shape([(64.5, 72.5), (72, 66.5), (79.5, 72.5)], mix(paint, BLACK, 0.2))
    return sheet


def _lantern(sheet: Sheet, neck: float, top: float, roof: Colour) -> None:
    """Draw the gallery, the windows and the roof of a lighthouse."""
    sheet.box(50 - neck - 2.5, top - 2, 2 * neck + 5, 2.4, BLACK)
    sheet.box(50 - neck * 0.7, top - 10, neck * 1.4, 8, PANE)
    for x in (-0.7, -0.25, 0.2, 0.65):
        sheet.box(50 + neck * x - 0.2, top - 10, 0.7, 8, BLACK)
    sheet.shape([(50 - neck * 0.9, top - 10), (50, top - 17), (50 + neck * 0.9, top - 10)], roof)
    sheet.line([(50, top - 17), (50, top - 20)], BLACK, 0.8)


def draw_bridge(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw an arch bridge or a suspension bridge over a river."""
    sheet = meadow(size, draws)
    left, _, right, _ = sheet.edges
    sheet.waves(78, (120, 164, 180), (62, 108, 132), draws)
    stone = mix(STONE, colour(draws.fraction("hue"), 0.5, 0.6), 0.25)
    dark = mix(stone, BLACK, 0.35)
    if variant % 4 == 3:
        _hang(sheet, dark, draws)
        return sheet
    count, deck = (1, 3, 7)[variant % 4], draws.integer("deck", 44, 50)
    sheet.box(left, deck, right - left, 36, stone)
    span = (right - left) / count
    for at in range(count):
        middle = left + span * (at + 0.5)
        inner = span * 0.4
        rise = min(inner, 30)
        for grow, tone in ((1.6, dark), (0, colour(0.52, 0.22, 0.86))):
            arch = oval_points(middle, deck + 7 + rise, inner + grow, rise + grow, 0, 180, 360)
            sheet.shape([*arch, (middle + inner + grow, 80), (middle - inner - grow, 80)], tone)
        far = [(middle - inner, 68), (middle + inner, 66), (middle + inner, 80), (middle - inner, 80)]
        sheet.shape(far, colour(0.28, 0.35, 0.64))
    for at in range(int((right - left) / 5)):
        sheet.box(left + at * 5, deck - 4, 3.4, 4, mix(stone, WHITE, 0.2))
    sheet.box(left, deck - 1, right - left, 2, dark)
    sheet.waves(79, (112, 158, 176), (62, 108, 132), draws.at("front"))
    return sheet


def _hang(sheet: Sheet, tone: Colour, draws: Draws) -> None:
    """Draw a bridge that hangs on chains between two towers."""
    left, _, right, _ = sheet.edges
    deck = 62
    for x in (20.0, 80.0):
        sheet.box(x - 4, 24, 8, 60, tone)
        sheet.box(x - 5.5, 22, 11, 3, mix(tone, WHITE, 0.3))
        sheet.oval(x, 50, 2, 5, mix(tone, BLACK, 0.5))
    sag = draws.integer("sag", 26, 32)
    chain = [(20 + 60 * at / 30, 26 + sag * sin(pi * at / 30)) for at in range(31)]
    sheet.line(chain, BLACK, 1.2)
    for x, y in chain[2:-2:2]:
        sheet.line([(x, y), (x, deck)], BLACK, 0.5)
    for edge, x in ((left, 20.0), (right, 80.0)):
        sheet.line([(x, 26), (edge, deck - 2)], BLACK, 1.2)
    sheet.box(left, deck, right - left, 3.2, mix(tone, WHITE, 0.45))
    sheet.box(left, deck + 3.2, right - left, 1.2, BLACK)


def draw_tower(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a tower with a clock, a tank or a bell above a row of roofs."""
    hue = draws.choice("sky", (0.56, 0.09, 0.6))
    sheet = Sheet(size, colour(hue, 0.36, 0.85), colour(hue, 0.08, 0.97))
    sheet.clouds(draws)
    left, _, right, bottom = sheet.edges
    wall = mix(STONE, colour(draws.fraction("wall"), 0.6, 0.7), 0.35)
    for at in range(9):
        here = draws.at("house", at)
        x, tall = left + (right - left) * at / 8 - 8, 18 + 12 * here.fraction("tall")
        front = colour(0.07 + 0.06 * here.fraction("hue"), 0.22, 0.86)
        sheet.box(x, bottom - tall, 16, tall, front)
        sheet.shape(
            [(x - 1, bottom - tall), (x + 8, bottom - tall - 9), (x + 17, bottom - tall)], colour(0.03, 0.45, 0.55)
        )
        for dx in (3, 9):
            sheet.box(x + dx, bottom - tall + 5, 3, 4, mix(front, BLACK, 0.55))
    half, top = draws.integer("half", 9, 12), draws.integer("top", 28, 34)
    sheet.box(50 - half, top, 2 * half, bottom - top, wall)
    sheet.box(50 + half * 0.4, top, half * 0.6, bottom - top, mix(wall, BLACK, 0.14))
    (_clock, _tank, _belfry)[variant % 3](sheet, half, top, wall)
    roof = colour(draws.choice("roof", (0.02, 0.45, 0.6)), 0.5, 0.45)
    _roof(sheet, half + 4 * (variant % 3 == 1), top, roof, ("point", "round", "steep")[variant % 3])
    for x in (-0.45, 0.45):
        window = oval_points(50 + half * x, top + 38, 1.8, 2.4, 0, 180, 360)
        sheet.shape([*window, (50 + half * x + 1.8, top + 45), (50 + half * x - 1.8, top + 45)], BLACK)
    return sheet


def _clock(sheet: Sheet, half: float, top: float, wall: Colour) -> None:
    sheet.box(50 - half - 1.5, top - 1, 2 * half + 3, 2.5, mix(wall, WHITE, 0.35))
    sheet.box(50 - half - 1, top + 25, 2 * half + 2, 2, mix(wall, WHITE, 0.35))
    for radius, tone in ((6.6, mix(wall, BLACK, 0.5)), (5.6, WHITE)):
        sheet.oval(50, top + 12, radius, radius, tone)
    for long, turn in ((3.2, -35), (4.6, -90)):
        sheet.line([(50, top + 12), oval_points(50, top + 12, long, long, turn)[0]], BLACK, 0.9)


def _tank(sheet: Sheet, half: float, top: float, wall: Colour) -> None:
    iron = mix(wall, (70, 90, 110), 0.6)
    sheet.shape(
        [
            (46 - half, top),
            (54 + half, top),
            (54 + half, top + 20),
            (50 + half, top + 26),
            (50 - half, top + 26),
            (46 - half, top + 20),
        ],
        iron,
    )
    for at in range(5):
        sheet.box(46 - half + (8 + 2 * half) * at / 5, top, 0.6, 21, mix(iron, BLACK, 0.35))
    sheet.box(45 - half, top + 19, 10 + 2 * half, 1.6, mix(iron, BLACK, 0.45))


def _belfry(sheet: Sheet, half: float, top: float, wall: Colour) -> None:
    sheet.box(50 - half - 1.5, top - 1, 2 * half + 3, 2.5, mix(wall, WHITE, 0.35))
    opening = oval_points(50, top + 12, half * 0.62, half * 0.62, 0, 180, 360)
    sheet.shape([*opening, (50 + half * 0.62, top + 26), (50 - half * 0.62, top + 26)], BLACK)
    bell = [(48.6, top + 11), (51.4, top + 11), (53, top + 18), (54.6, top + 21), (45.4, top + 21), (47, top + 18)]
    sheet.shape(bell, (206, 164, 78))
    sheet.oval(50, top + 22, 1.2, 1.2, (160, 120, 52))


def _roof(sheet: Sheet, half: float, top: float, tone: Colour, form: str) -> None:
    """Draw a round or a pointed roof with a weather vane."""
    peak = top - {"point": 18, "round": half * 0.7, "steep": 24}[form]
    if form == "round":
        sheet.shape(oval_points(50, top, half + 1, half * 0.7, 0, 180, 360), tone)
    else:
        sheet.shape([(49 - half, top - 1), (50, peak), (51 + half, top - 1)], tone)
    sheet.line([(50, peak + 1), (50, peak - 6)], BLACK, 0.7)
    sheet.shape([(50, peak - 6), (56, peak - 4.5), (50, peak - 3)], tone)
