"""Asking the inference service of a stack."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from perflab.systems.inference.service import FEATURES


def post(port: int, path: str, features: object = FEATURES) -> tuple[int, dict[str, object], str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        data=json.dumps({"features": features}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read()), answer.headers["Server-Timing"]
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), ""
