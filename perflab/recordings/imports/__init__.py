"""Imports results of other load tools as recordings; what a tool does not report is missing."""

from perflab.recordings.imports.recording import FORMATS, import_files

__all__ = ["FORMATS", "import_files"]
