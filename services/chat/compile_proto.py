"""Compile chat.proto into the module that the codec `protobuf` imports."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

SOURCE = Path(__file__).resolve().parent


def compile_proto(folder: Path) -> int:
    """Write chat_pb2.py into a folder; return the compiler's exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["protoc", f"--proto_path={SOURCE}", f"--python_out={folder}", "chat.proto"]
    return int(protoc.main(words))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    sys.exit(compile_proto(parser.parse_args().into))
