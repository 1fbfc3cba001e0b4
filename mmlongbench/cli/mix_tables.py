"""Prints what a training mix asked for and reached, and with what it was compared."""

import mmlongbench as mm
from mmlongbench.cli.console import say
from mmlongbench.cli.drawing import Table, print_table


def show_mix(receipt: "mm.MixReceipt") -> None:
    """Print the shares asked and reached, the tokens, and the proof that nothing is shared with evaluation releases."""
    table = Table("share", "asked", "reached", "of", "examples", "tokens")
    for each in receipt.shares:
        row = (f"{each.asked:.2%}", f"{each.reached:.2%}", each.measure, f"{each.examples:,}", f"{each.tokens:,}")
        table.add_row(f"{each.kind} {each.name}", *row)
    if receipt.shares:
        print_table(table)
    asked = receipt.mix.tokens
    off = (receipt.tokens - asked) / asked
    say(f"tokens: {receipt.tokens:,} of {asked:,} ({off:+.2%}) in {receipt.examples:,} examples")
    if receipt.unanswered:
        say(f"  {receipt.unanswered:,} examples have no answer in the release, so they cannot be taken")
    if found := receipt.disjoint:
        for other in found.evaluations:
            shows = other.shows
            said = f"{shows.documents:,} documents, {shows.questions:,} questions, {shows.pictures:,} pictures"
            say(f"nothing is shared with {other.release}: its {said} and {shows.passages:,} passages were compared")
        if found.examples_left_out:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in found.left_out_by_kind.items())
            say(f"  {found.examples_left_out:,} examples were left out because they share something ({kinds})")
