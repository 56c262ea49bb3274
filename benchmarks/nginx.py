"""nginx as a server of constant answers: one worker, no log, nothing of the system's own setup."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bench

CONFIG = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; default_type application/json;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port} backlog=4096; {locations} }}
}}
"""
NOBODY = 65_534


@contextmanager
def serving(core: int, locations: str) -> Iterator[tuple[str, int]]:
    """Serve the answers of nginx's ``location`` blocks on one core; yields address and process id.

    The process is the master; its only child serves. For root both run as nobody.
    """
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).exists():
        sys.exit("nginx is not installed (Debian: apt-get install nginx-light)")
    with tempfile.TemporaryDirectory() as folder:
        port = bench.free_port()
        config, log = Path(folder, "nginx.conf"), Path(folder, "error.log")
        config.write_text(CONFIG.format(folder=folder, port=port, locations=locations))
        words = ["taskset", "-c", str(core), program, "-e", str(log), "-c", str(config)]
        server = subprocess.Popen(words, **_as_nobody(folder))
        try:
            bench.wait_for(port, server)
            yield f"http://127.0.0.1:{port}", server.pid
        finally:
            server.terminate()
            server.wait()


def _as_nobody(folder: str) -> dict[str, Any]:
    """Return what lets root start a program without its rights, the folder then being nobody's."""
    if os.geteuid() != 0:
        return {}
    os.chown(folder, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}
