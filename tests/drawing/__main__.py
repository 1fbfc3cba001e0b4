"""Says whether the shipped samples are what is drawn, and writes the archives of those that are not.

python -m tests.drawing [--check]
"""

import argparse
import sys

from tests.drawing.archives import FAMILIES, archive_of, drawn, shipped, write_archive


def main() -> None:
    """Compare all archives; with `--check` write none, and exit with 1 if one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.drawing")
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args().check
    differing = 0
    for family in FAMILIES:
        files, before = drawn(family), shipped(family)
        unlike = sorted(name for name in files.keys() | before.keys() if files.get(name) != before.get(name))
        if unlike and not is_check:
            write_archive(family, files)
        said = f"{len(unlike)} differ: {', '.join(unlike[:5])}" if unlike else "as drawn"
        size = f"{archive_of(family).stat().st_size:,} bytes" if archive_of(family).is_file() else "absent"
        sys.stdout.write(f"{family}: {len(files)} files, {said}; {size}\n")
        differing += bool(unlike)
    sys.exit(is_check and differing > 0)


if __name__ == "__main__":
    main()
