"""The options of ``perflab load``, as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Options:
    """The options as they were given; 0, empty or None means not given."""

    url: str = ""
    users: int = 0
    rate: float = 0.0
    stages: str = ""
    user_stages: str = ""
    burst: int = 0
    script: str = ""
    script_parameters: Sequence[str] = ()
    arrivals: str = "constant"
    seed: int = 0
    requests: int = 0
    duration: float = 0.0
    warmup: float = 0.0
    think_time: float = 0.0
    pacing: float = 0.0
    ramp: float = 0.0
    connection: str = "keep_alive"
    connections: int = 0
    requests_per_connection: int = 0
    idle: float = 0.0
    churn: float = 0.0
    churn_share: float = 0.0
    timeout: float = 30.0
    method: str = ""
    headers: Sequence[str] = ()
    body: str = ""
    body_file: str = ""
    data: str = ""
    expect_status: int = 0
    expect_body: str = ""
    expect_bytes: int = -1
    expect_checksum: str = ""
    redirects: int = 0
    stream: str = ""
    min_chunks: int = 0
    end_marker: str = ""
    client: str = "lean"
    insecure: bool = False
    ca_file: str = ""
    cert: str = ""
    key: str = ""
    key_password_env: str = ""
    cookies: bool = False
    fixed_cookies: Sequence[str] = ()
    http2: bool = False
    stop_after_failures: int = 0
    stop_failure_share: float = 0.0
    objectives: Sequence[str] = ()
    allow_targets: Sequence[str] = ()
    out: str = ""
    csv: str = ""
    report: str = ""
    problems: list[str] = field(default_factory=list)
