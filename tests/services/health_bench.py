"""The health side on a bench: a service whose downloads behave as the names of their models say.

Run as a program: ``health_bench.py PORT TOKEN_FILE MOST_BYTES``, in the registry's environment.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from registry.health import Health, Secret

BODY = bytes(range(256)) * 800
AT_ONCE, BATCH_S, BLOCK_S = 10, 0.15, 0.1


class Bench:
    """What the downloads have in common."""

    def __init__(self, health: Health, elsewhere: str) -> None:
        self.health = health
        self.elsewhere = elsewhere
        self.some = asyncio.Semaphore(AT_ONCE)
        self.released = asyncio.Event()
        self.asked: dict[str, int] = {}

    async def model(self, model_id: str, version: str) -> Response:
        """Answer as the model's name says."""
        place = f"{model_id}/{version}"
        number = self.asked[place] = self.asked.get(place, 0) + 1
        if model_id == "arnir0_Tiny-LLM":
            async with self.some:
                await asyncio.sleep(BATCH_S)
        elif model_id == "held" or (model_id == "half" and number % 2):
            await self.released.wait()
        elif model_id == "blocking":
            time.sleep(BLOCK_S)
        elif model_id == "away":
            return RedirectResponse(self.elsewhere, 307)
        elif model_id == "cut":
            return StreamingResponse(chunks(), headers={"Content-Length": str(2 * len(BODY))})
        elif model_id != "half":
            return Response("no such model", 404)
        return Response(BODY, media_type="application/zip")

    async def release(self) -> dict[str, int]:
        """Let the downloads go on that are held by now."""
        self.released.set()
        self.released = asyncio.Event()
        return self.asked

    async def counted(self) -> dict[str, int]:
        """Return how often each model was asked for, and the tasks of the event loop."""
        return {**self.asked, "tasks": len(asyncio.all_tasks())}

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """End with the health side, as the registry does."""
        yield
        await self.health.close()


async def chunks() -> AsyncIterator[bytes]:
    """Yield one body."""
    yield BODY


def main(port: int, token: Path, most_bytes: int) -> None:
    """Serve until SIGTERM; a redirect leads to the next port."""
    health = Health(port, Secret.read(token), most_bytes=most_bytes)
    bench = Bench(health, f"http://127.0.0.1:{port + 1}/elsewhere")
    app = FastAPI(lifespan=bench.lifespan)
    app.get("/performance/{model_id}/{version}/model.zip")(bench.model)
    app.post("/release")(bench.release)
    app.get("/counted")(bench.counted)
    health.add_to(app)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
