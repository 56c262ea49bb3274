"""Finds addresses of databases and caches that the lab did not start, before anything starts.

A service under load writes to its store, and a set-up changes its schema. Both may meet only what
was made for the duel, or what the user named on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address

from perflab.credentials import filled_in

PORTS = {
    "postgres": 5432, "postgresql": 5432, "pgsql": 5432, "mysql": 3306, "mysql2": 3306,
    "mariadb": 3306, "redis": 6379, "rediss": 6379, "valkey": 6379, "mongodb": 27017,
    "amqp": 5672, "amqps": 5671, "memcached": 11211, "memcache": 11211, "mssql": 1433,
    "sqlserver": 1433, "oracle": 1521, "clickhouse": 9000, "cassandra": 9042, "nats": 4222,
    "kafka": 9092, "cockroachdb": 26257,
}  # fmt: skip
# A password may hold ? and # as they are; a port, or what stands for one, is none.
USER = r"(?:[^\s/?#'\"]*@|[^\s/?#@:'\"[]*:(?!\d{1,5}[,?#]|[{$])[^\s/'\"]*@)"
# Oracle's driver for Java has user and password before @, or none, and // after it or not.
BEFORE_HOST = r"(?:://|:(?:[^\s/@'\"]+/[^\s@'\"]*)?@(?://)?)"
# Microsoft's has them behind the host.
NO_USER = r"(?!(?<=sqlserver://)[^\s/?#'\"@;:]*(?::\d+)?;)"
ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9])({'|'.join(PORTS)})(?:[+:][\w+-]+)?{BEFORE_HOST}"
    rf"((?:{NO_USER}{USER})?[^\s/?#'\";]*)",
    re.IGNORECASE,
)
# As Go's driver for MySQL writes them.
IN_PARENTHESES = re.compile(r"@(?:tcp6?|unix)?\(([^)\s]+)\)")
# As libpq, ODBC and PDO write addresses.
WORD = re.compile(r"(?:^|[\s;:'\"])(?:host|hostaddr|server|data source)\s*=\s*([^\s;'\"]+)", re.I)
OF_A_STORE = re.compile(
    r"(?:^|_)(?:PG|POSTGRES\w*?|DB|DATABASE|MYSQL|MARIADB|REDIS|VALKEY|MONGO\w*?|MEMCACHED?|SQL"
    r"|RABBIT\w*?|AMQP|CASSANDRA|CLICKHOUSE|KAFKA)_?(?:HOST|HOSTNAME|HOSTADDR|SERVERS?|ADDR\w*)$"
)
# A variable that a command sets, also within the script of a shell; and a value that only repeats
# another variable, which is checked by itself, or has another where that one is not set.
ASSIGNED = re.compile(r"(?:^|[\s;&|(\"'])([A-Za-z_]\w*)=[\"']?([^\s;&|)\"']+)")
REPEATED = re.compile(r"\$(?:\w+|\{\w+(?::?-([^}]*))?\})")
PLACEHOLDER = re.compile(r"\{[a-z_]+\.(?:host|url)\}")


def problems(texts: Iterable[tuple[str, str]], also: Sequence[str]) -> list[str]:
    """Return a sentence for each text that names a store which the lab did not start.

    ``texts`` are commands and values of variables, each after its name; ``also`` are the addresses
    on loopback that the user allows, ``HOST:PORT``.
    """
    return [
        f"{name} holds the address of a store that the lab did not start ({address}): the load, or "
        f"the set-up, could change its data. {_way_out(address)}"
        for name, text in texts
        for address in dict.fromkeys(addresses(name, text))
        if not (address in also and is_loopback(address))
    ]


def hidden_stores(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name a store, with empty values: a preparation is to meet none."""
    named = (name for name, text in environment.items() if any(addresses(name, text)))
    return dict.fromkeys(named, "")


def addresses(name: str, text: str) -> Iterator[str]:
    """Yield the addresses of stores in a value, as ``HOST:PORT``, or ``HOST`` without a port."""
    text = filled_in(text)
    hosts = IN_PARENTHESES.findall(text)
    text = IN_PARENTHESES.sub("@", text)
    for kind, place in ADDRESS.findall(text):
        for one in place.rpartition("@")[2].split(","):
            # Oracle's address may have the name of the database behind the port.
            one = re.sub(r"(:\d+):\w+$", r"\1", one)
            if one and not PLACEHOLDER.search(one):
                has_port = re.search(r":\d+$", one)
                yield one if has_port else f"{one}:{PORTS[kind.lower()]}"
    hosts += WORD.findall(text) if "://" not in text else []
    if OF_A_STORE.search(name.upper()) and not hosts and "://" not in text:
        hosts = re.split(r"[,\s]+", text.strip())
    for variable, value in ASSIGNED.findall(text):
        if OF_A_STORE.search(variable.upper()) and "://" not in value:
            hosts += [REPEATED.sub(lambda other: other[1] or "", one) for one in value.split(",")]
    yield from (host for host in hosts if host and not PLACEHOLDER.search(host))


def is_loopback(address: str) -> bool:
    """Return whether an address is one of this machine's own loopback."""
    host = re.sub(r":\d+$", "", address).strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _way_out(address: str) -> str:
    if is_loopback(address):
        return (
            'Let the lab start one (needs = {db = "postgres"}, and {db.url} in env), or allow this '
            f'one: also = ["{address}"]'
        )
    return 'Let the lab start one: needs = {db = "postgres"}, and {db.url} in env'
