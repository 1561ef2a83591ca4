"""How long calls take, for the benchmarks of this folder."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Spent", "line", "mean_of_calls", "seconds_in_turns"]


class Spent(NamedTuple):
    """Seconds of one call: of all threads' CPU time, and of the clock on the wall, which is its latency."""

    cpu: float
    wall: float


def seconds_in_turns(
    calls: Mapping[str, Callable[[], object]], rounds: int, seconds_per_round: float
) -> dict[str, Spent | Exception]:
    """Seconds of one call of each, medians over rounds: in turns, so that what else the machine does meets all.

    The first call, which compiles, is not counted.

    Returns:
      By name; what the first call raised, for those that cannot run.
    """
    found: dict[str, Spent | Exception] = {}
    rounds_of: dict[str, list[Spent]] = {}
    for name, call in calls.items():
        try:
            call()
            rounds_of[name] = []
        except Exception as error:
            found[name] = error
    for _ in range(rounds):
        for name, taken in rounds_of.items():
            taken.append(mean_of_calls(calls[name], seconds_per_round))
    for name, taken in rounds_of.items():
        found[name] = Spent(*(statistics.median(column) for column in zip(*taken, strict=True)))
    return {name: found[name] for name in calls}


def mean_of_calls(call: Callable[[], object], seconds: float) -> Spent:
    """What one call takes, in a round of this length."""
    calls, cpu, wall = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        call()
        calls += 1
    return Spent((time.process_time() - cpu) / calls, (time.perf_counter() - wall) / calls)


def line(name: str, found: Spent | Exception, width: int) -> str:
    """One line of a table: microseconds of CPU time and of wall time, or why there are none."""
    if isinstance(found, Exception):
        return f"{name:{width}} fails: {type(found).__name__}: {str(found).splitlines()[0][:90]}"
    return f"{name:{width}} {1e6 * found.cpu:9.1f} us, wall {1e6 * found.wall:9.1f} us"
