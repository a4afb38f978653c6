"""What a model is told about the door: the one source of it.

``TEACHING`` is for a system prompt, under 3 KB; ``explain exarch-context`` and ``explain exarch-transcript`` print its two
middle parts; ``docs/door.md`` quotes it whole. Every line of code in it is run by a test.
"""

from __future__ import annotations

TEACHING_BYTES = 3000

_OPENING = """\
Your context is a row of turns, each with an id; `TURN: N` names the one just made. You can let a run of them go under a note, \
and read or search back whatever left. Nothing is ever lost by it. One line is one call; a value prints as you would write it.
"""

_CONTEXT = """\
`exarch-context`: what is in your context, and letting a run of it go.

    exarch-context `survey
    exarch-context `evict [from: 41, to: 60, note: 'lexer was fine; the bug is in range']

`survey` answers [rows, total-bytes], a row for each item you are sent: [from, to, role, kind, label, bytes, location]. \
`evict` lets the turns from `from` through `to` go, both ends included, and answers the survey after. They are replaced by your \
note: one line, at most 240 bytes, so write what you will need to know, not what you did. You cannot evict the turn being \
written. A run that reaches into an earlier residue must cover it whole; covering it again replaces its note.
"""

_TRANSCRIPT = """\
`exarch-transcript`: everything ever recorded, in your context or not.

    exarch-transcript `index
    exarch-transcript `under [from: 41, to: 60]
    exarch-transcript `read [turns: [40]]
    exarch-transcript `read [turns: !{range 41 44}]
    exarch-transcript `grep [pattern: 'FAILED']
    exarch-transcript `grep [pattern: #'it's (red|blue)'#, turns: [41, 42]]

`index` answers a row for every item; `under` the rows that left under that residue. `read` answers [turn, role, messages] \
for each turn, nothing cut. `range 41 44` is 41, 42, 43: its end is left out. `grep` answers [hits, total]: at most 100 hits, \
oldest first, each [from, to, kind, role, line, text]; a pattern is RE2, without look-around.
"""

_LANGUAGE = """\
Write `[key: value]` with a blank after the colon, ids without quotes, the tag with its backtick. In '...' nothing is special; \
#'...'# may hold apostrophes; "..." knows \\n and $name. Names last from line to line. `explain NAME` tells more.

    let found = exarch-transcript `grep [pattern: 'FAILED']
    $found[total]
    let mine = filter { |h| equal $h[role] 'assistant' } $found[hits]
    map { |h| [$h[from], $h[text]] } $mine
    let turn = exarch-transcript `read [turns: [40]]
    let parts = $turn[0][messages][0][parts]
    case $parts[0] [ `text: { |t| $t[content] }, `program: { |p| $p[source] }, `result: { |r| $r[content] }, \
`reasoning: { |r| $r[content] }, `binary: { |b| $b[name] }, `custom: { |_| '' } ]
    echo "turn $turn[0][turn] has !{length $parts} parts"  # echo says; a line ending in let shows nothing
"""

TEACHING = "\n".join((_OPENING, _CONTEXT, _TRANSCRIPT, _LANGUAGE))


def family(name: str) -> str:
    """The teaching text of one family of verbs."""
    return (_CONTEXT if name == "exarch-context" else _TRANSCRIPT).rstrip("\n")


def code_lines(text: str = TEACHING) -> list[str]:
    """The lines of code in a teaching text: those indented by four."""
    return [line[4:] for line in text.split("\n") if line.startswith("    ")]
