"""The tree of calls in a profile: what called what, how often it was seen, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

EVERYTHING = "all"


@dataclass
class Frame:
    """A function as called by one chain of callers: its weight, and ``change`` where known."""

    name: str
    weight: float = 0.0
    change: float = 0.0
    callees: dict[str, Frame] = field(default_factory=dict)

    def callee(self, name: str) -> Frame:
        """Return the frame of a function called from here; a new one when first met."""
        return self.callees.setdefault(name, Frame(name))


def tree(chains: Mapping[str, float], before: Mapping[str, float] | None = None) -> Frame:
    """Return the root of the calls in collapsed call chains.

    Parameters
    ----------
    chains : mapping
        Frames joined by ``;``, the outermost first, to their weight.
    before : mapping, optional
        An earlier profile in the same unit: ``change`` is the weight minus the earlier one.
    """
    root = Frame(EVERYTHING)
    for weights, sign in ((chains, 1.0), (before or {}, -1.0)):
        for chain, weight in sorted(weights.items()):
            frames = [root]
            for name in chain.split(";"):
                frames.append(frames[-1].callee(name))
            for frame in frames:
                frame.change += sign * weight
                frame.weight += weight if sign > 0 else 0.0
    return root


@dataclass(frozen=True)
class Placed:
    """A frame in the picture: left end and width as shares of the whole, and its depth."""

    frame: Frame
    left: float
    width: float
    depth: int


def layout(root: Frame) -> Iterator[Placed]:
    """Yield every frame that has weight, callers before callees, siblings by name."""
    waiting = [(root, 0.0, 0)]
    while waiting:
        frame, left, depth = waiting.pop()
        yield Placed(frame, left, frame.weight / root.weight, depth)
        for name in sorted(frame.callees):
            callee = frame.callees[name]
            if callee.weight > 0:
                waiting.append((callee, left, depth + 1))
                left += callee.weight / root.weight


def package(name: str) -> str:
    """Return what a function belongs to: ``send (uvicorn/server.py)`` to ``uvicorn``."""
    function, bracket, place = name.rpartition(" (")
    if not bracket:
        return function or name
    return place.rstrip(")").partition("/")[0]


def packages(root: Frame) -> dict[str, float]:
    """Return the share of the weight that lies in each package's own functions, largest first."""
    own: dict[str, float] = {}
    for placed in layout(root):
        rest = placed.frame.weight - sum(each.weight for each in placed.frame.callees.values())
        if placed.frame is not root:
            name = package(placed.frame.name)
            own[name] = own.get(name, 0.0) + rest / root.weight
    return dict(sorted(own.items(), key=lambda item: (-item[1], item[0])))
