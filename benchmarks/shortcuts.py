"""The shortcut audit: which planted leaks it finds, its power, its false alarms, its time and memory.

Each part runs alone. The parts call the audit by its public functions, so a probe that is added to it is measured, too.
"""

import click
from shortcut_alarms import clean
from shortcut_cost import cost
from shortcut_planting import planted
from shortcut_power import power


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure `mmlongbench shortcuts`."""


main.add_command(clean)
main.add_command(cost)
main.add_command(planted)
main.add_command(power)

if __name__ == "__main__":
    main()
