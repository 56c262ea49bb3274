"""A treatment with a planted throughput, and the tables of one of its trials."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from perflab.instruments.requests import phase_columns

USERS = 20
WARMUP_SHARE = 0.2
# Shares of the time inside the application; the rest of it is unaccounted.
PHASES = {"threadpool": 0.10, "inference": 0.15, "pool": 0.10, "execute": 0.15, "commit": 0.45}
APP_SHARE = 0.9
# How much a service's CPU share rises when response times do.
CPU_FOLLOWS_LATENCY = 0.5
DATABASE_PHASES = ("pool", "execute", "commit")


@dataclass(frozen=True)
class Planted:
    """A treatment and its true throughput as a multiple of the base rate."""

    levels: dict[str, str]
    ratio: float = 1.0
    label: str = ""
    phases: dict[str, float] = field(default_factory=lambda: dict(PHASES))

    @property
    def name(self) -> str:
        return ",".join(f"{factor}={level}" for factor, level in self.levels.items())


class PlantedTrial:
    """The tables of one trial with a given rate."""

    def __init__(
        self,
        rng: np.random.Generator,
        planted: Planted,
        rate_rps: float,
        count: int,
        database: bool,
        start_ns: int,
    ) -> None:
        self._rng = rng
        self._database = database
        self._warmup = max(USERS, int(count * WARMUP_SHARE))
        self.requests = self._sent(planted, rate_rps, count, start_ns)
        measured = self.requests[self.requests["stage"] == "measure"]
        self.begin_ns = int(measured["planned_ns"].min())
        self.end_ns = int(measured["done_ns"].max())
        self.measured = measured
        self.samples = self._sampled(start_ns)
        self.waits = self._waited() if database else None
        self.flush_us = list(rng.lognormal(np.log(900), 0.3, 10)) if database else []

    def _sent(self, planted: Planted, rate_rps: float, count: int, start_ns: int) -> pd.DataFrame:
        """Answers leave at exponential gaps; a user's next request is planned at its answer."""
        total = self._warmup + count
        gaps_s = self._rng.exponential(1.0, total)
        gaps_s[self._warmup :] *= count / gaps_s[self._warmup :].sum()
        done = start_ns + np.cumsum(gaps_s / rate_rps * 1e9).astype(np.int64)
        planned = np.concatenate([np.full(USERS, start_ns), done[:-USERS]])[:total]
        # The stage begins when its first request is planned: as warm-up users finish.
        measure = np.arange(total) >= self._warmup
        started = planned + self._rng.integers(2_000, 40_000, total)
        connect = self._rng.integers(60_000, 160_000, total)
        sent = np.minimum(started + connect, done - 1)
        service_ms = (done - sent) / 1e6
        frame = {
            "stage": np.where(measure, "measure", "warmup"),
            "worker": np.zeros(total, np.int16),
            "user": (np.arange(total) % USERS).astype(np.int32),
            "planned_ns": planned,
            "started_ns": np.minimum(started, sent),
            "sent_ns": sent,
            "first_byte_ns": np.maximum(sent, done - 20_000),
            "done_ns": done,
            "connect_ns": sent - np.minimum(started, sent),
            "status": np.full(total, 200, np.int16),
            "bytes": np.full(total, 64, np.int64),
            "error": np.full(total, ""),
        }
        return pd.DataFrame({**frame, **self._phases(planted, service_ms)})

    def _phases(self, planted: Planted, service_ms: np.ndarray) -> dict[str, np.ndarray]:
        app_ms = service_ms * APP_SHARE
        phases = {"phase_app_ms": app_ms.astype(np.float32)}
        for name, share in planted.phases.items():
            if self._database or name not in DATABASE_PHASES:
                spread = self._rng.uniform(0.9, 1.05, len(app_ms))
                phases[f"phase_{name}_ms"] = (app_ms * share * spread).astype(np.float32)
        return phases

    def _sampled(self, start_ns: int) -> pd.DataFrame:
        instants = np.arange(start_ns, self.end_ns + 50_000_000, 50_000_000)
        response = (self.requests["done_ns"] - self.requests["planned_ns"]).to_numpy()
        local = np.interp(
            instants,
            self.requests["done_ns"],
            pd.Series(response).rolling(USERS, min_periods=1).mean(),
        )
        relative = local / local.mean() - 1
        shares = {
            "inference": 0.5 + CPU_FOLLOWS_LATENCY * relative,
            "link": np.full(len(instants), 0.05),
            "client": np.full(len(instants), 0.25),
            "lab": np.full(len(instants), 0.04),
            "core 0": np.full(len(instants), 0.8),
            "core 1": np.full(len(instants), 0.3),
        }
        if self._database:
            shares["postgres"] = 0.2 + 0.3 * CPU_FOLLOWS_LATENCY * relative
        frames = []
        for service, share in shares.items():
            noisy = np.clip(share + self._rng.normal(0, 0.03, len(instants)), 0.01, None)
            frames.append(
                pd.DataFrame(
                    {
                        "t_ns": instants,
                        "service": service,
                        "cpu_ns": np.cumsum(noisy * 50_000_000).astype(np.int64),
                        "memory_bytes": 0 if service.startswith("core") else 50_000_000,
                    }
                )
            )
        return pd.concat(frames, ignore_index=True).sort_values("t_ns", ignore_index=True)

    def _waited(self) -> pd.DataFrame:
        instants = np.arange(self.begin_ns, self.end_ns, 100_000_000)
        kinds = [
            ("active", "IO", "WalSync"),
            ("active", "LWLock", "WALWrite"),
            ("idle", "Client", "ClientRead"),
        ]
        return pd.DataFrame(
            [
                {
                    "t_ns": t,
                    "state": state,
                    "wait_event_type": kind,
                    "wait_event": event,
                    "count": int(self._rng.integers(1, 12)),
                }
                for t in instants
                for state, kind, event in kinds
            ]
        )

    def row(self) -> dict[str, Any]:
        """Return the trial's row, computed from its tables as the lab does."""
        # The closed loop keeps USERS in flight from the last warm-up answer on.
        edge_ns = int(self.requests["done_ns"].iloc[self._warmup - 1])
        seconds = (self.end_ns - edge_ns) / 1e9
        response_ms = (self.measured["done_ns"] - self.measured["planned_ns"]) / 1e6
        service_ms = (self.measured["done_ns"] - self.measured["sent_ns"]) / 1e6
        lag_ms = (self.measured["started_ns"] - self.measured["planned_ns"]) / 1e6
        count = len(self.measured)
        row: dict[str, Any] = {
            "begin_ns": edge_ns,
            "end_ns": self.end_ns,
            "requests": count,
            "errors": 0,
            "throughput_rps": count / seconds,
            "mean_ms": response_ms.mean(),
            **{f"p{p}_ms": float(np.percentile(response_ms, p)) for p in (50, 90, 95)},
            **phase_columns(self.requests),
            "p99_ms": float(np.percentile(response_ms, 99)) if count >= 368 else float("nan"),
            "service_mean_ms": service_ms.mean(),
            "generator_lag_p50_ms": lag_ms.median(),
            "generator_lag_p99_ms": lag_ms.quantile(0.99),
            "loop_delay_p99_ms": 0.4,
            "loop_delay_max_ms": 1.1,
            "unsent": 0,
            "client_cpu_share": 0.25,
            "client_cpu_us_per_request": 90.0,
            "littles_law_ratio": 1.0,
            "server_count": count if self._database else -1,
            "idle_cpu_share": 0.0,
            "steal_share": 0.0,
            "cpu_probe_before_ms": 5.0,
            "cpu_probe_after_ms": 5.0,
            "flush_us": self.flush_us,
            "flush_p50_us": float(np.percentile(self.flush_us, 50)) if self.flush_us else np.nan,
            "flush_p99_us": float(np.percentile(self.flush_us, 99)) if self.flush_us else np.nan,
        }
        for service, own in self.samples.groupby("service"):
            used = np.interp([edge_ns, self.end_ns], own["t_ns"], own["cpu_ns"])
            if not str(service).startswith("core"):
                row[f"cpu_share_{service}"] = (used[1] - used[0]) / (self.end_ns - edge_ns)
                row[f"memory_{service}_bytes"] = int(own["memory_bytes"].max())
            if service in ("inference", "postgres", "link"):
                row[f"run_share_{service}"] = row[f"cpu_share_{service}"]
                row[f"core_wait_share_{service}"] = 4 * row[f"cpu_share_{service}"]
        return row
