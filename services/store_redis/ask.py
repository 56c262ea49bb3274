"""Send one command to the server; fail unless it answers that it was done, a number or a text.

Environment: STORE_HOST, STORE_PORT, PASSWORD_FILE.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path


def main() -> None:
    """Send the command on the command line, and print the answer."""
    password = Path(os.environ["PASSWORD_FILE"]).read_text()
    address = os.environ["STORE_HOST"], int(os.environ["STORE_PORT"])
    with socket.create_connection(address) as connection, connection.makefile("rwb") as stream:
        for words in (f"AUTH {password}", sys.argv[1]):
            stream.write(f"{words}\r\n".encode())
            stream.flush()
            answer = stream.readline().decode().strip()
            if answer.startswith("$"):
                answer = f"+{stream.read(max(0, int(answer[1:]))).decode()}"
            # While it loads its data it answers "-LOADING".
            if not answer.startswith(("+", ":")):
                sys.exit(answer or "the server closed the connection")
    print(answer[1:])


if __name__ == "__main__":
    main()
