"""Pictures of the sample's animals and plants."""

from math import cos, pi, sin

from mmlongbench.task import Draws
from tests.drawing.vrag.canvas import BLACK, WHITE, Colour, Sheet, colour, mirrored, mix, oval_points

SKY, PALE = (150, 196, 226), (236, 242, 232)


def meadow(size: tuple[int, int], draws: Draws) -> Sheet:
    """Draw a sky, hills and grass."""
    sheet = Sheet(size, SKY, PALE)
    sheet.clouds(draws)
    hue = 0.24 + 0.1 * draws.fraction("meadow")
    for at, level in enumerate((56, 68, 80)):
        sheet.hills(level, 3.5, colour(hue, 0.25 + 0.12 * at, 0.8 - 0.12 * at), draws.at("hills", at))
    return sheet


def draw_grasshopper(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a grasshopper on a stem, from the side."""
    sheet = meadow(size, draws)
    hue = (0.21, 0.32, 0.08)[variant % 3]
    body, dark, light = colour(hue, 0.6, 0.66), colour(hue, 0.66, 0.42), colour(hue, 0.4, 0.86)
    ground = colour(0.27, 0.5, 0.5)
    sheet.blades(74, ground, draws)
    sheet.line([(-10, 76), (35, 72.5), (70, 71), (120, 64)], colour(0.2, 0.45, 0.5), 3)
    for x, foot in ((38.0, 34), (50.0, 46)):
        sheet.line([(x - 2, 60), (x - 7, 66), (foot - 2, 72)], dark, 1.4)
    sheet.shape([(28, 46), (40, 44), (60, 50), (88, 61), (87, 64), (62, 65), (38, 63), (27, 57)], body)
    for at in range(5):
        sheet.line([(56 + at * 6, 52 + at * 2), (54 + at * 6, 64 - at * 0.2)], dark, 0.6)
    sheet.shape([(36, 46), (60, 45), (92, 55), (95, 58), (70, 58), (40, 53)], light)
    for at in range(4):
        sheet.line([(44 + at * 10, 48.5 + at * 0.8), (66 + at * 8, 52 + at * 1.3)], body, 0.5)
    sheet.shape([(26, 45), (38, 43), (42, 55), (36, 61), (27, 58)], mix(body, dark, 0.35))
    sheet.oval(24, 51, 7, 9, body, 18)
    sheet.oval(22.5, 47, 2.3, 3, BLACK, 18)
    sheet.oval(21.9, 46, 0.7, 0.9, WHITE)
    for end in ((6, 28), (13, 24)):
        sheet.line([(21, 43), ((21 + end[0]) / 2 - 2, (43 + end[1]) / 2 - 3), end], dark, 0.9)
    sheet.line([(78, 30), (86, 50), (90, 68), (97, 67)], dark, 1.6)
    sheet.shape([(50, 57), (75, 26), (80, 28), (79, 34), (60, 60), (54, 63)], body)
    for at in range(6):
        x, y = 56 + at * 3.4, 56 - at * 4.4
        sheet.line([(x, y), (x + 3.2, y + 2.6 - at * 0.2)], dark, 0.8)
    return sheet


def draw_moth(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a moth with spread wings, from above."""
    ground = colour(draws.fraction("ground"), 0.14, 0.9)
    sheet = Sheet(size, mix(ground, WHITE, 0.5), ground)
    hue = (0.08, 0.97, 0.62)[variant % 3] + 0.05 * draws.fraction("hue")
    fore, hind = colour(hue, 0.5, 0.55), colour(hue + draws.choice("shift", (0.06, 0.45, 0.55)), 0.5, 0.86)
    dark = mix(fore, BLACK, 0.5)
    front = [(49, 40), (40, 30), (24, 22), (8, 20), (5, 25), (9, 38), (18, 50), (34, 55), (49, 51)]
    back = [(49, 50), (34, 53), (18, 52), (12, 60), (14, 72), (24, 80), (36, 76), (45, 66), (49, 60)]
    for side in (front, mirrored(front)):
        sheet.shape([(x, y + 1.6) for x, y in side], mix(ground, BLACK, 0.22))
    for points, tone in ((back, hind), (front, fore)):
        for side in (points, mirrored(points)):
            sheet.shape(side, tone)
            sheet.line([*side, side[0]], dark, 0.7)
    _mark_moth(sheet, dark, hind, draws)
    for at in range(7):
        sheet.oval(50, 74 - at * 4, 2.2 + at * 0.3, 2.8, mix(dark, fore, 0.35 if at % 2 else 0.75))
    sheet.oval(50, 43, 4.6, 8, mix(fore, WHITE, 0.2))
    sheet.oval(50, 34, 3, 2.8, dark)
    feeler = [(49, 32), (45, 24), (38, 16)]
    for side in (feeler, mirrored(feeler)):
        sheet.line(side, dark, 0.8)
        for at in range(6):
            x, y = side[0][0] + (side[2][0] - side[0][0]) * at / 6, 32 - 16 * at / 6
            sheet.line([(x - 1.6, y - 0.6), (x + 1.6, y - 0.6)], dark, 0.4)
    return sheet


def _mark_moth(sheet: Sheet, dark: Colour, light: Colour, draws: Draws) -> None:
    """Draw bands and eyes on the wings of a moth."""
    bands = ([(40, 31), (35, 40), (36, 54)], [(25, 23), (20, 36), (26, 52)], [(12, 21), (11, 30), (17, 46)])
    edge = [(16, 62), (21, 72), (31, 74), (40, 68)]
    for band in (*bands[draws.integer("bands", 0, 1) :], edge):
        for side in (band, mirrored(band)):
            sheet.line(side, mix(dark, light, 0.25), 1.5)
    spot = mix(light, WHITE, 0.45)
    for x in (29.0, 71.0):
        for radius, tone in ((4.4, dark), (3.2, spot), (1.5, BLACK)):
            sheet.oval(x, 36, radius, radius, tone)
        sheet.oval(x, 64, 3, 3, dark)
        sheet.oval(x, 64, 1.6, 1.6, spot)


def draw_bird(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a wading or perching bird, from the side."""
    sheet = Sheet(size, colour(0.08 + 0.5 * draws.fraction("sky"), 0.22, 0.92), PALE)
    sheet.hills(58, 3, (150, 176, 168), draws.at("far"))
    sheet.waves(72, (128, 166, 178), (78, 122, 140), draws)
    hue = (0.62, 0.1, 0.55, 0.48)[variant % 4]
    grey = (0.3, 0.8, 0.15, 1.3)[variant % 4]
    body, wing, belly = colour(hue, 0.42 * grey, 0.68), colour(hue, 0.55 * grey, 0.42), colour(hue + 0.5, 0.2, 0.96)
    beak = colour(draws.choice("beak", (0.03, 0.09, 0.13)), 0.75, 0.85)
    tall = (20, 6, 11, 5)[variant % 4]
    sheet.hills(88, 1.5, (146, 126, 92), draws.at("bank"))
    for x in (48, 54):
        sheet.line([(x, 64), (x + 1.5, 64 + tall), (x, 68 + tall)], beak, 1.3)
        sheet.line([(x - 4, 69 + tall), (x, 68 + tall), (x + 3, 69.5 + tall)], beak, 1)
    sheet.shape([(68, 50), (94, 56 + draws.integer("tail", -4, 6)), (92, 62), (68, 62)], wing)
    sheet.shape([(30, 30), (42, 27), (48, 42), (60, 44), (60, 60), (38, 58), (31, 46)], body)
    sheet.oval(52, 53, 22, 13.5, body, 10)
    sheet.oval(47, 58, 15, 9, belly, 14)
    sheet.shape([(44, 45), (62, 42), (76, 50), (90, 58), (66, 62), (50, 58)], wing)
    for at in range(4):
        sheet.line([(54 + at * 4, 49 + at * 2), (72 + at * 3, 56 + at * 1.2)], mix(wing, body, 0.6), 0.9)
    sheet.oval(36, 30, 9.5, 8.5, body)
    sheet.oval(35, 25.5, 7, 4.4, wing, -12)
    if draws.fraction("crest") < 0.5:
        sheet.shape([(38, 24), (50, 16), (47, 24), (52, 22), (43, 29)], wing)
    reach = draws.integer("reach", 8, 20)
    sheet.shape([(29, 27.5), (28 - reach, 32), (28.5, 33.5)], beak)
    sheet.line([(29, 30.6), (28 - reach, 32)], mix(beak, BLACK, 0.4), 0.5)
    sheet.oval(33, 28.5, 1.9, 1.9, BLACK)
    sheet.oval(32.5, 27.9, 0.6, 0.6, WHITE)
    return sheet


def draw_fish(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a fish under water, from the side."""
    sheet = Sheet(size, (122, 186, 188), (22, 70, 92))
    left, top, right, bottom = sheet.edges
    sheet.hills(84, 2.5, (112, 110, 84), draws.at("bed"))
    for at in range(14):
        here = draws.at("weed", at)
        x, tall = left + (right - left) * here.fraction("x"), 14 + 22 * here.fraction("tall")
        stem = [(x + 2 * sin(step * 1.3 + at), bottom - tall * step / 6) for step in range(7)]
        sheet.line(stem, colour(0.3 + 0.1 * here.fraction("hue"), 0.55, 0.42), 1.5)
    for at in range(12):
        here = draws.at("bubble", at)
        x, y = left + (right - left) * here.fraction("x"), top + (bottom - top) * here.fraction("y") * 0.7
        sheet.oval(x, y, 0.6 + here.fraction("r"), 0.6 + here.fraction("r"), (190, 224, 222))
    hue = (0.02, 0.14, 0.52)[variant % 3] + 0.06 * draws.fraction("hue")
    back, side, fin = colour(hue, 0.5, 0.42), colour(hue, 0.32, 0.8), colour(hue + 0.08, 0.7, 0.72)
    deep = draws.integer("deep", 12, 19)
    sheet.shape([(76, 50), (96, 36), (92, 50), (96, 64)], fin)
    sheet.shape([(34, 51 - deep), (46, 40 - deep), (66, 44 - deep / 2), (68, 50)], fin)
    sheet.shape([(50, 50 + deep - 2), (56, 60 + deep), (64, 48 + deep / 2)], fin)
    upper = [(8 + 72 * at / 30, 50 - deep * sin(pi * (at / 30) ** 0.8)) for at in range(31)]
    lower = [(x, 100 - y + 0.0) for x, y in reversed(upper)]
    sheet.shape([*upper, *lower], side)
    sheet.shape([*upper, *((x, 50 - (50 - y) * 0.25) for x, y in reversed(upper))], back)
    sheet.shape([*((x, 50 + (50 - y) * 0.55) for x, y in upper), *lower], mix(side, WHITE, 0.55))
    _mark_fish(sheet, back, deep, variant, draws)
    sheet.shape([(36, 56), (46, 60), (40, 66)], fin)
    sheet.line(oval_points(22, 50, 7, deep * 0.62, 0, -70, 70), mix(back, BLACK, 0.25), 0.8)
    sheet.oval(17, 46, 2.8, 2.8, WHITE)
    sheet.oval(16.8, 46, 1.6, 1.6, BLACK)
    sheet.line([(8.5, 51), (13, 53)], mix(back, BLACK, 0.4), 0.8)
    return sheet


def _mark_fish(sheet: Sheet, tone: Colour, deep: int, variant: int, draws: Draws) -> None:
    """Draw bars or dots on the side of a fish."""
    if variant % 2 == 0:
        for at in range(5):
            x = 36.0 + at * 8
            sheet.shape([(x, 50 - deep * 0.75 + at), (x + 3, 50 - deep * 0.75 + at), (x + 1.6, 52 + deep * 0.3)], tone)
        return
    for at in range(26):
        here = draws.at("dot", at)
        x, y = 31 + 38 * here.fraction("x"), 46 - deep * 0.4 + deep * 0.9 * here.fraction("y")
        sheet.oval(x, y, 1, 1, tone)


def draw_snail(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw a snail on a stone, from the side."""
    sheet = meadow(size, draws)
    sheet.blades(66, colour(0.28, 0.45, 0.5), draws)
    sheet.oval(50, 96, 62, 22, (128, 124, 120))
    sheet.oval(46, 93, 56, 17, (150, 146, 140))
    hue = (0.11, 0.03)[variant % 2]
    shell, band = colour(hue, 0.45, 0.86), colour(hue, 0.6, 0.4)
    body = colour(0.09, 0.3, 0.62)
    sheet.shape([(12, 79), (24, 71), (70, 66), (82, 56), (88, 56), (90, 64), (80, 76), (70, 80), (18, 81)], body)
    for x, y in ((92, 40), (84, 40)):
        sheet.line([(85, 58), (x, y)], body, 1.5)
        sheet.oval(x, y, 1.5, 1.5, BLACK)
    sheet.line([(88, 62), (95, 64)], body, 1.2)
    tall = (1.0, 1.2)[variant % 2]
    sheet.oval(46, 52, 25, 24 * tall, mix(shell, BLACK, 0.3))
    sheet.oval(46, 52, 23.6, 22.6 * tall, shell)
    turns = [at / 60 for at in range(61)]
    for width_, tone, shift in ((4.4, band, 0.0), (1.2, mix(band, BLACK, 0.3), 0.55)):
        spiral = [
            (47 + (21 - 20 * t) * cos(6 * pi * t + shift), 52 + tall * (20 - 19 * t) * sin(6 * pi * t + shift))
            for t in turns
        ]
        sheet.line(spiral, tone, width_ if shift else width_ * 0.55)
    sheet.oval(38, 40, 6, 3.5, mix(shell, WHITE, 0.6), -35)
    return sheet


def draw_flower(size: tuple[int, int], variant: int, draws: Draws) -> Sheet:
    """Draw three flowers on stems with leaves."""
    sheet = meadow(size, draws)
    hue = (0.72, 0.0, 0.12, 0.6, 0.86)[variant % 5]
    green = colour(0.3, 0.5, 0.45)
    sheet.blades(76, colour(0.27, 0.5, 0.55), draws)
    petals, long = (5, 6, 8, 5, 14)[variant % 5], draws.choice("long", (16, 19))
    for at, (x, y, share) in enumerate(((22, 46, 0.66), (78, 40, 0.72), (50, 30, 1.0))):
        lean = draws.at("stem", at).integer("lean", -6, 6)
        sheet.line([(x, y), (x + lean, (y + 112) / 2), (50 + (x - 50) * 0.5, 112)], green, 1.8)
        for side in (-1, 1):
            middle = (x + lean * 0.9, 72 + at * 5)
            sheet.oval(middle[0] + side * 8, middle[1], 9, 2.8, mix(green, WHITE, 0.12), side * -28)
        _bloom(sheet, (x, y), (petals, long * share), hue, draws.at("bloom", at))
    return sheet


def _bloom(sheet: Sheet, middle: tuple[float, float], form: tuple[int, float], hue: float, draws: Draws) -> None:
    petals, long = form
    begin = 360 * draws.fraction("turn")
    for ring, tone in ((1.0, colour(hue, 0.62, 0.8)), (0.72, colour(hue, 0.42, 0.95))):
        for at in range(petals):
            turn = begin + 360 * (at + (1 - ring)) / petals
            angle = turn * pi / 180
            x, y = middle[0] + cos(angle) * long * 0.58 * ring, middle[1] + sin(angle) * long * 0.58 * ring
            sheet.oval(x, y, long * 0.52 * ring, long * min(0.26, 1.3 / petals) * ring, tone, turn)
    sheet.oval(*middle, long * 0.26, long * 0.26, colour(0.12, 0.75, 0.82))
    for at in range(9):
        angle = 2 * pi * at / 9
        x, y = middle[0] + cos(angle) * long * 0.17, middle[1] + sin(angle) * long * 0.17
        sheet.oval(x, y, long * 0.035, long * 0.035, colour(0.08, 0.8, 0.5))
