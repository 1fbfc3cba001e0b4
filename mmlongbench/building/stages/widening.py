"""Adds groups, such as classes, to contexts that run out of units. This happens in many-shot learning above 128K, if a
class has too few pictures.
"""

from collections.abc import Sequence
from dataclasses import replace

from mmlongbench.building.dataset import Dataset
from mmlongbench.draft import Draft
from mmlongbench.errors import Rejected
from mmlongbench.packing.pack import DoesNotFitError, pack


def wider(dataset: Dataset, drafts: list[Draft], length: int) -> list[Draft]:
    """Add as few groups to the drafts as possible so that no context runs out of units, and return these drafts.
    If contexts run out with any number of groups, drafts are compared by the number of units in their smallest context.
    Then return the drafts with the largest number, or an empty list if added groups do not raise it.

    To try a number of groups, every context is packed again, so the number is found in steps that double and then
    halve.
    """
    steps = [drafts]
    low, high, stride = 0, 0, 1
    best = (_packed_units(dataset, drafts, length)[0], 0)
    full = 0
    while not high or high - low > 1:
        middle = (low + high) // 2 if high else low + stride
        units, is_dry = _packed_units(dataset, _step(steps, middle, length), length)
        best = max(best, (units, -middle))  # prefer more units, then fewer groups
        if is_dry:
            low, stride = middle, 2 * stride
        else:
            high, full = middle, units
    if full:
        return steps[high]
    return steps[-best[1]] if best[1] else []


def _step(steps: list[list[Draft]], number: int, length: int) -> list[Draft]:
    """Return the drafts of step 0, with groups added `number` times (`TakeOrder.wider`); empty if the source has too
    few groups.
    """
    while len(steps) <= number and steps[-1]:
        take_orders = [draft.take_order.wider(length) for draft in steps[-1]]
        found = [
            replace(draft, take_order=take_order)
            for draft, take_order in zip(steps[-1], take_orders, strict=True)
            if take_order
        ]
        steps.append(found if len(found) == len(take_orders) else [])
    return steps[number] if number < len(steps) else []


def _packed_units(dataset: Dataset, drafts: Sequence[Draft], length: int) -> tuple[int, bool]:
    """Pack every context. Return the number of units in the context with the fewest, and whether any context runs out
    of units; (0, False) if a context does not fit.
    """
    try:
        packed = [pack(draft, dataset.budget(length), dataset.pricer) for draft in drafts]
    except (DoesNotFitError, Rejected):
        return 0, False
    return min((len(each.units) for each in packed), default=0), any(each.ran_dry for each in packed)
