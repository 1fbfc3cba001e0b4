"""PDFs of a few kilobytes that take minutes to draw, or days; each of one page, or of thousands."""

import zlib
from collections.abc import Mapping

CATALOGUE = "<</Type/Catalog/Pages 2 0 R>>"
LETTER = "/MediaBox[0 0 612 792]"


def pdf(objects: Mapping[int, bytes | str]) -> bytes:
    """A PDF of these objects, with the cross-reference table that belongs to them; numbers may be left out."""
    parts, offsets = [b"%PDF-1.7\n"], dict.fromkeys(range(1, max(objects) + 1), 0)
    at = len(parts[0])
    for number, node in objects.items():
        offsets[number] = at
        body = node.encode("latin-1") if isinstance(node, str) else node
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        at += len(parts[-1])
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets.values())
    size = len(offsets) + 1
    trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, at)
    return b"".join((*parts, b"xref\n0 %d\n0000000000 65535 f \n" % size, table, trailer))


def stream(content: bytes | str, entries: str = "", *, packed: int = 0) -> bytes:
    """A stream, packed by Flate so often."""
    data = content.encode("latin-1") if isinstance(content, str) else content
    for _ in range(packed):
        data = zlib.compress(data, 9)
    filters = f"/Filter[{'/FlateDecode' * packed}]" if packed else ""
    return f"<</Length {len(data)}{entries}{filters}>>stream\n".encode("latin-1") + data + b"\nendstream"


def page(content: bytes, resources: str = "", *more: bytes, entries: str = "") -> bytes:
    """A PDF of one page; further objects have the numbers from 5 on."""
    node = f"<</Type/Page/Parent 2 0 R{LETTER}/Contents 4 0 R/Resources<<{resources}>>{entries}>>"
    objects: dict[int, bytes | str] = {1: CATALOGUE, 2: "<</Type/Pages/Kids[3 0 R]/Count 1>>", 3: node, 4: content}
    return pdf({**objects, **dict(enumerate(more, 5))})


def form(content: str, entries: str = "") -> bytes:
    return stream(content, f"/Type/XObject/Subtype/Form/BBox[0 0 612 792]{entries}")


def nested_forms(
    levels: int = 24, times: int = 2, resources: str = "/Resources<</XObject<</{name} {number} 0 R>>>>"
) -> bytes:
    """Forms that draw the next one several times: `times` to the power of `levels` in all."""
    chain = [form("/A Do " * times, resources.format(name="A", number=6 + level)) for level in range(levels - 1)]
    return page(stream("/A Do"), "/XObject<</A 5 0 R>>", *chain, form("0 0 9 9 re f"))


def paths(number: int, *, packed: int = 1) -> bytes:
    """A page of lines."""
    return page(stream(" ".join(f"{at % 600} {at % 700} m 9 9 l S" for at in range(number)), packed=packed))


def blanks(number: int) -> bytes:
    """Pages without content."""
    kids = " ".join(f"{3 + at} 0 R" for at in range(number))
    root = f"<</Type/Pages/Kids[{kids}]/Count {number}{LETTER}>>"
    return pdf({1: CATALOGUE, 2: root, **{3 + at: "<</Type/Page/Parent 2 0 R>>" for at in range(number)}})


def postscript(operators: int) -> bytes:
    """A shading whose every point is computed by a long program."""
    program = stream(f"{{{'1 add 1 sub ' * operators} 0}}", "/FunctionType 4/Domain[0 1 0 1]/Range[0 1 0 1 0 1]")
    shading = b"<</ShadingType 1/ColorSpace/DeviceRGB/Domain[0 1 0 1]/Matrix[612 0 0 792 0 0]/Function 6 0 R>>"
    return page(stream("/S sh"), "/Shading<</S 5 0 R>>", shading, program)


def content_bomb(size: int, packed: int = 1) -> bytes:
    """Content of blanks, which packs at a thousand to one, or at a million to one."""
    return page(stream(b" " * size, packed=packed))


def image_bomb(side: int, times: int = 1) -> bytes:
    """A picture of one colour, drawn so often."""
    entries = f"/Type/XObject/Subtype/Image/Width {side}/Height {side}/BitsPerComponent 1/ColorSpace/DeviceGray"
    picture = stream(bytes((side + 7) // 8 * side), entries, packed=1)
    return page(stream("612 0 0 792 0 0 cm" + " /I Do" * times), "/XObject<</I 5 0 R>>", picture)


def masked(side: int) -> bytes:
    """A picture of one pixel under a large mask."""
    entries = "/Type/XObject/Subtype/Image/Width {0}/Height {0}/BitsPerComponent 1/ColorSpace/DeviceGray"
    picture = stream(b"\0", f"{entries.format(1)}/SMask 6 0 R")
    mask = stream(bytes((side + 7) // 8 * side), entries.format(side), packed=1)
    return page(stream("612 0 0 792 0 0 cm /I Do"), "/XObject<</I 5 0 R>>", picture, mask)


def soft_masks(times: int, use: str = "/G gs ") -> bytes:
    """A mask of the whole page that is set again and again."""
    mask = form("0 0 612 792 re f", "/Group<</S/Transparency/CS/DeviceGray>>")
    mask_state = b"<</SMask<</S/Luminosity/G 5 0 R>>>>"
    state = "/ExtGState<</G<</SMask<</S/Luminosity/G 5 0 R>>>>/B#2FB 6 0 R>>"
    return page(stream(f"{use}0 0 612 792 re f " * times), state, mask, mask_state)


def groups(times: int, draw: bytes = b"/A Do ") -> bytes:
    """Transparent forms of the whole page, each blended with all that is below it."""
    group = form("0 0 612 792 re f", "/Group<</S/Transparency>>")
    state = "/ExtGState<</G<</ca 0.5/BM/Multiply>>>>/XObject<</A 5 0 R/B#2FB 5 0 R>>"
    return page(stream((b"/G gs " + draw) * times), state, group)


def cut_names() -> bytes:
    """A form whose name stands at the end of a stream, and the operator at the start of the next one."""
    node = f"<</Type/Page/Parent 2 0 R{LETTER}/Contents[4 0 R 5 0 R]/Resources<</XObject<</A 6 0 R/B 7 0 R>>>>>>"
    group = form("0 0 612 792 re f", "/Group<</S/Transparency>>")
    objects: dict[int, bytes | str] = {1: CATALOGUE, 2: "<</Type/Pages/Kids[3 0 R]/Count 1>>", 3: node, 4: stream("/A")}
    return pdf({**objects, 5: stream("Do"), 6: form("/B Do " * 10_001), 7: group})


def glyphs(times: int) -> bytes:
    """A letter of a font of the document's own, which draws a form that draws another one again and again."""
    font = b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 65/LastChar 65/Widths[9]"
    font += b"/Encoding<</Differences[65/a]>>/CharProcs<</a 6 0 R>>/Resources<</XObject<</A 7 0 R/B 8 0 R>>>>>>"
    glyph = stream("9 0 d0 " + "/A Do " * times)
    forms = (form("/B Do " * times, "/Resources<</XObject<</B 8 0 R>>>>"), form("0 0 9 9 re f"))
    return page(stream("BT /F 12 Tf (A) Tj ET"), "/Font<</F 5 0 R>>", font, glyph, *forms)


def annotated(times: int) -> bytes:
    """A page whose note is drawn by forms in forms."""
    note = b"<</Type/Annot/Subtype/Stamp/Rect[0 0 9 9]/AP<</N 6 0 R>>>>"
    chain = [form("/A Do " * times, f"/Resources<</XObject<</A {7 + level} 0 R>>>>") for level in range(5)]
    return page(stream(""), "", note, *chain, form("0 0 9 9 re f"), entries="/Annots[5 0 R]")
