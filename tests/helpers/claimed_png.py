"""PNG files whose headers say how large they are, whatever pixels follow."""

import struct
import zlib


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk with its length and its checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def claimed_png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """A PNG whose header claims so many pixels of three colours; `pixels` are those that it has."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(pixels)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
