"""One agent's log: what it appends, lets go of, and reads back.

Appends go straight to the file on what is remembered of its tip; only when the file refuses is the log's state read, judged and
explained, or the append repeated on what another writer left. Edits read the state first: they are rare.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, get_args

import apsw
import msgspec

from exarch_sql import judge, messages, planning, reading, residue
from exarch_sql.answers import Found, Material, Pressure, Role, Row, Span, Survey, Turn
from exarch_sql.connection import one
from exarch_sql.errors import Refused
from exarch_sql.store import Draft, Newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from exarch_sql.answers import Json, Message
    from exarch_sql.store import Store

Origin = Literal["own", "import"]
Format = Literal["otel", "anthropic", "openai-chat", "openai-responses"]
Witness = Literal["usage", "door", "note", "error", "meta"]

WITNESSES = get_args(Witness)
ROLE_OF: dict[str, Role] = {
    "prompt": "user",
    "assistant": "assistant",
    "tool_results": "assistant",
    "steering": "assistant",
}
OPENERS = ("prompt", "assistant")  # the kinds that open a turn
NO_RESULT = "[EXARCH // No result: the deliberation ended before this call ran.]"

BY_KEY_SQL = "SELECT seq, kind, turn, body_hash, span_from, span_to, reach FROM records WHERE log = ? AND key = ?"
ROLE_SQL = """
SELECT CASE r.kind WHEN 'prompt' THEN 'user' ELSE 'assistant' END FROM ancestry AS a
  JOIN records AS r ON r.log = a.ancestor AND r.turn = :turn AND r.kind IN ('prompt', 'assistant') AND r.seq <= a.upto
 WHERE a.log = :log AND :turn BETWEEN a.turn_from AND a.turn_to"""
GROUND_SQL = """
SELECT span_from, span_to, residue IS NULL FROM standing
 WHERE log = :log AND span_to = (SELECT min(span_to) FROM standing WHERE log = :log AND span_to >= :turn) AND span_from <= :turn"""
# the ground of the newest edit always stands: no record need be looked through for it
STALE_SQL = """
SELECT coalesce((SELECT max(seq) FROM standing WHERE log = :log AND seq > (SELECT opened FROM logs WHERE log = :log)), 0)
     > coalesce((SELECT seq FROM records WHERE log = :log AND turn IS NOT NULL ORDER BY turn DESC, seq LIMIT 1), 0)"""


class Log:
    """A log of an open archive: ``archive.trunk``, ``archive.log(name)``, ``log.fork(name)``.

    Every append takes ``key`` (idempotency: the same key and body again answers the first record, another body is refused),
    ``expect`` (the reach the writer believes in; another reach is refused) and ``at_ms`` (Unix milliseconds, a claim).
    """

    def __init__(self, store: Store, number: int, name: str) -> None:
        self._store = store
        self.number = number
        self.name = name
        self._told = False

    def __repr__(self) -> str:
        return f"<Log {self.number} {self.name!r}>"

    # -- where it stands -----------------------------------------------------------------------------------------------------

    def _state(self, db: apsw.Connection) -> judge.State:
        row: tuple[Any, ...] | None = db.execute(judge.STATE_SQL, (self.number,)).fetchone()
        if row is None or row[1] != self.name:
            raise self._taken_back()
        return judge.State(*row)

    def _require_recorded(self, db: apsw.Connection) -> None:
        """Raise Refused where the log is not this one; `_state` does too, at the price of working the state out."""
        if db.execute("SELECT 1 FROM logs WHERE log = ? AND name = ?", (self.number, self.name)).fetchone() is None:
            raise self._taken_back()

    def _taken_back(self) -> Refused:
        return Refused(f"the log {self.name} is not recorded: the batch that opened it was taken back; open it again")

    def stands(self) -> judge.State:
        """Where the log stands: reach, newest turn, protocol state, owed calls."""
        with self._store.held() as db:
            return self._state(db)

    @property
    def reach(self) -> int:
        """The newest turn id it has seen; 0 before the first. Withdrawn turns count: ids are never reused (L3)."""
        return self.stands().reach

    @property
    def state(self) -> str:
        """``ready``, ``prompted``, ``owing`` or ``answered``."""
        return self.stands().state

    @property
    def owed(self) -> tuple[str, ...]:
        """The ids of the calls waiting for results, in call order."""
        return self.stands().owed

    @property
    def unclosed(self) -> int | None:
        """The turn being written, or None when the log is ready."""
        return self.stands().unclosed

    # -- appending -----------------------------------------------------------------------------------------------------------

    def prompt(
        self,
        message: str | Message,
        *,
        origin: Origin = "own",
        key: str | None = None,
        expect: int | None = None,
        at_ms: int | None = None,
    ) -> Turn:
        """Open a user turn. ``message`` is text, or a message of any shape `exarch_sql.providers` takes."""
        said = _voiced(message, "user", "a prompt")
        return self._append("prompt", said, judge.prompt, origin=origin, key=key, expect=expect, at_ms=at_ms)

    def assistant(
        self,
        message: str | Message,
        *,
        origin: Origin = "own",
        key: str | None = None,
        expect: int | None = None,
        at_ms: int | None = None,
    ) -> Turn:
        """Open an assistant turn: one model response, with the tool calls it makes, which then wait for results."""
        said = _reply(message)
        calls = messages.call_ids(said, "tool_call")
        imported = origin == "import"
        return self._append(
            "assistant",
            said,
            lambda state: judge.reply(state, imported=imported),
            calls=calls,
            origin=origin,
            key=key,
            expect=expect,
            at_ms=at_ms,
        )

    def tool_results(
        self,
        results: Sequence[Json],
        *,
        origin: Origin = "own",
        key: str | None = None,
        expect: int | None = None,
        at_ms: int | None = None,
    ) -> Turn:
        """Answer every waiting call, once each, in any order: ``[{"id", "content", ...}]`` or results of a provider's shape."""
        from exarch_sql import providers  # noqa: PLC0415  (loaded by those whose messages it adapts)

        said = providers.results_to_otel(results)
        calls = messages.call_ids(said, "tool_call_response")
        return self._append(
            "tool_results",
            said,
            lambda state: judge.results(state, calls),
            calls=calls,
            origin=origin,
            key=key,
            expect=expect,
            at_ms=at_ms,
        )

    def steer(
        self,
        message: str | Message,
        *,
        origin: Origin = "own",
        key: str | None = None,
        expect: int | None = None,
        at_ms: int | None = None,
    ) -> Turn:
        """Say something to the work in hand: extends the newest turn instead of opening one."""
        said = _voiced(message, "user", "steering")
        return self._append("steering", said, judge.steering, origin=origin, key=key, expect=expect, at_ms=at_ms)

    def quiesce(self, *, at_ms: int | None = None) -> Turn | None:
        """Answer owed calls with the stated placeholder, so that a stopped run can go on; None when nothing is owed."""
        owed = self.owed
        if not owed:
            return None
        return self.tool_results([{"id": call, "content": NO_RESULT} for call in owed], at_ms=at_ms)

    def _append(
        self,
        kind: str,
        said: list[Message],
        admit: Callable[[judge.State], None],
        *,
        origin: Origin,
        key: str | None,
        expect: int | None,
        at_ms: int | None,
        calls: list[str] | None = None,
    ) -> Turn:
        """Append a record that makes a turn, on the remembered tip if it still holds, else on a fresh look."""
        if origin not in ("own", "import"):
            raise Refused(f"origin is 'own' or 'import', not {origin!r}")
        store, role = self._store, ROLE_OF[kind]
        encoded = messages.encode(said)
        label = messages.label(encoded.said, of_reply=kind == "assistant") if kind in OPENERS else None
        draft = Draft(self.number, kind, encoded, origin, _at_ms(at_ms), _key(key), label, calls)
        with store.held() as db:
            known = store.newest(self.number, self.name)
            new = key is None or self._by_key(db, key) is None
            if known and new and not draft.encoded.blobs and (expect is None or expect == known.turn):
                newest = known if label is None else Newest(known.turn + 1, role)
                try:
                    seq = store.append_turn(draft, newest.turn)
                except apsw.ConstraintError:
                    store.forget()  # refused: by the state of the log, or because somebody else wrote
                else:
                    store.remember(self.number, self.name, newest)
                    return Turn(newest.turn, newest.role, seq)
            return self._append_looking(draft, role, admit, expect)

    def _append_looking(
        self, draft: Draft, role: Role, admit: Callable[[judge.State], None], expect: int | None
    ) -> Turn:
        """The append again, on the log's state as it is now, judged and explained."""
        store = self._store
        with store.writing() as db:
            if found := self._by_key(db, draft.key):
                self._require_same(draft.key, found, draft.kind, draft.encoded.data)
                seq, _, turn, *_ = found
                return Turn(turn, self._role(db, turn), seq)
            state = self._state(db)
            judge.expected(state, expect)
            admit(state)
            extends = draft.label is None
            newest = Newest(state.newest, self._role(db, state.newest)) if extends else Newest(state.reach + 1, role)
            seq = store.append_turn(draft, newest.turn)
        if newest.turn >= state.reach:
            store.remember(self.number, self.name, newest)
        return Turn(newest.turn, newest.role, seq)

    def witness(self, kind: Witness, body: Json, *, key: str | None = None, at_ms: int | None = None) -> int:
        """Record what was only seen: ``usage``, ``door``, ``note``, ``error`` or ``meta``. Folded by nothing; its seq."""
        if kind not in WITNESSES:
            raise Refused(f"a witness is one of {', '.join(WITNESSES)}; got {kind!r}")
        if not isinstance(body, dict):
            raise Refused(f"the body of a witness is an object, such as {{'text': ...}}; got {body!r}")
        key, at_ms = _key(key), _at_ms(at_ms)
        with self._store.writing() as db:
            if found := self._by_key(db, key):
                self._require_same(key, found, kind, _data(body))
                return int(found[0])
            self._require_recorded(db)
            return self._store.append_other(self.number, kind, body, at_ms=at_ms, key=key)

    def usage(self, *, turn: int | None = None, key: str | None = None, at_ms: int | None = None, **counts: Any) -> int:
        """Record what a response cost: ``input_tokens``, ``output_tokens``, ``cache_read_input_tokens``, ``model``, ..."""
        return self.witness("usage", {"turn": turn, **counts}, key=key, at_ms=at_ms)

    def note(self, text: str, *, key: str | None = None, at_ms: int | None = None) -> int:
        """Record a remark of the harness; a model's note belongs to an eviction."""
        return self.witness("note", {"text": text}, key=key, at_ms=at_ms)

    def error(self, text: str, *, key: str | None = None, at_ms: int | None = None) -> int:
        """Record a failure that the model was not told of."""
        return self.witness("error", {"text": text}, key=key, at_ms=at_ms)

    def meta(self, facts: Json, *, key: str | None = None, at_ms: int | None = None) -> int:
        """Record facts about the run: model, working directory, version, ..."""
        return self.witness("meta", facts, key=key, at_ms=at_ms)

    @contextlib.contextmanager
    def batch(self) -> Iterator[Log]:
        """One transaction for all appends inside: all of them or, when the block raises, none."""
        with self._store.writing():
            yield self

    # -- letting go ----------------------------------------------------------------------------------------------------------

    def evict(
        self,
        from_: int,
        to: int,
        note: str,
        *,
        key: str | None = None,
        expect: int | None = None,
        at_ms: int | None = None,
    ) -> Survey:
        """Let turns ``from_`` to ``to``, both included, leave the context under a note of 1 to 240 bytes; the survey after it."""
        span = Span(_turn_id(from_, "from"), _turn_id(to, "to"))
        return self._evict(lambda _: span, residue.check_note(note), key=key, expect=expect, at_ms=at_ms)

    def force(
        self,
        keep: int | None = None,
        *,
        through: int | None = None,
        key: str | None = None,
        expect: int | None = None,
        at_ms: int | None = None,
    ) -> Survey:
        """Evict the planned prefix as the harness, without a note; the survey after it.

        ``keep`` is the bytes to keep (half of the total by default); ``through`` names the last turn instead of planning it.
        Refused while results are owed, and when there is nothing to take.
        """
        if keep is not None and through is not None:
            raise Refused("force takes keep, the bytes to keep, or through, the last turn to take: not both")

        def span(db: apsw.Connection) -> Span:
            survey = reading.survey(db, self.number)
            if through is not None and survey.rows:
                return Span(survey.rows[0].from_, _turn_id(through, "through"))
            planned = planning.plan(survey, keep)
            if planned is None:
                raise Refused(
                    f"nothing to evict: the context weighs {survey.total_bytes} bytes in {len(survey.rows)} items, and its newest "
                    "item and a lone residue stay; name a smaller keep"
                )
            return planned

        return self._evict(span, None, key=key, expect=expect, at_ms=at_ms)

    def _evict(
        self,
        choose: Callable[[apsw.Connection], Span],
        note: str | None,
        *,
        key: str | None,
        expect: int | None,
        at_ms: int | None,
    ) -> Survey:
        author = "harness" if note is None else "model"
        key, at_ms = _key(key), _at_ms(at_ms)
        with self._store.writing() as db:
            if found := self._by_key(db, key):
                *_, from_, to, reach = found
                # a forced span was planned, not asked for: the one recorded stands
                span = choose(db) if note is not None else Span(from_ or 0, to or 0)
                self._require_same(key, found, "evicted", _data(_evicted(span, note, author, reach)))
                return reading.survey(db, self.number)
            state = self._state(db)
            judge.expected(state, expect)
            if note is None:
                judge.forced(state)
            span = choose(db)
            from_ground, to_ground = self._ground(db, span.from_), self._ground(db, span.to)
            judge.eviction(state, span, from_ground, to_ground)
            if note is None:
                judge.forced_span(span, from_ground)
            self._store.append_other(
                self.number,
                "evicted",
                _evicted(span, note, author, state.reach),
                at_ms=at_ms,
                key=key,
                span_from=span.from_,
                span_to=span.to,
                note=note,
                author=author,
                reach=state.reach,
                weight=messages.weigh([residue.message(span, note, author)]),
            )
            return reading.survey(db, self.number)

    def rewind(
        self, anchor: int, *, key: str | None = None, expect: int | None = None, at_ms: int | None = None
    ) -> Survey:
        """Withdraw every item from the anchor on, for good; the survey after it. Withdrawn turns stay readable."""
        turn = _turn_id(anchor, "anchor")

        def admit(state: judge.State, db: apsw.Connection) -> None:
            judge.withdrawal(state, "rewind")
            judge.anchor(state, turn, self._ground(db, turn))

        return self._withdraw("rewound", {"anchor": turn}, admit, key=key, expect=expect, at_ms=at_ms)

    def clear(self, *, key: str | None = None, expect: int | None = None, at_ms: int | None = None) -> Survey:
        """Withdraw everything; the survey after it, which is empty."""
        return self._withdraw(
            "cleared", {}, lambda state, _: judge.withdrawal(state, "clear"), key=key, expect=expect, at_ms=at_ms
        )

    def _withdraw(
        self,
        kind: str,
        particulars: Json,
        admit: Callable[[judge.State, apsw.Connection], None],
        *,
        key: str | None,
        expect: int | None,
        at_ms: int | None,
    ) -> Survey:
        key, at_ms = _key(key), _at_ms(at_ms)
        with self._store.writing() as db:
            if found := self._by_key(db, key):
                self._require_same(key, found, kind, _data({**particulars, "reach": found[-1]}))
                return reading.survey(db, self.number)
            state = self._state(db)
            judge.expected(state, expect)
            admit(state, db)
            body = {**particulars, "reach": state.reach}
            self._store.append_other(self.number, kind, body, at_ms=at_ms, key=key, reach=state.reach, **particulars)
            return reading.survey(db, self.number)

    def fork(self, name: str, *, expect: int | None = None, at_ms: int | None = None) -> Log:
        """A child log that sees all this one recorded so far, and nothing after; its own turns go on above this one's reach.

        A turn that owes results can never be answered there: the child inherits it readable, and withdrawn.
        """
        judge.log_name(name)
        with self._store.writing() as db:
            state = self._state(db)
            judge.expected(state, expect)
            number = open_log(self._store, db, name, parent=state, at_ms=at_ms)
        return Log(self._store, number, name)

    # -- reading -------------------------------------------------------------------------------------------------------------

    def survey(self, at: int | None = None) -> Survey:
        """The context's items in id order and what they weigh, now or as it stood after record ``at``."""
        with self._store.reading() as db:
            return reading.survey(db, self.number, reading.moment(db, self.number, at))

    def index(self, at: int | None = None) -> list[Row]:
        """Every item ever recorded: by ``from``, wider span first, later-recorded first."""
        with self._store.reading() as db:
            return reading.index(db, self.number, reading.moment(db, self.number, at))

    def under(self, from_: int, to: int, at: int | None = None) -> list[Row]:
        """What departed under the residue that stands or lies at exactly this span."""
        span = Span(_turn_id(from_, "from"), _turn_id(to, "to"))
        with self._store.reading() as db:
            return reading.under(db, self.number, span, reading.moment(db, self.number, at))

    def read(self, turns: Sequence[int]) -> list[Material]:
        """The named turns' own messages, whole, by id, repeats once; withdrawn and departed turns too."""
        wanted = _turn_ids(turns)
        if not wanted:
            raise Refused("`turns` names no turn: `!{range a b}` builds a run of ids")
        with self._store.reading() as db:
            judge.readable(self._state(db), wanted)
            return [reading.material(self._store, db, self.number, turn) for turn in wanted]

    def grep(
        self,
        pattern: str,
        turns: Sequence[int] | None = None,
        *,
        seconds: float = 30.0,
        tell: Callable[[str], None] | None = None,
    ) -> Found:
        """Every matching line of all turns but the one being written, and of notes: the 100 oldest, and the count of all.

        Named ``turns`` are searched exactly, without notes. Past ``seconds`` it is Refused (`errors.Unfinished`): where it
        stopped, and how to search in parts. ``tell`` is told when the search index is damaged, and so was not used; without it
        that is a warning.
        """
        from exarch_sql import search  # noqa: PLC0415  (RE2 is loaded only by those who search)

        narrowed = None if turns is None else _turn_ids(turns)
        if narrowed == []:
            raise Refused("`turns` names no turn: omit it to search the whole transcript")
        wanted = search.Search(self._store, pattern, seconds, tell)
        wanted.prepare()
        with self._store.reading() as db:
            state = self._state(db)
            judge.readable(state, narrowed or [])
            found = wanted.run(db, state, narrowed)
        wanted.mend()
        return found

    def render(self, format: Format = "otel", at: int | None = None) -> list[Message]:  # noqa: A002
        """The context as messages: OpenTelemetry, or an array that the named API accepts as it is.

        Half surrogates and NULs, which no provider takes, are replaced by U+FFFD; `read` gives them back as recorded.
        """
        with self._store.reading() as db:
            said = reading.context(self._store, db, self.number, reading.moment(db, self.number, at))
        from exarch_sql import providers  # noqa: PLC0415

        return providers.render(said, format)

    # -- pressure ------------------------------------------------------------------------------------------------------------

    def plan(self, keep: int | None = None) -> Span | None:
        """The prefix span that ``force`` would take as things stand, or None."""
        return planning.plan(self.survey(), keep)

    def weigh(self, used: int | None = None, window: int | None = None) -> Pressure:
        """How full the context is: ``used`` of ``window`` tokens as the provider counted at its last reply, or bytes without them.

        A count taken before the newest edit is stale and gives no verdict. ``due`` is true on the first reading of an excursion.
        """
        with self._store.reading() as db:
            survey = reading.survey(db, self.number)
            (stale,) = one(db, STALE_SQL, {"log": self.number})
        counted = used is not None and window is not None
        pressure = planning.weigh(survey, used, window, stale=bool(stale) and counted)
        due = pressure.level != "under" and not self._told
        if pressure.level != "under" or not (stale and counted):
            self._told = pressure.level != "under"
        return msgspec.structs.replace(pressure, due=due)

    # -- helpers -------------------------------------------------------------------------------------------------------------

    def _by_key(self, db: apsw.Connection, key: str | None) -> tuple[Any, ...] | None:
        return None if key is None else db.execute(BY_KEY_SQL, (self.number, key)).fetchone()

    def _require_same(self, key: str | None, found: tuple[Any, ...], kind: str, data: bytes) -> None:
        """Raise Refused unless the record found under a key is of this kind and body: then it is repeated, else replaced (L1)."""
        seq, was, _, hash_, *_ = found
        if was != kind or hash_ != self._store.hash_of(data):
            raise Refused(
                f"the key {key} already names record {seq} ({was}) with another content: nothing was written; "
                "use a new key for new content"
            )

    def _role(self, db: apsw.Connection, turn: int) -> Role:
        role: Role = one(db, ROLE_SQL, {"log": self.number, "turn": turn})[0]
        return role

    def _ground(self, db: apsw.Connection, turn: int) -> judge.Ground | None:
        row: tuple[Any, ...] | None = db.execute(GROUND_SQL, {"log": self.number, "turn": turn}).fetchone()
        return judge.Ground(Span(row[0], row[1]), withdrawn=bool(row[2])) if row else None


def _data(body: Json) -> bytes:
    """The bytes that a body is hashed as."""
    return messages.dumps(body).encode()


def _evicted(span: Span, note: str | None, author: str, reach: int) -> Json:
    """The body of an eviction."""
    return {"from": span.from_, "to": span.to, "note": note, "by": author, "reach": reach}


def open_log(
    store: Store, db: apsw.Connection, name: str, *, parent: judge.State | None, at_ms: int | None = None
) -> int:
    """Record that a log begins, a fork of ``parent`` or one of its own; its number. Raises Refused when the name is taken."""
    if row := db.execute("SELECT log FROM logs WHERE name = ?", (name,)).fetchone():
        raise Refused(
            f"a log named {name} is already there, number {row[0]}: open it with log({name!r}), or choose another name"
        )
    (number,) = one(db, "SELECT 1 + coalesce(max(log), 0) FROM logs")
    reach = parent.reach if parent else 0
    owing = parent.newest if parent and parent.state == "owing" else None
    body = {"name": name, "parent": parent.log if parent else None, "reach": reach, "withdrawn": owing}
    store.append_other(
        number, "opened", body, at_ms=_at_ms(at_ms), label=name, parent=body["parent"], reach=reach, anchor=owing
    )
    return int(number)


def _voiced(message: str | Message, role: str, what: str) -> list[Message]:
    """The messages of a prompt or steering. Raises Refused for a reply's or a tool's voice."""
    if isinstance(message, str):
        return [{"role": role, "parts": [{"type": "text", "content": message}]}]
    from exarch_sql import providers  # noqa: PLC0415

    said = providers.to_otel(message, role)
    for item in said:
        if item["role"] == "tool":
            raise Refused(f"{what} holds tool results: append them with tool_results, and the rest as {what}")
        if item["role"] == "assistant":
            raise Refused(f"{what} is in the user's voice, not the assistant's: append a reply with assistant()")
    return said


def _reply(message: str | Message) -> list[Message]:
    """The one message of a reply. Raises Refused for another voice."""
    if isinstance(message, str):
        return [{"role": "assistant", "parts": [{"type": "text", "content": message}]}]
    from exarch_sql import providers  # noqa: PLC0415

    said = providers.to_otel(message, "assistant")
    if len(said) != 1 or said[0]["role"] != "assistant":
        voices = ", ".join(str(item["role"]) for item in said)
        raise Refused(f"a reply is one assistant message; got {len(said)} ({voices})")
    return said


def _turn_ids(turns: Any) -> list[int]:
    """Turn ids in order, each once. Raises Refused for what is no list of them."""
    if isinstance(turns, (str, bytes)) or not isinstance(turns, Iterable):
        raise Refused(f"`turns: expected a list of Int, got {turns!r}: name several, or one as [{turns!r}]")
    return sorted({_turn_id(turn, "turns") for turn in turns})


def _turn_id(value: Any, name: str) -> int:
    """A turn id. Raises Refused for anything but a non-negative integer that SQLite can hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise Refused(f"`{name}: expected a non-negative Int, got {value!r}")
    return value


def _key(key: str | None) -> str | None:
    """An idempotency key: text. Raises Refused for what SQLite text cannot hold."""
    if key is None:
        return None
    if not key or not messages.is_text(key):
        raise Refused(f"a key is non-empty text without NUL or half surrogates; got {key!r}")
    return str.__str__(key)  # a StrEnum, say, is text of its own kind


def _at_ms(at_ms: Any) -> int | None:
    """A time: whole milliseconds that 64 bits hold, or None for now. Anything else would be stored otherwise than it was hashed."""
    if at_ms is None:
        return None
    if type(at_ms) is not int or not -(2**63) <= at_ms < 2**63:
        raise Refused(f"at_ms is whole Unix milliseconds, such as int(time.time() * 1000); got {at_ms!r}")
    return at_ms
