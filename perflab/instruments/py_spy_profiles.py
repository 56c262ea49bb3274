"""What py-spy's profiles hold: call chains, and the samples of each function of one's own code.

py-spy writes profiles in speedscope's format. A profile has one list of samples per thread; each
sample is a call chain of numbers of frames, the outermost function first.
Source: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.recordings.causes import MODULE

_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|python3\.\d+)/")
_THREAD = re.compile(r"\bThread (\d+)")
_PART = re.compile(r"(?:(?:\.<locals>)?\.?<(?!locals)\w+>)+$")
# A function that begins more chains than so many times its callers is not called: it begins them.
# Of the chains of a library's innermost function four fifths may be cut off.
MOST_CUT = 10
# A path outside of Python's own folders is shown by its last parts: the package and the file.
_PARTS_SHOWN = 2
# The innermost function of a thread that waits: for sockets, for work, or for another thread.
_WAITING = re.compile(
    r"(?:^|;)(?:(?:\w+\.)?select \((?:\S*/)?selectors\.py\)"
    r"|(?:\w+\.)?wait \((?:\S*/)?threading\.py\)"
    r"|(?:\w+\.)?(?:readinto|accept) \((?:\S*/)?socket\.py\)"
    r"|_worker \(\S*futures/thread\.py\))$"
)
# A function of one's own code, or a module where there is none, and the library below it.
Function = tuple[str, str]
# A function and its file.
Frame = tuple[str, str]
# The outermost first.
Chain = list[Frame]
# Its number, the samples of it at work, and those of its waits.
_Thread = tuple[int, Counter[Function], Counter[Function]]


def call_chains(text: str) -> pd.DataFrame:
    """Return a table (chain, samples), one row per call chain of all threads, sorted by chain.

    Frames are written ``function (file)`` and joined by semicolons, the outermost first.

    Raises ProfilerFailed where the text is no profile of this kind.
    """
    try:
        counts = Counter(
            ";".join(map(_name, chain)) for _, chains in _threads(text) for chain in chains
        )
    except (ValueError, LookupError, TypeError) as error:
        raise ProfilerFailed(
            f"the file that py-spy wrote is no speedscope profile: {error!r}"
        ) from None
    table = pd.DataFrame(sorted(counts.items()), columns=["chain", "samples"])
    return table.astype({"chain": str, "samples": "int64"})


def _threads(text: str) -> Iterator[tuple[int, list[Chain]]]:
    """Yield the number of each thread (0: unknown) with the call chains of its samples."""
    document = json.loads(text)
    # A frame without a file stands for a whole process; one of a function may be there twice.
    frames = [
        (str(frame["name"]), str(file)) if (file := frame.get("file")) else None
        for frame in document["shared"]["frames"]
    ]
    for thread in document["profiles"]:
        number = _THREAD.search(str(thread.get("name")))
        named = ([frames[place] for place in sample] for sample in thread["samples"])
        chains = ([frame for frame in chain if frame] for chain in named)
        yield int(number[1]) if number else 0, [*_completed([*filter(None, chains)])]


def _completed(chains: Sequence[Chain]) -> Iterator[Chain]:
    """Yield the chains of a thread, with the callers of their first function where these miss.

    A chain that changed while it was read ends early: it does not begin with the thread's outermost
    function, but with one that others call. It gets callers that this function has in whole chains;
    over all such chains, each as often as it is seen there. What seldom has callers, as the first
    function of a greenlet may, truly begins its chains.
    """
    # Whole chains are many and long, others short.
    lengths: Counter[Frame] = Counter()
    for chain in chains:
        lengths[chain[0]] += len(chain)
    outermost = max(lengths, key=lengths.__getitem__, default=None)
    begun = Counter(chain[0] for chain in chains if chain[0] != outermost)
    callers: defaultdict[Frame, list[tuple[Chain, int]]] = defaultdict(list)
    for chain in chains:
        if chain[0] == outermost:
            innermost = {frame: depth for depth, frame in enumerate(chain)}
            for frame in begun.keys() & innermost.keys():
                callers[frame].append((chain, innermost[frame]))
    done: Counter[Frame] = Counter()
    for chain in chains:
        known, count = callers[chain[0]], begun[chain[0]]
        if known and MOST_CUT * len(known) >= count:
            whole, depth = known[done[chain[0]] * len(known) // count]
            done[chain[0]] += 1
            yield whole[:depth] + chain
        else:
            yield chain


def _name(frame: Frame) -> str:
    """Return ``function (file)`` without semicolons, which separate frames."""
    name, file = frame[0], _INSTALLED.sub("", frame[1])
    if file.startswith("/"):
        file = "/".join(file.strip("/").split("/")[-_PARTS_SHOWN:])
    return f"{name} ({file})".replace(";", ":")


def own_functions(
    text: str,
    folder: str,
    *,
    waiting: bool = False,
    ran_ns: Mapping[int, int] = MappingProxyType({}),
) -> Counter[Function]:
    """Return the samples of a profile by function of the service's own code, and library.

    The library is the installed or Python's own package in which a sample ends, below the function
    ('': in none).

    A sample counts for the innermost function of a file that is neither Python's nor installed;
    where there is none, for the installed module. Threads that wait, and what stands for a whole
    process, count for nothing. Files are named from ``folder`` on, so that copies of a function in
    two folders have one name. With ``waiting``, threads that wait count, too, but only those that
    are in one's own code: the others wait for work.

    A thread that is ready to run is sampled as well as one that runs. So the samples of a thread of
    which ``ran_ns`` has the time on a core count in proportion to it.
    """
    threads: list[_Thread] = []
    for number, chains in _threads(text):
        working: Counter[Function] = Counter()
        idle: Counter[Function] = Counter()
        for chain in chains:
            own = _own_function(chain, folder)
            if waiting and own:
                working[own, ""] += 1
            elif not waiting:
                waits = _WAITING.search(_name(chain[-1]))
                end = _module(chain[-1])
                seen = (own, end) if own else (f"{MODULE}{end or _file_name(chain[-1])}", "")
                (idle if waits else working)[seen] += 1
        threads.append((number, working, idle))
    return _by_time_on_cores(threads, ran_ns)


def _by_time_on_cores(threads: Sequence[_Thread], ran_ns: Mapping[int, int]) -> Counter[Function]:
    """Return the samples of all threads; those with a known time share theirs by it.

    A thread that was only seen to wait has run nevertheless, where its time says so. One that began
    and ended meanwhile has no time, and keeps the samples in which it did not wait.
    """
    by_function: dict[Function, float] = {}
    timed = [each for each in threads if each[0] in ran_ns and (each[1] or each[2])]
    spent_ns = sum(ran_ns[number] for number, _, _ in timed)
    total = sum(working.total() for _, working, _ in timed)
    for number, working, idle in timed if spent_ns else ():
        seen = working or idle
        weight = total * ran_ns[number] / spent_ns / seen.total()
        for name, count in seen.items():
            by_function[name] = by_function.get(name, 0.0) + weight * count
    for number, working, _ in threads:
        for name, count in () if spent_ns and number in ran_ns else working.items():
            by_function[name] = by_function.get(name, 0.0) + count
    return _rounded(by_function)


def _rounded(counts: Mapping[Function, float]) -> Counter[Function]:
    """Return whole numbers with the same sum; what one loses goes to the next in order."""
    names, whole = sorted(counts), 0
    rounded: Counter[Function] = Counter()
    for name, until in zip(names, accumulate(counts[name] for name in names), strict=True):
        rounded[name], whole = round(until) - whole, round(until)
    return +rounded


def _own_function(chain: Chain, folder: str) -> str:
    """Return the innermost function of one's own code, or nothing."""
    for frame in reversed(chain):
        # Comprehensions and lambdas are parts of the function around them.
        file, name = frame[1], _PART.sub("", frame[0])
        if name and file.startswith("/") and not _INSTALLED.match(file):
            place = Path(file)
            inside = place.is_relative_to(folder)
            return f"{name} ({place.relative_to(folder) if inside else place.name})"
    return ""


def _module(frame: Frame) -> str:
    """Return the package, or the module, of a frame; nothing where it is not installed."""
    place, installed = _INSTALLED.subn("", frame[1])
    return Path(place).parts[0].removesuffix(".py") if installed else ""


def _file_name(frame: Frame) -> str:
    return Path(frame[1]).name.removesuffix(".py")


def without_waiting(chains: pd.DataFrame) -> pd.DataFrame:
    """Return the call chains (chain, samples) whose innermost function does not wait."""
    waiting = chains["chain"].str.contains(_WAITING)
    return chains[~waiting].reset_index(drop=True)
