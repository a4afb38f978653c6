"""The command line: ``exarch-sql COMMAND ARCHIVE ...``.

Data goes to stdout, talk to stderr. ``app`` names every command and loads the module of the one that is called; commands
live by subject (``filling``, ``reading``, ``edits``, ``asking``, ``keeping``) and hand what they found to ``printing``;
``failures`` is the one place that turns errors into exit codes.
"""

from exarch_sql.cli.app import app, main

__all__ = ["app", "main"]
