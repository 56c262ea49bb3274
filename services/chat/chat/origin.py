"""Refusing what another web page makes a browser ask for.

A page of any site may have its visitor's browser POST to this address: it cannot read the answer,
but what was asked for is done. Browsers say where such a request comes from (``Sec-Fetch-Site``,
``Origin``); a page that had its own name point here is known by ``Host``. Other programs say
nothing of the kind. Source: Fetch Metadata Request Headers (W3C); RFC 6454, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping

from chat.refusal import ForeignPage

# Another port of this host is the same *site*, and another origin.
OWN = ("same-origin", "none")
LOCAL = ("127.0.0.1", "localhost", "[::1]")


def refuse_other_pages(headers: Mapping[str, str], bound_to: str) -> None:
    """Let pass what comes from this service's own page, or from no browser.

    Raises
    ------
    ForeignPage
        Another page asked for it.
    """
    host = headers.get("host", "")
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in OWN:
        raise ForeignPage(f"a page of another origin asked for this (Sec-Fetch-Site: {site})")
    if origin is not None and origin.partition("://")[2] != host:
        raise ForeignPage(f"a page of another origin asked for this (Origin: {origin})")
    if host.rpartition(":")[0] not in (*LOCAL, bound_to) and host not in (*LOCAL, bound_to):
        raise ForeignPage(f"this is not {host!r}: call the service {', '.join(LOCAL)}")


def refuse_forms(headers: Mapping[str, str]) -> None:
    """Let only JSON pass, which no page may send to another origin unasked.

    Raises
    ------
    ForeignPage
        It is of a type that any page may send.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ForeignPage("send this with 'Content-Type: application/json'")
