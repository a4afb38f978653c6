"""The shell: the door for a person, at a prompt or in a script.

``texts`` makes texts of lines, and ``core`` is the shell itself: it takes texts and streams and knows no terminal. ``view`` is the
log a door is opened on here,
``commands`` the lines that begin with a dot, ``showing`` the forms an answer takes, ``explaining`` what a line means to SQLite.
``completing`` and ``highlighting`` work on text alone, ``catalogue`` finds ids and labels for them at a bounded cost, and
``prompt`` is the one module that knows prompt_toolkit, with ``history`` for what it keeps between sessions.
"""
