"""The official clients of OpenAI and Ollama talk to the proxy as they are."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from running import Start, environment_of

from perflab.stacks.spec import load_service

pytestmark = pytest.mark.slow
CODE = """
import json, sys
import ollama, openai
asked = [{"role": "user", "content": "why is it so?"}]
tool = {"type": "function", "function": {"name": "add", "parameters":
    {"type": "object", "properties": {"a": {"type": "integer"}}}}}
def told_of(port):
    told = {}
    other = ollama.Client(host=f"http://127.0.0.1:{port}")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="mine", max_retries=0)
    make = client.chat.completions.create
    told["openai stream"] = "".join(
        chunk.choices[0].delta.content or ""
        for chunk in make(model="stand-in", messages=asked, stream=True))
    told["openai whole"] = make(model="stand-in", messages=asked).choices[0].message.content
    told["ollama stream"] = "".join(
        chunk.message.content for chunk in
        other.chat(model="stand-in", messages=asked, stream=True))
    told["ollama whole"] = other.chat(model="stand-in", messages=asked).message.content
    call = make(model="stand-in", messages=asked, tools=[tool]).choices[0].message.tool_calls[0]
    told["openai tool"] = [call.function.name, json.loads(call.function.arguments)]
    call = other.chat(model="stand-in", messages=asked, tools=[tool]).message.tool_calls[0]
    told["ollama tool"] = [call.function.name, dict(call.function.arguments)]
    try:
        make(model="another", messages=asked)
    except openai.NotFoundError as error:
        told["openai unknown"] = error.code
    try:
        other.chat(model="another", messages=asked)
    except ollama.ResponseError as error:
        told["ollama unknown"] = [error.status_code, error.error]
    return told
print(json.dumps([told_of(port) for port in sys.argv[1:]]))
"""


def told_by_clients(ports: list[int]) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perflab.stacks.spec.services_dir", lambda: Path(__file__).parent)
        environment = environment_of(load_service("llm_clients"))
    clean = {name: text for name, text in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(
        [environment.python, "-c", CODE, *map(str, ports)], capture_output=True, text=True,
        env={**clean, "PYTHONPATH": "", **environment.variables()}, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_official_clients_read_answers_tools_and_errors_of_every_mode(
    started: Start,
) -> None:
    at = {"upstream": started("llm_upstream", tokens=6, token_rate=500, first_token_ms=5).port}
    ports = [started("llm_proxy", at, mode=mode).port for mode in ("rebuild", "pass", "raw")]
    for told in told_by_clients(ports):
        said = told["openai whole"]
        assert len(said.split()) == 6
        assert [told[f"{each} stream"] for each in ("openai", "ollama")] == [said, said]
        assert told["ollama whole"] == said
        assert told["openai tool"] == told["ollama tool"] == ["add", {"a": 1}]
        assert told["openai unknown"] == "model_not_found"
        assert told["ollama unknown"] == [404, "model 'another' not found"]
