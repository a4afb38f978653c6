"""Transcripts of other programs into an archive: read by format (``claude_code``), written by one writer (``apply``).

    report = import_file(archive, "session.jsonl")
    report.new_records, report.already_there

Importing a file again adds only what is new; importing it twice adds nothing.
"""

from exarch_sql.importers.apply import Imported, import_file
from exarch_sql.importers.detect import detect

__all__ = ["Imported", "detect", "import_file"]
