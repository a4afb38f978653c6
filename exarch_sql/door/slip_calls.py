"""Repairs of a call that can be read: the payload of a verb, written anew with one habit undone.

What each field was meant to be is told from its node: quoted numbers, ``41-60``, ``turns`` for ``from`` and ``to``, ends the
wrong way round, a note missing, too long or on two lines, a pattern that looks around.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from exarch_sql.door import parser, patterns, tree
from exarch_sql.door.check import asked, decode_written
from exarch_sql.door.names import nearest
from exarch_sql.door.refusals import DoorRefused, Failed
from exarch_sql.door.values import quoted
from exarch_sql.door.verbs import FAMILIES, VERBS, Verb
from exarch_sql.residue import LINE_BREAKS, NOTE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from exarch_sql.answers import Row

PLACEHOLDER = "'WHAT YOUR FUTURE SELF NEEDS TO KNOW'"
ALIASES = {
    **dict.fromkeys(("start", "begin", "first", "lo", "since"), "from"),
    **dict.fromkeys(("end", "through", "until", "last", "hi", "thru"), "to"),
    **dict.fromkeys(("message", "reason", "summary", "text", "comment"), "note"),
    **dict.fromkeys(("query", "regex", "search", "text"), "pattern"),
    **dict.fromkeys(("turn", "ids", "id", "range", "exchanges"), "turns"),
}
_RUN = re.compile(r"(?:turns?)?\s*([0-9]{1,18})\s*(?:-|–|—|\.\.\.?|:|to)\s*([0-9]{1,18})")
_BREAKS = re.compile(f"[{LINE_BREAKS}]+")
_NOT_AFTER = re.compile(r"([^()]+)\(\?!([^()]+)\)")
_NOT_BEFORE = re.compile(r"\(\?<!([^()]+)\)([^()]+)")
_LOOK_AFTER = re.compile(r"\(\?=([^()]*)\)\Z")
_LOOK_BEFORE = re.compile(r"\A\(\?<=([^()]*)\)")
Fields = dict[str, str]


def repair(text: str, program: tree.Program) -> tuple[str, str] | None:
    """The text with the first faulty call of a verb written anew, and what changed; None where no call can be mended."""
    for command in calls(program):
        family, argument = asked(command) or ("", command.head)
        if not isinstance(argument, tree.Tag) or not _faulty(command, family, argument):
            continue
        verb = FAMILIES[family].get(argument.label)
        if verb is None:
            label = nearest(argument.label, FAMILIES[family])
            start = argument.span[0]
            return (
                (f"{text[:start]}`{label}{text[start + 1 + len(argument.label) :]}", "the tag is misspelled")
                if label
                else None
            )
        further = command.args if argument is command.head else command.args[1:]
        apart = _apart(text, command, verb, argument) or _negated(text, command, verb, argument)
        if apart is not None:
            return f"{text[: command.span[0]]}{apart[0]}{text[command.span[1] :]}", apart[1]
        written = _written(text, verb, argument.payload, further)
        if written is None:
            continue
        payload, advice = written
        end = max([argument.span[1], *(each.span[1] for each in further)])
        spelled = f"`{verb.tag} {payload}".rstrip()
        return f"{text[: argument.span[0]]}{spelled}{text[end:]}", advice
    return _misspelled(text, program)


def _misspelled(text: str, program: tree.Program) -> tuple[str, str] | None:
    """A tag at the head of a statement that is nearly a verb."""
    for statement in program.statements:
        head = statement.head if isinstance(statement, tree.Command) else None
        label = nearest(head.label, VERBS) if isinstance(head, tree.Tag) and head.label not in VERBS else None
        if isinstance(head, tree.Tag) and label is not None:
            start = head.span[0]
            return f"{text[:start]}`{label}{text[start + 1 + len(head.label) :]}", "the tag is misspelled"
    return None


def _apart(text: str, command: tree.Command, verb: Verb, argument: tree.Tag) -> tuple[str, str] | None:
    """An eviction of turns with gaps, as one eviction for each run."""
    fields = _fields_of(text, argument) if verb.tag == "evict" else {}
    inner = fields.get("turns", "").strip("[] ")
    parts = [part.strip(" '\"") for part in inner.split(",") if part.strip()]
    if "note" not in fields or len(parts) < 2 or not all(part.isdecimal() and len(part) <= 18 for part in parts):
        return None
    runs: list[list[int]] = []
    for turn in sorted(map(int, parts)):
        if runs and runs[-1][1] == turn - 1:
            runs[-1][1] = turn
        else:
            runs.append([turn, turn])
    if len(runs) < 2:
        return None
    lead = text[command.span[0] : argument.span[0]]
    each = [f"{lead}`evict [from: {low}, to: {high}, note: {fields['note']}]" for low, high in runs]
    return "; ".join(each), "a set with a gap is an eviction for each run"


def _negated(text: str, command: tree.Command, verb: Verb, argument: tree.Tag) -> tuple[str, str] | None:
    """A pattern that leaves lines out, as a search and a filter."""
    fields = _fields_of(text, argument) if verb.tag == "grep" else {}
    pattern = _text_of(fields.get("pattern", ""))
    if pattern is None:
        return None
    after, before = _NOT_AFTER.fullmatch(pattern), _NOT_BEFORE.fullmatch(pattern)
    if after:
        wanted, unwanted = after[1], after[1] + after[2]
    elif before:
        wanted, unwanted = before[2], before[1] + before[2]
    else:
        return None
    lead = text[command.span[0] : argument.span[0]]
    scope = f", turns: {fields['turns']}" if "turns" in fields else ""
    search = f"!{{{lead}`grep [pattern: {quoted(wanted)}{scope}]}}[hits]"
    line = f"filter {{ |h| not !{{re-match {quoted(unwanted)} $h[text]}} }} {search}"
    return line, "lines are left out by filter, not by the pattern"


def _fields_of(text: str, argument: tree.Tag) -> Fields:
    """The fields of a written record, as they are spelled."""
    if not isinstance(argument.payload, tree.RecordOf):
        return {}
    return {e.key.value: _slice(text, e.value) for e in argument.payload.entries if isinstance(e.key, tree.Text)}


def calls(node: object) -> Iterator[tree.Command]:
    """Every command that calls a verb, outermost first."""
    if isinstance(node, tree.Command) and asked(node) is not None:
        yield node
    if isinstance(node, tree.Node):
        yield from calls(node.contents())
    elif isinstance(node, tuple):
        for each in node:
            yield from calls(each)


def evictions(program: tree.Program) -> Iterator[tree.Command]:
    """The evictions among them."""
    for command in calls(program):
        call = asked(command)
        if call is not None and isinstance(call[1], tree.Tag) and call[1].label == "evict":
            yield command


def _faulty(command: tree.Command, family: str, argument: tree.Tag) -> bool:
    if len(command.args) > (0 if argument is command.head else 1):
        return True
    try:
        decode_written(family, argument)
    except Failed:
        return True
    return False


def _written(text: str, verb: Verb, payload: tree.Atom | None, further: Sequence[tree.Node]) -> tuple[str, str] | None:
    """The payload as it was meant, and what changed."""
    if verb.fields is None:
        return "", f"`{verb.tag} stands alone"
    if further and not isinstance(payload, tree.RecordOf):
        nodes = [payload, *further] if payload is not None else list(further)
        run = _RUN.fullmatch(" ".join(text[node.span[0] : node.span[1]] for node in nodes[:3] if node is not None))
        fields = {"from": run[1], "to": run[2]} if run and "from" in verb.fields else {}
        if (
            not fields
            and len(nodes) >= 2
            and all(isinstance(node, tree.Int) for node in nodes[:2])
            and "from" in verb.fields
        ):
            fields = {"from": _slice(text, nodes[0]), "to": _slice(text, nodes[1])}
        said = "a run is named by its two ends, both included: from: 41, to: 60"
    elif payload is None:
        fields, said = {}, f"`{verb.tag} takes a record"
    else:
        fields, said = _named(text, verb, payload)
    advice = [said] if said else ["nothing stands after the record"] if further else []
    for mend in (_mend_ends, _mend_turns, _mend_note, _mend_pattern):
        changed = mend(verb, fields)
        if changed:
            advice.append(changed)
    if not all(key in fields for key in verb.fields if key not in verb.optional):
        return None
    spelled = f"[{', '.join(f'{key}: {fields[key]}' for key in verb.fields if key in fields)}]"
    return spelled, "; ".join(advice[:2])


def _slice(text: str, node: tree.Node | None) -> str:
    return text[node.span[0] : node.span[1]] if node is not None else ""


def _named(text: str, verb: Verb, payload: tree.Atom) -> tuple[Fields, str]:
    """The payload's fields as written, under the verb's own names, and what renaming changed."""
    wanted = verb.fields or {}
    if isinstance(payload, tree.ListOf):
        return _from_list(text, verb, payload)
    if isinstance(payload, tree.RecordOf):
        fields: Fields = {}
        said = ""
        given = {entry.key.value for entry in payload.entries if isinstance(entry.key, tree.Text)}
        for entry in payload.entries:
            key = entry.key.value if isinstance(entry.key, tree.Text) else ""
            name = key if key in wanted or key == "turns" else _meant(key, wanted)
            if name != key and name in given:  # what the model did name is not written over
                name = None
            if name is not None:
                said = said or ("" if name == key else f"the field is called `{name}`")
                fields[name] = _slice(text, entry.value)
            else:
                said = said or f"`{verb.tag} has no field `{key[:40]}`"
        return fields, said
    if isinstance(payload, tree.Int) and "turns" in wanted and "pattern" not in wanted:
        return {"turns": f"[{payload.value}]"}, "turns are named in a list: [turns: [40]]"
    if isinstance(payload, tree.Text | tree.Word) and "pattern" in wanted:
        return {"pattern": quoted(payload.value)}, "the pattern stands in a record: [pattern: '...']"
    if isinstance(payload, tree.Text | tree.Word):
        return {"turns": f"[{payload.value}]"}, ""
    return {}, ""


def _meant(key: str, wanted: object) -> str | None:
    names = list(wanted) if isinstance(wanted, dict) else []
    alias = ALIASES.get(key.lower())
    if key == "text" and "pattern" in names:
        alias = "pattern"
    elif key == "text" and "note" in names:
        alias = "note"
    if alias in names or alias == "turns":
        return alias
    return nearest(key.lower(), names)


def _from_list(text: str, verb: Verb, payload: tree.ListOf) -> tuple[Fields, str]:
    """A list where a record belongs: words that were to be fields, or the ids themselves."""
    items = [_slice(text, item) for item in payload.items]
    run = next((match for item in items if (match := _RUN.fullmatch(item))), None)
    note = next((_slice(text, item) for item in payload.items if isinstance(item, tree.Text)), None)
    if verb.fields and "from" in verb.fields:
        numbers = [item for item in items if item.isdecimal()]
        ends = run.groups() if run else tuple(numbers) if len(numbers) == 2 else ()
        fields = dict(zip(("from", "to"), ends, strict=False))
        return (
            fields | ({"note": note} if note and "note" in verb.fields else {})
        ), "every field is named: from: 41, to: 60"
    if verb.fields and "turns" in verb.fields and "pattern" not in verb.fields:
        return {"turns": f"[{', '.join(items)}]"}, "turns are named in a field: [turns: [40]]"
    return {}, ""


def _unquoted(spelled: str) -> str:
    bare = spelled.strip("'\"# ")
    return bare if bare.isdecimal() and bare != spelled else spelled


def _mend_ends(verb: Verb, fields: Fields) -> str:
    if "from" not in (verb.fields or {}):
        return ""
    said = ""
    if "turns" in fields:
        turns = fields.pop("turns")
        ends = _ends_of(turns)
        if ends is not None:
            fields["from"], fields["to"] = ends
            said = f"`{verb.tag}` names a run by its two ends, both included, not by turns"
    for end in ("from", "to"):
        run = _RUN.fullmatch(fields.get(end, ""))
        if run:
            fields["from"], fields["to"] = run.groups()
            said = said or "a run is named by its two ends, both included"
        bare = _unquoted(fields.get(end, ""))
        if bare != fields.get(end, ""):
            fields[end] = bare
            said = said or "ids are numbers, without quotes"
    low, high = fields.get("from", ""), fields.get("to", "")
    if low.isdecimal() and high == "":
        fields["to"] = low
        said = said or "a single turn has both ends"
    elif low.isdecimal() and high.isdecimal() and int(low) > int(high):
        fields["from"], fields["to"] = high, low
        said = said or "a span runs upward"
    return said


def _ends_of(turns: str) -> tuple[str, str] | None:
    """The two ends of a run of turns as written: a list without gaps, ``!{range a b}``, ``41-60``, one id."""
    half_open = re.fullmatch(r"!\{\s*range\s+([0-9]{1,18})\s+([0-9]{1,18})\s*\}", turns)
    if half_open and int(half_open[1]) < int(half_open[2]):
        return half_open[1], str(int(half_open[2]) - 1)
    inner = turns.strip("[] ")
    run = _RUN.fullmatch(inner.strip("'\""))
    if run:
        return run[1], run[2]
    parts = [part.strip(" '\"") for part in inner.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and len(part) <= 18 for part in parts):
        return None
    ids = sorted({int(part) for part in parts})
    return (str(ids[0]), str(ids[-1])) if ids[-1] - ids[0] == len(ids) - 1 else None


def _mend_turns(verb: Verb, fields: Fields) -> str:
    turns = fields.get("turns")
    if turns is None or "turns" not in (verb.fields or {}):
        return ""
    if turns in ("all", "'all'", '"all"'):
        fields["turns"] = "`all"
        return "all turns are named by a tag: `all"
    if turns.startswith(("!", "$", "`")):
        return ""
    inner = turns.strip("[] ")
    run = _RUN.fullmatch(inner.strip("'\""))
    if run and int(run[1]) <= int(run[2]):
        fields["turns"] = f"!{{range {run[1]} {int(run[2]) + 1}}}"
        return "a run of ids is !{range a b}, b left out"
    parts = [_unquoted(part.strip()) for part in inner.split(",") if part.strip()]
    mended = f"[{', '.join(parts)}]"
    if mended == turns:
        return ""
    fields["turns"] = mended
    return "ids are numbers in a list, without quotes"


def _mend_note(verb: Verb, fields: Fields) -> str:
    if "note" not in (verb.fields or {}):
        return ""
    note = re.sub(r"\A`some\s+", "", fields.get("note", ""))
    if note in ("", "`none", "''", '""', "()"):
        fields["note"] = PLACEHOLDER
        return "a note is required: it is all that stays, so put your own words for these"
    said = "" if note == fields["note"] else "the note is a plain string"
    fields["note"] = note
    text = _text_of(note)
    if text is None:
        return said
    line = _BREAKS.sub(" ", text).strip() if _BREAKS.search(text) else text
    if len(line.encode("utf-8", "replace")) > NOTE_BYTES:
        kept = line.encode("utf-8", "ignore")[:NOTE_BYTES].decode("utf-8", "ignore")
        line = kept.rsplit(" ", 1)[0] if " " in kept[NOTE_BYTES // 2 :] else kept
        fields["note"] = quoted(line)
        return f"a note is at most {NOTE_BYTES} bytes: cut here, better said shorter"
    if line != text:
        fields["note"] = quoted(line)
        return "a note is one line"
    return said


def _mend_pattern(verb: Verb, fields: Fields) -> str:
    pattern = _text_of(fields.get("pattern", "")) if "pattern" in (verb.fields or {}) else None
    if pattern is None:
        return ""
    mended = _LOOK_BEFORE.sub(r"\1", _LOOK_AFTER.sub(r"\1", pattern))
    if mended == pattern or not mended:
        return ""
    try:
        patterns.compiled(mended)
    except Failed:
        return ""
    fields["pattern"] = quoted(mended)
    return "grep answers whole lines, so what a look-around wants can be matched plainly"


def _text_of(spelled: str) -> str | None:
    """The text of a string literal without splices, else None."""
    try:
        statements = parser.parse(spelled).statements
    except DoorRefused:
        return None
    head = statements[0].head if len(statements) == 1 and isinstance(statements[0], tree.Command) else None
    return head.value if isinstance(head, tree.Text) else None


def realign(source: str, command: tree.Command, rows: Sequence[Row], unclosed: int | None) -> str | None:
    """The source with an eviction's ends moved outward to those of the items they stand in; past the newest, inward."""
    call = asked(command)
    payload = call[1].payload if call is not None and isinstance(call[1], tree.Tag) else None
    if not isinstance(payload, tree.RecordOf):
        return None
    nodes = {entry.key.value: entry.value for entry in payload.entries if isinstance(entry.key, tree.Text)}
    low, high = nodes.get("from"), nodes.get("to")
    if not isinstance(low, tree.Int) or not isinstance(high, tree.Int):
        return None
    closed = [row for row in rows if unclosed is None or row.to < unclosed]
    first = next((row for row in closed if row.from_ <= low.value <= row.to), None)
    last = next((row for row in reversed(closed) if row.from_ <= high.value), None)
    if first is None or last is None or last.to < first.from_ or (first.from_, last.to) == (low.value, high.value):
        return None
    line = source
    for node, end in sorted(((low, first.from_), (high, last.to)), key=lambda pair: -pair[0].span[0]):
        line = f"{line[: node.span[0]]}{end}{line[node.span[1] :]}"
    return line
