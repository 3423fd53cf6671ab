"""All properties, each one sentence and the code that checks it: what the tests, ``--case`` and the reports go by."""

from __future__ import annotations

from . import (
    concurrency,
    contract,
    execution,
    footprint,
    frameworks,
    graphs,
    histories,
    interface,
    invariances,
    lifecycle,
)
from .examination import Property

CATALOGUE: dict[str, Property] = {
    prop.name: prop
    for prop in (
        contract.SHAPES,
        contract.VALUES,
        contract.SPECIALS,
        contract.EXACT_SUMS,
        contract.EVERY_BIT,
        contract.MANY_ROWS,
        contract.LONG_ROWS,
        contract.HUGE,
        contract.LAYOUTS,
        contract.NEGATED,
        invariances.SCALE_TWO,
        invariances.SCALE_ANY,
        invariances.ODD,
        invariances.ISOLATED,
        invariances.ROW_ORDER,
        invariances.COLUMN_ORDER,
        invariances.IDEMPOTENT,
        invariances.TOTAL,
        histories.HISTORY,
        histories.SEQUENCE,
        histories.EARLIER_INPUT,
        histories.MANY_CALLS,
        histories.REPEATED,
        footprint.READ_ONLY,
        footprint.LEAK,
        execution.LATE,
        execution.STREAM,
        execution.DEVICES,
        graphs.GRAPH,
        concurrency.THREADS,
        execution.MEMCHECK,
        frameworks.AUTOGRAD,
        frameworks.AUTOCAST,
        frameworks.COMPILE,
        frameworks.SETTING,
        lifecycle.INSTANCES,
        lifecycle.END,
        lifecycle.HOME,
        interface.ERRORS,
    )
}
