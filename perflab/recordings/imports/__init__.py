"""Results of other load tools as recordings: what they tell, and what they cannot, as missing."""

from perflab.recordings.imports.recording import FORMATS, import_files

__all__ = ["FORMATS", "import_files"]
