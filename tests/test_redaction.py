"""Redaction (L12): what is blanked is gone from every byte, and the file still proves the rest."""

import base64
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from exarch_sql import Archive, Refused, messages

SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 (it is the point)
PICTURE = b"\x89PNG\r\n" + SECRET.encode() * 3
BLOB = {
    "type": "blob",
    "mime_type": "image/png",
    "modality": "image",
    "content": base64.b64encode(PICTURE).decode(),
}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """A secret in a prompt, a call, its result, a note, a blob, a witness and a fork; padding so that pages were split."""
    with Archive.open(tmp_path / "a.exarch") as archive:
        log = archive.trunk
        for number in range(40):
            log.prompt(f"padding {number} " * 40)
            log.assistant("ok " * 100)
        log.prompt(f"the password is {SECRET}")
        call = {"type": "tool_call", "id": "c1", "name": "sh", "arguments": {"cmd": f"login {SECRET}"}}
        log.assistant({"role": "assistant", "parts": [{"type": "text", "content": "logging in"}, call]})
        log.tool_results([{"id": "c1", "content": f"welcome {SECRET}"}])
        log.assistant("in")
        log.prompt({"role": "user", "parts": [BLOB, {"type": "text", "content": "see"}]})
        log.assistant("seen")
        log.evict(81, 82, f"logged in with {SECRET}")
        log.error(f"login {SECRET} failed once")
        log.fork("scout").prompt(f"use {SECRET}")
        yield archive


def holding(archive: Archive) -> list[int]:
    """The records whose body still holds the secret."""
    return [seq for (seq,) in archive.sql(f"SELECT seq FROM records WHERE instr(body, '{SECRET}') ORDER BY seq").rows]


def bytes_of(archive: Archive) -> bytes:
    """Every byte the archive keeps on disk."""
    path = Path(archive.path)
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


def test_after_redaction_no_byte_of_the_secret_is_left_in_any_file(archive: Archive) -> None:
    """L12: free pages, moved rows, labels, notes, the write-ahead log."""
    assert SECRET.encode() in bytes_of(archive)
    head = archive.head()
    records = holding(archive)

    for seq in records:
        archive.redact(seq, reason="a password")
    (picture,) = archive.sql("SELECT seq FROM records WHERE instr(body, '$blob')").rows[0]
    archive.redact(picture, part=0, reason="a picture of a password")

    assert len(records) == 6
    assert SECRET.encode() not in bytes_of(archive)
    report = archive.verify(against=head)
    assert report.ok, report.first
    assert report.redacted == (*sorted([*records, picture]),)


def test_readers_get_a_marked_hole_of_the_shape_the_protocol_needs(archive: Archive) -> None:
    """A blanked reply still makes its calls, or its results would answer nothing."""
    for seq in holding(archive):
        archive.redact(seq, reason="a password")
    log = archive.trunk

    prompt, reply = log.read([81, 82])

    assert prompt.messages == ({"role": "user", "parts": [{"type": "text", "content": "[redacted]"}]},)
    assert [part.get("id") for message in reply.messages for part in message["parts"] if "id" in part] == ["c1", "c1"]
    assert all(message["content"] for message in log.render("anthropic"))
    assert log.grep("redacted").total == 0
    assert "Your note was redacted" in log.render()[80]["parts"][0]["content"]


def test_a_redacted_part_leaves_the_others_readable(archive: Archive) -> None:
    """Parts are counted over all messages of the record, from 0."""
    (seq,) = archive.sql("SELECT seq FROM records WHERE instr(body, '$blob')").rows[0]

    done = archive.redact(seq, part=0, reason="a picture")

    assert done.blobs == 1
    assert archive.trunk.read([84])[0].messages[0]["parts"] == [
        {"type": "text", "content": "[redacted]"},
        {"type": "text", "content": "see"},
    ]
    assert archive.verify().ok


def test_a_blob_that_another_record_names_is_kept_until_the_last_of_them_goes(archive: Archive) -> None:
    """One blob may be said twice."""
    again = archive.trunk.prompt({"role": "user", "parts": [BLOB]})
    (first,) = archive.sql("SELECT min(seq) FROM records WHERE instr(body, '$blob')").rows[0]

    assert archive.redact(first, reason="x").blobs == 0
    assert archive.trunk.render()[-1]["parts"][0]["content"] == BLOB["content"]
    assert archive.redact(again.seq, reason="x").blobs == 1
    assert archive.verify().ok


def test_what_was_redacted_can_be_recorded_again(archive: Archive) -> None:
    """Past fault: the blanked blob passed for one that is there, and the record that named it could not be read."""
    (first,) = archive.sql("SELECT min(seq) FROM records WHERE instr(body, '$blob')").rows[0]
    assert archive.redact(first, reason="x").blobs == 1
    again = archive.trunk.prompt({"role": "user", "parts": [BLOB]})

    assert archive.trunk.render()[-1]["parts"][0]["content"] == BLOB["content"]
    assert archive.verify().ok
    assert archive.redact(again.seq, reason="x").blobs == 1
    assert archive.verify().ok


@pytest.mark.parametrize(
    ("target", "part", "said"),
    [
        (9999, None, "record 9999 is not recorded: the latest is"),
        (1, None, "holds no text to blank"),
        (2, 7, "there is no part 7"),
    ],
)
def test_what_cannot_be_blanked_is_refused_by_name(archive: Archive, target: int, part: int | None, said: str) -> None:
    """Nothing is written when a redaction is refused."""
    head = archive.head()

    with pytest.raises(Refused, match=said):
        archive.redact(target, part=part, reason="x")

    assert archive.head() == head


def test_redacting_twice_records_it_once_and_a_rebuilt_fold_is_the_same(archive: Archive) -> None:
    """L14 holds with holes in the records."""
    for seq in holding(archive):
        archive.redact(seq, reason="a password")

    again = archive.redact(82, reason="again")

    assert (again.target, archive.head().seq) == (82, archive.sql("SELECT max(seq) FROM redactions").rows[0][0])
    assert archive.rebuild() == []
    assert archive.verify().ok


def test_a_redacted_item_keeps_the_weight_it_had(archive: Archive) -> None:
    """`total-bytes` is of what was recorded: the survey, and so the plan, stays what it was, though less is sent."""
    before = archive.trunk.survey()
    sizes = [len(messages.dumps(message).encode()) for message in archive.trunk.render()]
    assert before.total_bytes == sum(sizes)

    for seq in holding(archive):
        archive.redact(seq, reason="a password")

    after = archive.trunk.survey()
    assert (after.total_bytes, [row.bytes for row in after.rows]) == (
        before.total_bytes,
        [row.bytes for row in before.rows],
    )
    assert sum(len(messages.dumps(message).encode()) for message in archive.trunk.render()) < before.total_bytes


def test_a_redacted_body_can_still_be_guessed(archive: Archive) -> None:
    """What is not promised: its hash and its length stay, and confirm a right guess."""
    (seq,) = archive.sql("SELECT seq FROM records WHERE label LIKE 'the password is%'").rows[0]
    archive.redact(seq, reason="a password")
    hash_, weight = archive.sql(f"SELECT hex(body_hash), weight FROM records WHERE seq = {seq}").rows[0]
    guess = messages.dumps([{"role": "user", "parts": [{"type": "text", "content": f"the password is {SECRET}"}]}])

    assert sha256(guess.encode()).hexdigest() == hash_.lower()
    assert len(guess.encode()) == weight + len("[]")
