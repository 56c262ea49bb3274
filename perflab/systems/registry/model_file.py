"""What the large model's file must be: length and checksum, by the maker of the service itself.

The file is made up but always the same; the module that makes it needs nothing but Python.
"""

from __future__ import annotations

import runpy
import zlib
from functools import cache

from perflab.paths import services_dir
from perflab.systems.registry.service import MODEL_ID

MAKER = "registry/registry/zips.py"


@cache
def model_crc32(model_bytes: int) -> int:
    """Return the CRC-32 of the large model's file of a length.

    Raises
    ------
    ValueError
        It is too short for the files that every model has.
    """
    made = runpy.run_path(str(services_dir() / MAKER))["of_size"](MODEL_ID, model_bytes)
    return zlib.crc32(made)
