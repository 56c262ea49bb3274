"""The names of a script's requests, read from its source: each has rows of its own in a duel.

The rows, and so the family of the first line, are fixed before anything is sent.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import suppress

from perflab.load.address_secrets import without_credentials
from perflab.load.users import User
from perflab.load.workers.scripted import find

# What is sent there is sent before the measurement, or after it.
APART = ("on_start", "on_stop")
METHODS = {"get": 0, "post": 0, "request": 1}


def request_names(script: str) -> tuple[tuple[str, ...], bool]:
    """Return the names that stand as text in a script, and whether all requests have such a one."""
    found = [_name_of(call) for method in _methods(find(script)) for call in _calls(method)]
    return tuple(dict.fromkeys(filter(None, found))), None not in found


def _methods(kind: type) -> Iterator[ast.AST]:
    """Yield the methods of a class and its bases, as written; not those that are overridden."""
    seen = {*APART}
    for each in kind.__mro__:
        if each in (User, object):
            continue
        with suppress(OSError, TypeError, SyntaxError):
            (written,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            for item in getattr(written, "body", ()):
                name = getattr(item, "name", "")
                if name and name not in seen:
                    seen.add(name)
                    yield item


def _calls(method: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of a method that may send a request: ``self.get(...)`` and the like."""
    for node in ast.walk(method):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "self"
            and (node.func.attr in METHODS or any(item.arg == "name" for item in node.keywords))
        ):
            yield node


def _name_of(call: ast.Call) -> str | None:
    """Return the name of a request, as a user gives it; None where it is put together."""
    assert isinstance(call.func, ast.Attribute)
    method, place = call.func.attr, METHODS.get(call.func.attr, 0)
    named = [item.value for item in call.keywords if item.arg == "name"]
    given = named or call.args[: place + 1]
    texts = [str(item.value) for item in given if isinstance(item, ast.Constant)]
    if len(texts) < max(len(given), 1 if named else place + 1):
        return None
    if named:
        return " ".join(texts)
    # As the request is recorded.
    *before, path = texts if place else [method.upper(), *texts]
    return " ".join([*before, without_credentials(path)])
