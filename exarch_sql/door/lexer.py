"""Characters to tokens. Modal, as the language is: the innermost open bracket decides what a newline and a comma are.

Three rules depend on place. A ``[`` indexes only when it stands right after a value (``INDEX_OPEN``); a ``:`` is punctuation
only before a blank, ``]``, ``,`` or the end, else part of a word; a keyword is one only where a statement starts. Signs that
ral has and the door has not (pipes, redirects, ``?``, ``&``, ``^``, ``~``) are refused here by name, with what to do instead.
Nesting is counted here too, chains of tags and forces included, so that nothing after the lexer can recurse without bound.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from exarch_sql.door.limits import INT_MAX, INT_MIN, NESTING, Meter
from exarch_sql.door.refusals import Malformed, Overrun

if TYPE_CHECKING:
    from collections.abc import Iterator


class Token(NamedTuple):
    """One terminal of ``grammar/door.lark``: its value as read, and its span."""

    kind: str
    value: str | int | float | bool
    start: int
    end: int


class Frame(msgspec.Struct):
    """An open bracket: what kind of place is inside it, where it opened, how deep that is."""

    mode: str  # block | list | index | expr | text
    start: int
    depth: int
    params: bool = False  # between the bars of a block
    in_let: bool = False  # between `let` and its `=`
    in_case: bool = False  # between `case` and its `[`


KEYWORDS = {"let": "LET", "return": "RETURN", "case": "CASE"}
RESERVED = frozenset(
    ("if", "elsif", "else", "let", "return", "case", "within", "grant", "try", "guard", "audit", "true", "false")
)
OPENERS = {"block": "{", "list": "[", "index": "[", "expr": "$[", "paren": "(", "text": '"'}
CLOSERS = {"block": "}", "list": "]", "index": "]", "expr": "]", "paren": ")", "text": '"'}
# After one of these, with no blank between, a `[` indexes.
VALUE_ENDS = frozenset(
    ("VARIABLE", "RBRACE", "RSQB", "UNIT", "BOOL", "INT", "FLOAT", "TEXT", "WORD", "DQ_CLOSE", "_RPAR")
)
# After one of these a statement starts.
STARTS = frozenset(("", "_SEP", "LBRACE", "_BAR", "_EQ"))

MISSING = {
    "if": "the door has no `if`: `case` chooses by a tag, `filter` by a Bool, and $[...] computes one",
    "elsif": "the door has no `elsif`: `case` chooses by a tag, `filter` by a Bool",
    "else": "the door has no `else`: `case` chooses by a tag, `filter` by a Bool",
    "try": "the door has no `try`: a refusal answers the line and changes nothing, so send the next line instead",
    "guard": "the door has no `guard`: there is nothing to clean up after a line",
    "audit": "the door has no `audit`: a refusal answers the line and changes nothing",
    "within": "the door has no `within`: it reaches no folders or processes, only this log",
    "grant": "the door has no `grant`: it can reach this log and nothing else",
}
SIGNS = {
    "|": "`|` pipes bytes between processes, and the door has none: name the value with let, then `take 5 $rows`",
    "?": "`?` recovers from a failure in ral; the door has no recovery: send the next line instead",
    "&": "`&` runs work in the background in ral; the door runs one statement after another: separate them with `;`",
    "^": "`^` reaches a process in ral; the door runs no processes: `exarch-transcript` and `exarch-context` are what it has",
    "<": "`<` reads a file in ral; the door reaches no files: compare numbers inside $[...]",
    ">": "`>` writes a file in ral; the door reaches no files: compare numbers inside $[...]",
    "~": "`~` names a home folder in ral; the door reaches no files: quote it if it is text",
    "(": "`(` opens only `()`: force a command with !{...}, compute with $[...]",
    ")": "`)` closes nothing here: only `()` and $[...] have round brackets",
}
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "0": "\0", "e": "\x1b", '"': '"', "$": "$", "!": "!", "~": "~"}

_STOP = r" \t\r\n|{}\[\]$^!<>\"'`();"
_COLON = r":(?![ \t\r\n\],]|\Z)"
WORD = re.compile(rf"(?:[^{_STOP}:]|{_COLON})+")
WORD_IN_LIST = re.compile(rf"(?:[^{_STOP}:,]|{_COLON})+")
BLANKS = re.compile(r"(?:[ \t\r]|#(?!#*')[^\n]*)+")
BLANKS_IN_LIST = re.compile(r"(?:[ \t\r\n]|#(?!#*')[^\n]*)+")
SEPARATOR = re.compile(r"(?:[ \t\r\n;]|#(?!#*')[^\n]*)+")
RAW = re.compile(r"(#*)'")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
DOLLAR_NAME = re.compile(r"\$([A-Za-z_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)")
DOLLAR_PAREN = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_-]*)\)")
INT = re.compile(r"[+-]?[0-9]+")
FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
EXPR_NUMBER = re.compile(r"-?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+)")
EXPR_SIGN = re.compile(r"\|\||&&|==|!=|<=|>=|[<>+*/%()-]")
EXPR_SIGNS = {"||": "_OR", "&&": "_AND", "+": "PLUS_MINUS", "-": "PLUS_MINUS", "*": "TIMES", "/": "TIMES", "%": "TIMES"}
MAP_OPEN = re.compile(r"\[:(?=[ \t\r\n\],]|\Z)")
HEX_ESCAPE = re.compile(r"\\x([0-7][0-9A-Fa-f])|\\u\{([0-9A-Fa-f]{1,6})\}")
CHUNK = re.compile(r'[^"\\$!]+')
SMART_QUOTES = "‘’‚‛“”„‟«»"


class Lexer:
    """The tokens of one source, in order. Raises :class:`Malformed` at the first place that has none."""

    def __init__(self, text: str, meter: Meter) -> None:
        self._text = text
        self._meter = meter
        self._at = 0
        self._frames = [Frame("block", 0, 0)]
        self._prefixes = 0  # tags, forces and signs since the last whole value: they nest without brackets
        self._kind = ""  # of the last token
        self.before = ""  # the kind of the one before it
        self._end = 0  # of the last token
        self._splice_end = -1  # in a string: where a splice ended that an adjacent `[` would continue
        self._count = 0

    @property
    def last_span(self) -> tuple[int, int]:
        """Where the last token ended: the place of what is missing at the end."""
        return (self._end, self._end)

    def tokens(self) -> Iterator[Token]:
        """Every token up to the end, where every bracket must be closed."""
        text = self._text
        while self._at < len(text):
            frame = self._frames[-1]
            token: Token | None
            if frame.mode == "text":
                token = self._in_text(frame)
            elif frame.mode in ("expr", "paren"):
                token = self._in_expression()
            else:
                token = self._in_code(frame)
            if token is not None:
                yield token
        if len(self._frames) > 1:
            self._unclosed(self._frames[-1])

    def _emit(self, kind: str, value: str | int | float | bool, end: int) -> Token:
        start, self._at = self._at, end
        self.before, self._kind, self._end = self._kind, kind, end
        self._count += 1
        if self._count % 1024 == 0:
            self._meter.clock()
        if self._count > self._meter.limits.tokens:
            raise Overrun(f"the source holds more than {self._meter.limits.tokens} words and signs: send it in parts")
        self._prefixes = self._prefixes + 1 if kind in ("TAG", "BANG", "NOT", "NEGATE") else 0
        if self._prefixes and self._frames[-1].depth + self._prefixes > NESTING:
            raise Overrun(f"the source nests deeper than {NESTING}", (start, end))
        return Token("PLUS_MINUS" if kind == "NEGATE" else kind, value, start, end)

    def _open(self, mode: str, kind: str, end: int) -> Token:
        start = self._at
        depth = self._frames[-1].depth + self._prefixes + 1
        if depth > NESTING:
            raise Overrun(f"the source nests deeper than {NESTING}", (start, end))
        token = self._emit(kind, self._text[start:end], end)
        self._frames.append(Frame(mode, start, depth))
        return token

    def _close(self, char: str) -> Token:
        frame = self._frames[-1]
        if len(self._frames) == 1:
            raise Malformed(f"`{char}` closes nothing", (self._at, self._at + 1))
        if CLOSERS[frame.mode] != char:
            raise Malformed(
                f"`{char}` where `{CLOSERS[frame.mode]}` must first close the `{OPENERS[frame.mode]}` opened before it",
                (self._at, self._at + 1),
            )
        self._frames.pop()
        kind = {"}": "RBRACE", "]": "RSQB", ")": "_RPAR"}[char]
        token = self._emit(kind, char, self._at + 1)
        if self._frames[-1].mode == "text" and frame.mode == "index":
            self._splice_end = self._at
        return token

    def _unclosed(self, frame: Frame) -> None:
        if frame.mode == "text":
            raise Malformed(
                'unterminated double-quoted string: expected closing `"`',
                (frame.start, frame.start + 1),
                incomplete=True,
            )
        pair = f"{OPENERS[frame.mode]}…{CLOSERS[frame.mode]}"
        raise Malformed(f"unterminated `{pair}`", (frame.start, frame.start + 1), incomplete=True)

    # --- code: statements, blocks, lists, index brackets ------------------------------------------------------------

    def _in_code(self, frame: Frame) -> Token | None:  # noqa: C901, PLR0911 - one return a kind of token
        in_list = frame.mode != "block"
        blanks = (BLANKS_IN_LIST if in_list or frame.params else BLANKS).match(self._text, self._at)
        if blanks is not None:
            self._at = blanks.end()
            return None
        char = self._text[self._at]
        if char in "\n;":
            return self._separator(frame)
        if char == "," and in_list:
            return self._emit("_COMMA", ",", self._at + 1)
        if char in "[{":
            return self._opening(char, frame)
        if char in "]}":
            return self._close(char)
        if char == "|":
            return self._bar(frame)
        if char in "'#\"":
            return self._string(char)
        if char == "`":
            return self._tag()
        if char in "$!":
            return self._sigil(char)
        if self._text.startswith("()", self._at):
            return self._emit("UNIT", "()", self._at + 2)
        if char in SIGNS:
            raise Malformed(SIGNS[char], (self._at, self._at + 1))
        if self._text.startswith("...", self._at):
            return self._emit("SPREAD", "...", self._at + 3)
        return self._word(frame, WORD_IN_LIST if in_list else WORD)

    def _adjacent(self) -> bool:
        return self._end == self._at and self._kind in VALUE_ENDS

    def _separator(self, frame: Frame) -> Token | None:
        run = SEPARATOR.match(self._text, self._at)
        assert run is not None, "a separator starts at a newline or a semicolon"  # noqa: S101
        if ";" not in _without_comments(run[0]) and (self._kind == "_EQ" or frame.in_case):
            self._at = run.end()
            return None
        frame.in_let = frame.in_case = False
        return self._emit("_SEP", ";", run.end())

    def _opening(self, char: str, frame: Frame) -> Token:
        if char == "{":
            token = self._open("block", "LBRACE", self._at + 1)
            blanks = BLANKS_IN_LIST.match(self._text, self._at)
            after = blanks.end() if blanks else self._at
            if self._text.startswith("|", after):
                self._frames[-1].params = True
            return token
        if self._adjacent():
            return self._open("index", "INDEX_OPEN", self._at + 1)
        if MAP_OPEN.match(self._text, self._at):
            return self._open("list", "MAP_OPEN", self._at + 2)
        if self._kind != "CASE":
            frame.in_case = False
        return self._open("list", "LSQB", self._at + 1)

    def _bar(self, frame: Frame) -> Token:
        if not frame.params:
            raise Malformed(SIGNS["|"], (self._at, self._at + 1))
        if self._kind == "LBRACE":
            if self._text.startswith("||", self._at):
                raise Malformed("`||` names no parameter: leave the bars out", (self._at, self._at + 2))
            return self._emit("_BAR", "|", self._at + 1)
        frame.params = False
        return self._emit("_BAR", "|", self._at + 1)

    def _string(self, char: str) -> Token:
        if char == '"':
            return self._open("text", "DQ_OPEN", self._at + 1)
        opening = RAW.match(self._text, self._at)
        assert opening is not None, "a # that opens no raw string is a comment, and was skipped"  # noqa: S101
        closing = "'" + opening[1]
        body = opening.end()
        end = self._text.find(closing, body)
        if end < 0:
            form = "raw" if opening[1] else "single-quoted"
            raise Malformed(
                f"unterminated {form} string: expected closing `{closing}`", (self._at, body), incomplete=True
            )
        return self._emit("TEXT", self._text[body:end], end + len(closing))

    def _tag(self) -> Token:
        label = NAME.match(self._text, self._at + 1)
        if label is None:
            raise Malformed("expected tag label after backtick; quote literal backticks", (self._at, self._at + 1))
        return self._emit("TAG", label[0], label.end())

    def _sigil(self, char: str) -> Token:
        if char == "!":
            if self._text[self._at + 1 : self._at + 2] not in ("{", "$", "!"):
                raise Malformed(
                    "`!` forces a block, written !{...} or !$name; to negate a Bool use `not`", (self._at, self._at + 1)
                )
            return self._emit("BANG", "!", self._at + 1)
        if self._text.startswith("$[", self._at):
            return self._open("expr", "EXPR_OPEN", self._at + 2)
        named = DOLLAR_NAME.match(self._text, self._at) or DOLLAR_PAREN.match(self._text, self._at)
        if named is None:
            raise Malformed(
                "`$` reads a name, as in $rows or $(rows); quote it if it is text", (self._at, self._at + 1)
            )
        return self._emit("VARIABLE", named[1], named.end())

    def _word(self, frame: Frame, pattern: re.Pattern[str]) -> Token:
        found = pattern.match(self._text, self._at)
        if found is None:  # only a colon that is punctuation is left
            return self._emit("_COLON", ":", self._at + 1)
        word = found[0]
        if not word.isprintable() or word[0] in SMART_QUOTES:
            self._refuse_odd(word)
        if frame.in_let and word == "=":
            frame.in_let = False
            return self._emit("_EQ", "=", found.end())
        if frame.mode == "block" and not frame.params and self._kind in STARTS:
            if word in MISSING:
                raise Malformed(MISSING[word], found.span())
            if word in KEYWORDS:
                frame.in_let, frame.in_case = word == "let", word == "case"
                return self._emit(KEYWORDS[word], word, found.end())
        kind, value = numeral(word)
        return self._emit(kind, value, found.end())

    def _refuse_odd(self, word: str) -> None:
        odd = next(i for i, char in enumerate(word) if not char.isprintable() or char in SMART_QUOTES)
        where = (self._at + odd, self._at + odd + 1)
        if word[odd] in SMART_QUOTES:
            raise Malformed(f"{word[odd]} is a typographic quote: strings are written 'so' or \"so\"", where)
        raise Malformed(
            f"an invisible character, U+{ord(word[odd]):04X}, stands in a bare word: quote it if it is text", where
        )

    # --- expressions, inside $[...] ---------------------------------------------------------------------------------

    def _in_expression(self) -> Token | None:  # noqa: PLR0911 - one return a kind of token
        blanks = BLANKS_IN_LIST.match(self._text, self._at)
        if blanks is not None:
            self._at = blanks.end()
            return None
        char = self._text[self._at]
        after_value = self._kind in VALUE_ENDS
        number = EXPR_NUMBER.match(self._text, self._at)
        if number is not None and not (char == "-" and after_value):
            kind, value = numeral(number[0])
            if kind == "WORD":
                raise Malformed(f"the number passes 64 bits: from {INT_MIN} to {INT_MAX}", number.span())
            return self._emit(kind, value, number.end())
        if char in "'#\"":
            return self._string(char)
        if char == "[":
            return self._opening(char, self._frames[-1])
        if char == "]":
            return self._close(char)
        if char == "!" and self._text[self._at + 1 : self._at + 2] in ("{", "$", "!"):
            return self._sigil(char)
        if char == "$":
            return self._sigil(char)
        if char == "{" and self._kind == "BANG":
            return self._opening(char, self._frames[-1])
        if self._text.startswith("()", self._at):
            return self._emit("UNIT", "()", self._at + 2)
        sign = EXPR_SIGN.match(self._text, self._at)
        return self._sign(sign[0], after_value) if sign is not None else self._expression_word()

    def _sign(self, sign: str, after_value: bool) -> Token:
        end = self._at + len(sign)
        if sign == "(":
            return self._open("paren", "_LPAR", end)
        if sign == ")":
            return self._close(sign)
        if sign == "-" and not after_value:
            return self._emit("NEGATE", sign, end)
        return self._emit(EXPR_SIGNS.get(sign, "COMPARE"), sign, end)

    def _expression_word(self) -> Token:
        name = NAME.match(self._text, self._at)
        if name is None:
            raise Malformed(
                "$[...] holds numbers, strings, $names, !{...} and the signs + - * / % == != < > <= >= && || not",
                (self._at, self._at + 1),
            )
        if name[0] in ("true", "false"):
            return self._emit("BOOL", name[0] == "true", name.end())
        if name[0] == "not":
            return self._emit("NOT", "not", name.end())
        if name[0] in ("and", "or"):
            sign = "&&" if name[0] == "and" else "||"
            raise Malformed(f"`{name[0]}` is written `{sign}` inside $[...]", name.span())
        raise Malformed(f"a bare word in $[...]: write ${name[0]} for the name, '{name[0]}' for the text", name.span())

    # --- double-quoted strings --------------------------------------------------------------------------------------

    def _in_text(self, frame: Frame) -> Token:
        text, start = self._text, self._at
        if self._splice_end == start and text.startswith("[", start):
            return self._open("index", "INDEX_OPEN", start + 1)
        if self._kind == "BANG" and self._end == start:  # the force of a splice: `!{` or `!$`
            return self._opening("{", frame) if text[start] == "{" else self._splice_variable(start)
        pieces: list[str] = []
        at = start
        while at < len(text):
            run = CHUNK.match(text, at)
            if run is not None:
                pieces.append(run[0])
                at = run.end()
            elif text[at] == "\\":
                piece, at = self._escape(at)
                pieces.append(piece)
            elif text[at] == '"' or self._splices(at):
                break
            else:
                pieces.append(text[at])
                at += 1
        else:
            self._unclosed(frame)
        if pieces:
            return self._emit("CHUNK", "".join(pieces), at)
        if text[at] == '"':
            self._frames.pop()
            self._splice_end = -1
            return self._emit("DQ_CLOSE", '"', at + 1)
        return self._splice_variable(at) if text[at] == "$" else self._emit("BANG", "!", at + 1)

    def _splices(self, at: int) -> bool:
        if self._text[at] == "!":
            return self._text.startswith("!{", at) or DOLLAR_NAME.match(self._text, at + 1) is not None
        return self._text.startswith("$[", at) or any(p.match(self._text, at) for p in (DOLLAR_NAME, DOLLAR_PAREN))

    def _splice_variable(self, at: int) -> Token:
        if self._text.startswith("$[", at):
            return self._open("expr", "EXPR_OPEN", at + 2)
        bare = DOLLAR_NAME.match(self._text, at)
        if bare is not None:
            self._splice_end = bare.end()
            return self._emit("VARIABLE", bare[1], bare.end())
        delimited = DOLLAR_PAREN.match(self._text, at)
        assert delimited is not None, "a splice was seen here"  # noqa: S101
        return self._emit("VARIABLE", delimited[1], delimited.end())

    def _escape(self, at: int) -> tuple[str, int]:
        """The character an escape stands for, and where it ends. A surrogate may be spelled, as the recorded text may hold one."""
        char = self._text[at + 1 : at + 2]
        if char == "\n":
            return "", at + 2
        if char in ESCAPES and char:
            return ESCAPES[char], at + 2
        hexadecimal = HEX_ESCAPE.match(self._text, at)
        if hexadecimal is not None:
            code = int(hexadecimal[1] or hexadecimal[2], 16)
            if code <= 0x10FFFF:
                return chr(code), hexadecimal.end()
        raise Malformed(
            f"unknown escape `\\{char if char.isprintable() else ''}`: "
            r"a string in double quotes knows \n \r \t \\ \0 \e \" \$ \! \xNN \u{...}; a backslash is ordinary in '...'",
            (at, at + 2),
        )


def _without_comments(run: str) -> str:
    return re.sub(r"#[^\n]*", "", run)


def numeral(word: str) -> tuple[str, str | int | float | bool]:
    """A bare word as the literal it spells: INT, FLOAT, BOOL, or, when it is none or passes the type's range, WORD."""
    if word in ("true", "false"):
        return "BOOL", word == "true"
    if INT.fullmatch(word) and len(word) < 400:
        value = int(word)
        if INT_MIN <= value <= INT_MAX:
            return "INT", value
    elif FLOAT.fullmatch(word):
        real = float(word)
        if math.isfinite(real):
            return "FLOAT", real
    return "WORD", word
