"""Results of other load tools as recordings: what they tell, and what they cannot, as missing."""

from perflab.imports.formats import FORMATS, TOOLS
from perflab.imports.recording import EXPERIMENT, Wanted, import_files

__all__ = ["EXPERIMENT", "FORMATS", "TOOLS", "Wanted", "import_files"]
