"""The prompt: what is typed at a terminal becomes texts for the shell. The one module that knows prompt_toolkit."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from exarch_sql.cli.printing import visible
from exarch_sql.cli.reading import FORMATS
from exarch_sql.shell import completing, highlighting, history, showing
from exarch_sql.shell.catalogue import ArchiveCatalogue
from exarch_sql.shell.commands import Commands
from exarch_sql.shell.core import Shell
from exarch_sql.shell.texts import DOTTED, wants_more

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

    from exarch_sql.door.values import Value

STYLE = Style.from_dict(
    {
        "keyword": "bold",
        "command": "ansiblue bold",
        "tag": "ansimagenta",
        "name": "ansicyan",
        "text": "ansigreen",
        "number": "ansiyellow",
        "comment": "ansibrightblack italic",
        "error": "ansired underline",
        "prompt": "bold",
    }
)
EXPLAIN = ".explain "


def interact(path: str, log_name: str, form: showing.Form) -> int:
    """Prompt until Ctrl-D or ``.quit``; the exit code, which at a prompt is 0: what was refused was seen."""
    with Shell(path, log_name, form=form, write_literal=_write_literal) as shell:
        session: PromptSession[str] = PromptSession(
            message=lambda: [("class:prompt", prompt_of(shell))],
            prompt_continuation=lambda width, _line, _wrapped: "... ".rjust(width),
            history=history.opened(history.place(os.environ), shell.tell),
            completer=DoorCompleter(shell),
            complete_while_typing=False,
            lexer=DoorLexer(),
            style=STYLE,
            multiline=True,
            key_bindings=_keys(),
            enable_suspend=True,
        )
        shell.tell(f"{path}, log {shell.view.name}. .help lists the commands, Tab completes, Ctrl-D leaves.")
        running = False
        while not shell.done:
            try:
                if running:
                    shell.tell("interrupted")
                running = False
                text = session.prompt()
                running = True
                shell.feed(text)
                running = False
            except KeyboardInterrupt:  # of a line being typed, which it clears, or of one that runs
                continue
            except EOFError:
                break
    return 0


def prompt_of(shell: Shell) -> str:
    """``trunk> ``, or ``trunk at 12> `` in the past."""
    at = "" if shell.view.at is None else f" at {shell.view.at}"
    return f"{visible(shell.view.name)}{at}> "


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def _(event: KeyPressEvent) -> None:
        """Take the offer that is chosen; else go on to another line where the text wants one, or a blank line ends it."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.current_line.strip() and wants_more(buffer.text):
            buffer.newline()
        else:
            buffer.validate_and_handle()

    return keys


# -- typing --------------------------------------------------------------------------------------------------------------------


class DoorCompleter(Completer):
    """Completion of door lines and of commands."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What may stand at the cursor."""
        for offer in candidates(self._shell, document.text_before_cursor):
            yield Completion(offer.text, -offer.length, display=offer.text.strip(), display_meta=offer.about)


class _Offers(ArchiveCatalogue):
    """What an archive offers, and the names of the shell's door."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell.view)
        self._shell = shell

    def names(self) -> list[str]:
        """The names bound so far."""
        return self._shell.door.names


def candidates(shell: Shell, text: str) -> list[completing.Candidate]:
    """What may stand at the end of a text for the shell: of a command its name, then what it takes."""
    offers = _Offers(shell)
    if not text.startswith("."):
        return completing.complete(text, offers)
    name, blank, rest = text[1:].partition(" ")
    if blank and name == "explain":
        return completing.complete(rest.lstrip(), offers)
    if blank:
        known = offers.logs() if name == "log" else [(word, "") for word in _WORDS.get(name, ())]
    else:
        known, rest = [(f".{each}", Commands.help_of(each)[1]) for each in Commands.names()], text
    return [
        completing.Candidate(offer, len(rest), visible(about)[:60])
        for offer, about in known
        if offer.startswith(rest) and offer != rest
    ]


_WORDS: dict[str, Sequence[str]] = {
    "mode": showing.FORMS,
    "at": ("now",),
    "help": Commands.names(),
    "render": FORMATS,
}


class DoorLexer(Lexer):
    """Colours for what is typed."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The coloured lines of a document."""
        lines = list(split_lines(_styled(document.text)))
        return lambda number: lines[number] if number < len(lines) else []


def _styled(text: str) -> StyleAndTextTuples:
    lead = ""
    if DOTTED.match(text):
        end = len(EXPLAIN) if text.startswith(EXPLAIN) else len(text)
        lead, text = text[:end], text[end:]
    styled: StyleAndTextTuples = [("class:keyword", lead)] if lead else []
    styled += [(f"class:{role}" if role else "", part) for role, part in highlighting.fragments(text)]
    return styled


# -- answers -------------------------------------------------------------------------------------------------------------------


def _write_literal(value: Value, text: str) -> None:
    """A literal in colour, on as many lines as it takes to be read."""
    if len(text) <= showing.LAID_OUT_CHARS:
        text = showing.laid_out(value, shutil.get_terminal_size().columns)
    print_formatted_text(FormattedText(_styled(visible(text, keep="\n\t"))), style=STYLE)
