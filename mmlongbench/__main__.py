"""`python -m mmlongbench`."""

from mmlongbench.cli import main

if __name__ == "__main__":
    main()
