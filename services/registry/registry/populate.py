"""``python -m registry.populate``: fill the registry, or go on where a population ended."""

from __future__ import annotations

import argparse
import sys
import time

from registry.population import LARGE_BYTES, MODELS, Failed, Population
from registry.settings import from_environment

MOST_BYTES, MOST_MODELS = 1_000_000_000, 10_000


def main() -> None:
    """Read what is wanted, and say how far it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=MODELS, help=f"1 to {MOST_MODELS}")
    parser.add_argument(
        "--size", type=int, default=LARGE_BYTES, help="bytes of the large model's zip"
    )
    wanted = parser.parse_args()
    if not 1 <= wanted.models <= MOST_MODELS:
        parser.error(f"--models must be from 1 to {MOST_MODELS}")
    if not 1 <= wanted.size <= MOST_BYTES:
        parser.error(f"--size must be from 1 to {MOST_BYTES} bytes")
    began_s = time.monotonic()
    try:
        population = Population(from_environment(), lambda line: print(line, flush=True))
        put = population.run(wanted.models, wanted.size)
    except (ValueError, Failed) as error:
        sys.exit(f"populate: {error}")
    print(f"populated: {put} new models in {time.monotonic() - began_s:.1f} s")


if __name__ == "__main__":
    main()
