"""Results of other load tools as recordings: what they tell, and what they cannot, as missing."""

from perflab.imports.formats import FORMATS
from perflab.imports.recording import import_files

__all__ = ["FORMATS", "import_files"]
