-- exarch_sql: the schema of a lineage file.
--
-- A lineage is everything an LLM agent's logs ever recorded, in one order, never rewritten. The RECORDS are the truth and the
-- API: one INSERT into `records` is an append. The FOLD is what the records imply (which logs there are, what left the context
-- under which note, what was withdrawn); triggers derive it in the same statement, so no crash leaves half of it. The VIEWS are
-- for people.
--
-- The idea of the fold: everything is an interval of turn ids. Ids are dense along a lineage, so what a log has let go of is a
-- few disjoint spans of ground (`standing`), and the gaps between them are where its resident turns lie. Surveys, alignment,
-- forks and rewinds cost what is resident, never what was recorded.
--
-- Laws named L1..L14 are those of docs/guarantees.md. A refusal's message begins with the law it upholds. Everything here parses
-- and answers on SQLite 3.40 (RAISE takes literals only; no JSONB) and calls no function of ours, so that any connection, ours or
-- not, is held to the same laws. Hashes are checked by `verify`: SQL cannot compute them.
--
-- Versions of this file (PRAGMA user_version):
--   1  the first.

PRAGMA application_id = 1702392689; -- 'exsq'
PRAGMA user_version = 1;

------------------------------------------------------------------------------------------------------------------------------
-- 1. Records: what endures
------------------------------------------------------------------------------------------------------------------------------

-- one row per file: whose memory this is. Covered by the digest of record 1 (docs/file-format.md).
CREATE TABLE lineage (
  id         INTEGER PRIMARY KEY CHECK (id = 1), -- always 1: there is one row
  uuid       TEXT NOT NULL,                      -- lower-case RFC 4122 text, drawn when the file was made
  created_ms INTEGER NOT NULL,                   -- Unix milliseconds; a claim, like every time in this file
  format     INTEGER NOT NULL                    -- version of the digest rules; 1
) STRICT;

-- one row per record: one thing that happened, in the order in which it was written. Columns down to `key` and `body_hash` are
-- covered by `digest`; those between are quotes of the body, kept because triggers and views need them, re-derived by `verify`.
CREATE TABLE records (
  seq       INTEGER PRIMARY KEY, -- 1, 2, 3, ... without a gap (L2); the only order there is
  log       INTEGER NOT NULL,    -- the log that recorded it: logs.log
  kind      TEXT NOT NULL,       -- makes turns: prompt, assistant (open one), tool_results, steering (extend the newest);
                                 -- edits: opened, evicted, rewound, cleared, redacted; witnesses: usage, door, note, error, meta
  turn      INTEGER,             -- the turn it opens or extends (L3); NULL unless it makes turns
  origin    TEXT,                -- own, or import (recorded elsewhere first); NULL unless it makes turns
  at_ms     INTEGER NOT NULL,    -- Unix milliseconds, the writer's claim; never used for order
  key       TEXT,                -- the caller's idempotency key, unique in its log; NULL when it gave none
  label     TEXT,                -- quote: first line of the turn it opens, at most 50 code points; of `opened` the log's name
  weight    INTEGER,             -- quote: bytes of its messages as compact JSON, blobs in place; of `evicted` its residue's message
  calls     TEXT,                -- quote: JSON array of call ids an assistant made or tool_results answers; NULL when none
  span_from INTEGER,             -- quote: first turn an eviction covers
  span_to   INTEGER,             -- quote: last turn an eviction covers, inclusive
  note      TEXT,                -- quote: the model's note, 1..240 bytes on one line (L9); NULL for a forced eviction
  author    TEXT,                -- quote: model or harness, of an eviction
  anchor    INTEGER,             -- quote: turn a rewind goes back to; of a fork the owing turn that stands withdrawn in it
  parent    INTEGER,             -- quote: log a fork was made from; NULL for a log of its own
  target    INTEGER,             -- quote: seq a redaction blanks
  reach     INTEGER,             -- quote: newest turn id the log (of `opened`: the parent) had seen when the edit was made
  body_hash BLOB NOT NULL,       -- SHA-256 of the body's UTF-8 bytes, 32 bytes
  digest    BLOB NOT NULL,       -- SHA-256 over this record and its predecessor's digest, 32 bytes (L11)
  body      TEXT,                -- exact text that was hashed; JSON: messages of a turn, or the particulars of an edit or witness.
                                 -- NULL only where a `redacted` record names it (L12). Last, so that the rest is read without it
  CONSTRAINT whole_digests CHECK (length(body_hash) = 32 AND length(digest) = 32),
  -- which columns a kind fills; a chain of CASEs, for an IN list costs an append more than the rest of its checks (measured)
  CONSTRAINT shape_of_kind CHECK (
    CASE kind
      WHEN 'prompt' THEN turn >= 1 AND weight >= 0 AND label IS NOT NULL AND calls IS NULL
      WHEN 'assistant' THEN turn >= 1 AND weight >= 0 AND label IS NOT NULL
      WHEN 'tool_results' THEN turn >= 1 AND weight >= 0 AND label IS NULL AND calls IS NOT NULL
      WHEN 'steering' THEN turn >= 1 AND weight >= 0 AND label IS NULL AND calls IS NULL
      ELSE turn IS NULL AND origin IS NULL AND calls IS NULL AND
        CASE kind
          WHEN 'evicted' THEN span_from IS NOT NULL AND span_to IS NOT NULL AND author IS NOT NULL AND weight >= 0
          WHEN 'opened' THEN label IS NOT NULL AND reach >= 0
          WHEN 'rewound' THEN anchor IS NOT NULL AND reach >= 0
          WHEN 'cleared' THEN reach >= 0
          WHEN 'redacted' THEN target IS NOT NULL
          WHEN 'usage' THEN 1 WHEN 'door' THEN 1 WHEN 'note' THEN 1 WHEN 'error' THEN 1 WHEN 'meta' THEN 1
          ELSE 0 END
    END IS TRUE),
  CONSTRAINT known_origin CHECK ((turn IS NULL) = (origin IS NULL) AND (origin IS NULL OR origin = 'own' OR origin = 'import')),
  CONSTRAINT quotes_of_edits CHECK (
    (kind = 'evicted') = (span_from IS NOT NULL) AND (span_from IS NULL) = (span_to IS NULL)
      AND (span_from IS NULL) = (author IS NULL) AND (note IS NULL OR kind = 'evicted')
      AND (anchor IS NULL OR kind = 'rewound' OR kind = 'opened') AND (parent IS NULL OR kind = 'opened')
      AND (reach IS NULL OR kind = 'opened' OR kind = 'evicted' OR kind = 'rewound' OR kind = 'cleared')
      AND (target IS NULL OR kind = 'redacted') AND (turn IS NOT NULL OR weight IS NULL OR kind = 'evicted')
      AND (turn IS NOT NULL OR label IS NULL OR kind = 'opened'))
) STRICT;

-- The one index an append touches: a log's turns with all that a survey shows of them. A turn is the record that opens it, so
-- there is no table of turns.
CREATE INDEX records_of_turns ON records (log, turn, seq, kind, origin, weight, label) WHERE turn IS NOT NULL;
CREATE INDEX records_of_others ON records (log, kind, seq) WHERE turn IS NULL;
CREATE UNIQUE INDEX records_by_key ON records (log, key) WHERE key IS NOT NULL;
CREATE INDEX records_by_target ON records (target) WHERE target IS NOT NULL;

-- one row per distinct binary part (L11: its hash stands in the body that names it). It keeps a rowid: a tree keyed by the hash
-- itself reads whole blobs to find one (measured at 300 KB: 751 us a look-up against 3).
CREATE TABLE blobs (
  hash  BLOB NOT NULL UNIQUE, -- SHA-256 of the raw bytes, 32 bytes
  bytes INTEGER NOT NULL,     -- length of the raw bytes; stays when the data is blanked
  data  BLOB,                 -- the raw bytes, not base64; NULL only where redacted (L12)
  CONSTRAINT whole_hash CHECK (length(hash) = 32),
  CONSTRAINT true_length CHECK (data IS NULL OR length(data) = bytes)
) STRICT;

------------------------------------------------------------------------------------------------------------------------------
-- 2. Fold: what the records imply. Written by the triggers below and by nothing else; `rebuild` re-derives it (L14)
------------------------------------------------------------------------------------------------------------------------------

-- one row per log: a trunk, or a fork of another log.
CREATE TABLE logs (
  log    INTEGER PRIMARY KEY,  -- 1 is the trunk; then in the order of opening
  name   TEXT NOT NULL UNIQUE, -- what the harness calls it
  parent INTEGER,              -- log it was forked from; NULL for a log of its own
  opened INTEGER NOT NULL,     -- seq of its `opened` record
  base   INTEGER NOT NULL      -- its parent's reach at the fork, 0 without a parent: its own turns are base + 1 and up
) STRICT;

-- one row per log and ancestor it sees, itself included: which of the ancestor's records and turns it sees (L13).
CREATE TABLE ancestry (
  log       INTEGER NOT NULL, -- the log that sees
  ancestor  INTEGER NOT NULL, -- the log that is seen
  upto      INTEGER NOT NULL, -- last seq it sees of the ancestor: the fork on the way there; 2^63-1 of itself
  turn_from INTEGER NOT NULL, -- first turn id the ancestor owns in this lineage
  turn_to   INTEGER NOT NULL, -- last one, inclusive; below turn_from when it owns none; 2^63-1 of itself
  PRIMARY KEY (log, ancestor)
) STRICT, WITHOUT ROWID;

-- one row per eviction: the span that left and what was said of it. Never removed, not even when a wider one covers it.
CREATE TABLE residues (
  seq       INTEGER PRIMARY KEY, -- its `evicted` record; later covers earlier
  log       INTEGER NOT NULL,    -- log that evicted
  span_from INTEGER NOT NULL,    -- first turn id covered
  span_to   INTEGER NOT NULL,    -- last one, inclusive
  note      TEXT,                -- the model's note; NULL when forced, or redacted
  author    TEXT NOT NULL,       -- model or harness
  weight    INTEGER NOT NULL,    -- bytes of the message that stands for it in the context, compact JSON
  CONSTRAINT never_inverted CHECK (span_from <= span_to),
  CONSTRAINT known_author CHECK (author IN ('model', 'harness'))
) STRICT;

CREATE INDEX residues_of_log ON residues (log, span_from, span_to, seq);

-- one row per item an eviction took out of the context: the stamp `under` (L7). An item without one, and not withdrawn, is resident.
CREATE TABLE locations (
  log       INTEGER NOT NULL, -- log whose eviction took it; its descendants see it as far as `ancestry` says
  span_from INTEGER NOT NULL, -- first turn id of the item
  residue   INTEGER NOT NULL, -- seq of the residue that the item is; 0 when the item is a turn
  holder    INTEGER NOT NULL, -- seq of the residue it lies under, which is also the record that took it
  PRIMARY KEY (log, span_from, residue)
) STRICT, WITHOUT ROWID;

-- one row per run of turn ids withdrawn by a rewind, a clear or a fork with calls owing. The runs a log sees are disjoint; an
-- item is withdrawn, for good, when its first turn id lies in one (L10).
CREATE TABLE withdrawals (
  log       INTEGER NOT NULL, -- log that withdrew it
  span_from INTEGER NOT NULL, -- first turn id of the run
  span_to   INTEGER NOT NULL, -- last one, inclusive
  seq       INTEGER NOT NULL, -- record that withdrew it
  PRIMARY KEY (log, span_from),
  CONSTRAINT never_inverted CHECK (span_from <= span_to)
) STRICT, WITHOUT ROWID;

-- one row per outermost span on which no turn of the log's context lies: a residue that stands there, or withdrawn ground.
-- Disjoint. Rows come and go as ground is covered by wider ground: what is here now is a function of the tables above.
-- The key's columns come first: integrity_check of SQLite 3.40 looks for a NULL in the wrong column of a table without rowid where
-- they do not, and finds one.
CREATE TABLE standing (
  log       INTEGER NOT NULL, -- the log whose context it is
  span_to   INTEGER NOT NULL, -- last turn id of the ground, inclusive
  seq       INTEGER NOT NULL, -- record of this log that laid it (of inherited ground: `opened`)
  span_from INTEGER NOT NULL, -- first turn id of the ground
  residue   INTEGER,          -- seq of the residue that stands here; NULL for withdrawn ground
  PRIMARY KEY (log, span_to, seq),
  CONSTRAINT never_inverted CHECK (span_from <= span_to)
) STRICT, WITHOUT ROWID;

-- one row per log: where its protocol stands. Read, not stored: the newest turn that is not withdrawn decides, by its last
-- visible record; a departed one, or none, means ready.
CREATE VIEW state AS
SELECT
  l.log,                                 -- the log
  l.name,                                -- its name
  l.parent,                              -- log it was forked from; NULL for a log of its own
  l.opened,                              -- seq of its `opened` record
  l.base,                                -- the reach it began with: its own turns are above
  coalesce(top.turn, l.base) AS reach,   -- newest turn id seen, withdrawn or not
  CASE WHEN g.span_to = coalesce(top.turn, l.base) AND g.residue IS NULL THEN g.span_from - 1
       ELSE coalesce(top.turn, l.base) END AS newest, -- newest turn that is not withdrawn; 0 for none
  CASE WHEN last.kind = 'prompt' OR last.kind = 'steering' THEN 'prompted'
       WHEN last.kind = 'tool_results' THEN 'answered'
       WHEN last.calls IS NOT NULL THEN 'owing'
       ELSE 'ready' END AS state,        -- ready for a prompt; prompted and answered wait for a reply; owing for tool results
  CASE WHEN last.kind = 'assistant' THEN last.calls END AS owed, -- JSON array of the call ids waiting; NULL for none
  last.seq AS last                       -- the record that decided; NULL where the newest turn departed or there is none
FROM logs AS l
LEFT JOIN records AS top ON top.seq = (
  SELECT r.seq FROM records AS r WHERE r.log = l.log AND r.turn IS NOT NULL ORDER BY r.turn DESC, r.seq DESC LIMIT 1)
LEFT JOIN standing AS g ON g.log = l.log AND g.span_to = (
  SELECT s.span_to FROM standing AS s WHERE s.log = l.log ORDER BY s.span_to DESC LIMIT 1)
LEFT JOIN records AS last ON last.seq = CASE
  WHEN top.turn > coalesce(g.span_to, 0) THEN top.seq -- the common case: the newest turn is the log's own, and resident
  WHEN g.span_to = coalesce(top.turn, l.base) AND g.residue IS NOT NULL THEN NULL
  WHEN g.span_to = coalesce(top.turn, l.base) AND EXISTS (
    SELECT 1 FROM standing AS s WHERE s.log = l.log AND s.span_to = g.span_from - 1) THEN NULL
  ELSE (
    SELECT r.seq FROM ancestry AS a JOIN records AS r ON r.log = a.ancestor AND r.seq <= a.upto
     WHERE a.log = l.log
       AND CASE WHEN g.span_to = coalesce(top.turn, l.base) THEN g.span_from - 1 ELSE coalesce(top.turn, l.base) END
           BETWEEN a.turn_from AND a.turn_to
       AND r.turn = CASE WHEN g.span_to = coalesce(top.turn, l.base) THEN g.span_from - 1 ELSE coalesce(top.turn, l.base) END
     ORDER BY r.seq DESC LIMIT 1)
  END;

-- The gate: no record enters against a law. Messages are literals, for SQLite before 3.47; the judge in Python says more.
CREATE TRIGGER records_are_admitted BEFORE INSERT ON records
BEGIN
  SELECT CASE
    WHEN new.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM records)
      THEN RAISE(ABORT, 'L2: a record takes the next seq of the file')
    WHEN new.body IS NULL
      THEN RAISE(ABORT, 'L11: a record has a body')
    WHEN new.key IS NOT NULL AND EXISTS (SELECT 1 FROM records WHERE log = new.log AND key = new.key)
      THEN RAISE(ABORT, 'L1: this key already names a record of the log')
    WHEN new.kind <> 'opened' AND NOT EXISTS (SELECT 1 FROM logs WHERE log = new.log)
      THEN RAISE(ABORT, 'L13: there is no such log')
    WHEN new.kind = 'opened' AND (new.label IS NULL OR new.log <> 1 + (SELECT coalesce(max(log), 0) FROM logs)
        OR EXISTS (SELECT 1 FROM logs WHERE name = new.label))
      THEN RAISE(ABORT, 'L13: a log is opened once, under the next number and a name of its own')
    WHEN new.kind = 'opened' AND NOT EXISTS (
        SELECT 1 FROM (SELECT 1) LEFT JOIN state AS s ON s.log = new.parent
         WHERE (new.parent IS NULL) = (s.log IS NULL) AND new.reach IS coalesce(s.reach, 0)
           AND new.anchor IS CASE WHEN s.state = 'owing' THEN s.newest END)
      THEN RAISE(ABORT, 'L13: a fork names its parent, the reach it has, and the turn that owes results')
    WHEN new.kind = 'opened' AND CASE WHEN json_valid(new.body) THEN
          new.label IS NOT new.body ->> 'name' OR new.parent IS NOT new.body ->> 'parent'
          OR new.reach IS NOT new.body ->> 'reach' OR new.anchor IS NOT new.body ->> 'withdrawn' ELSE 1 END
      THEN RAISE(ABORT, 'L13: name, parent and reach are those of the body')
    WHEN new.kind = 'redacted' AND CASE WHEN json_valid(new.body) THEN new.target IS NOT new.body ->> 'target' ELSE 1 END
      THEN RAISE(ABORT, 'L12: the target is that of the body')
    WHEN new.kind = 'redacted' AND NOT EXISTS (
        SELECT 1 FROM records WHERE seq = new.target AND log = new.log AND kind NOT IN ('opened', 'redacted'))
      THEN RAISE(ABORT, 'L12: a redaction names an earlier record of its log that can be blanked')
  END;
  SELECT CASE new.kind
    WHEN 'prompt' THEN CASE
      WHEN s.state = 'owing' THEN RAISE(ABORT, 'L4: a prompt waits until every call is answered')
      WHEN new.turn IS NOT s.reach + 1 THEN RAISE(ABORT, 'L3: a turn takes the next id of its lineage') END
    WHEN 'assistant' THEN CASE
      WHEN s.state = 'owing' OR s.state = 'ready' AND new.origin = 'own'
        THEN RAISE(ABORT, 'L4: a reply follows a prompt or all results')
      WHEN new.turn IS NOT s.reach + 1 THEN RAISE(ABORT, 'L3: a turn takes the next id of its lineage')
      WHEN new.calls IS NOT (
          SELECT nullif(json_group_array(part.value ->> 'id'), '[]')
            FROM json_each(new.body, '$[0].parts') AS part WHERE part.value ->> 'type' = 'tool_call')
        THEN RAISE(ABORT, 'L4: calls are the call ids of the body, in order')
      WHEN new.calls IS NOT NULL AND (SELECT count(DISTINCT value) <> count(*) OR min(type) <> 'text' OR max(type) <> 'text'
                                        FROM json_each(new.calls))
        THEN RAISE(ABORT, 'L4: a call id is text, and stands once') END
    WHEN 'tool_results' THEN CASE
      WHEN s.state <> 'owing' THEN RAISE(ABORT, 'L4: no call is waiting for a result')
      WHEN new.turn IS NOT s.newest THEN RAISE(ABORT, 'L4: results extend the turn that called')
      WHEN (SELECT json_group_array(value) FROM (SELECT value FROM json_each(new.calls) ORDER BY value))
        <> (SELECT json_group_array(value) FROM (SELECT value FROM json_each(s.owed) ORDER BY value))
        THEN RAISE(ABORT, 'L4: results answer every waiting call, once each')
      WHEN new.calls IS NOT (
          SELECT json_group_array(part.value ->> 'id')
            FROM json_each(new.body) AS message JOIN json_each(message.value, '$.parts') AS part
           WHERE part.value ->> 'type' = 'tool_call_response')
        THEN RAISE(ABORT, 'L4: calls are the call ids of the body, in order') END
    WHEN 'steering' THEN CASE
      WHEN s.state = 'ready' OR s.state = 'owing' THEN RAISE(ABORT, 'L4: steering joins work that waits for a reply')
      WHEN new.turn IS NOT s.newest OR new.turn <= s.base
        THEN RAISE(ABORT, 'L13: steering extends the newest turn, one of this log itself') END
    WHEN 'evicted' THEN CASE
      WHEN new.author = 'harness' AND s.state = 'owing'
        THEN RAISE(ABORT, 'L4: a forced eviction waits until every call is answered')
      WHEN new.reach IS NOT s.reach THEN RAISE(ABORT, 'L3: an edit names the reach of its log')
      WHEN new.author IS NULL OR new.author NOT IN ('model', 'harness') OR (new.author = 'model') <> (new.note IS NOT NULL)
          OR new.weight IS NULL
        THEN RAISE(ABORT, 'L9: the model leaves a note, the harness leaves none')
      WHEN length(CAST(new.note AS BLOB)) NOT BETWEEN 1 AND 240
        THEN RAISE(ABORT, 'L9: a note is 1 to 240 bytes')
      WHEN new.note GLOB '*[' || char(10, 11, 12, 13, 28, 29, 30, 133, 8232, 8233) || ']*' OR instr(new.note, char(0)) > 0
        THEN RAISE(ABORT, 'L9: a note is one line')
      WHEN NOT json_valid(new.body) OR new.span_from IS NOT new.body ->> 'from' OR new.span_to IS NOT new.body ->> 'to'
          OR new.note IS NOT new.body ->> 'note' OR new.author IS NOT new.body ->> 'by' OR new.reach IS NOT new.body ->> 'reach'
        THEN RAISE(ABORT, 'L5: span, note and author are those of the body')
      WHEN new.span_from IS NULL OR new.span_to IS NULL OR new.span_from > new.span_to OR new.span_from < 1
          OR new.span_to > s.reach
        THEN RAISE(ABORT, 'L5: both ends are recorded turns, the first not after the last')
      WHEN s.state <> 'ready' AND new.span_to >= s.newest
        THEN RAISE(ABORT, 'L5: the turn being written stays')
      WHEN EXISTS (
          SELECT 1 FROM standing AS g
           WHERE g.log = new.log AND g.span_to = (SELECT min(span_to) FROM standing WHERE log = new.log AND span_to >= new.span_from)
             AND g.span_from <= new.span_from AND (g.residue IS NULL OR g.span_from < new.span_from))
        THEN RAISE(ABORT, 'L5: the first turn starts an item of the context')
      WHEN EXISTS (
          SELECT 1 FROM standing AS g
           WHERE g.log = new.log AND g.span_to = (SELECT min(span_to) FROM standing WHERE log = new.log AND span_to >= new.span_to)
             AND g.span_from <= new.span_to AND (g.residue IS NULL OR g.span_to > new.span_to))
        THEN RAISE(ABORT, 'L5: the last turn ends an item of the context')
      WHEN new.author = 'harness' AND EXISTS (
          SELECT 1 FROM standing AS g WHERE g.log = new.log AND g.span_to = new.span_to AND g.span_from = new.span_from)
        THEN RAISE(ABORT, 'L9: a forced eviction never replaces exactly one residue') END
    WHEN 'rewound' THEN CASE
      WHEN s.state = 'owing' THEN RAISE(ABORT, 'L10: a rewind waits until every call is answered')
      WHEN new.reach IS NOT s.reach THEN RAISE(ABORT, 'L3: an edit names the reach of its log')
      WHEN NOT json_valid(new.body) OR new.anchor IS NOT new.body ->> 'anchor' OR new.reach IS NOT new.body ->> 'reach'
        THEN RAISE(ABORT, 'L10: the anchor is that of the body')
      WHEN new.anchor IS NULL OR new.anchor NOT BETWEEN 1 AND s.reach OR EXISTS (
          SELECT 1 FROM standing AS g
           WHERE g.log = new.log AND g.span_to = (SELECT min(span_to) FROM standing WHERE log = new.log AND span_to >= new.anchor)
             AND g.span_from <= new.anchor AND (g.residue IS NULL OR g.span_from < new.anchor))
        THEN RAISE(ABORT, 'L10: the anchor starts an item of the context') END
    WHEN 'cleared' THEN CASE
      WHEN s.state = 'owing' THEN RAISE(ABORT, 'L10: a clear waits until every call is answered')
      WHEN new.reach IS NOT s.reach THEN RAISE(ABORT, 'L3: an edit names the reach of its log')
      WHEN NOT json_valid(new.body) OR new.reach IS NOT new.body ->> 'reach'
        THEN RAISE(ABORT, 'L10: the reach is that of the body') END
    END
    FROM state AS s WHERE s.log = new.log;
END;

-- one row per edit, with what the fold takes in. An INSERT here folds the edit: that keeps the fold's program out of plain
-- appends (measured: half their speed), and lets `rebuild` replay the edits of a file in one statement.
CREATE VIEW edits AS
SELECT
  seq,           -- the record
  log,           -- the log it edits, or opens
  kind,          -- opened, evicted, rewound or cleared
  label AS name, -- of `opened`
  span_from,     -- of `evicted`
  span_to,       -- of `evicted`
  note,          -- of `evicted` by the model
  author,        -- of `evicted`: model or harness
  weight,        -- of `evicted`
  anchor,        -- of `rewound`, and of the `opened` of a fork whose parent owed results
  parent,        -- of the `opened` of a fork
  reach          -- newest turn id when it was made
FROM records WHERE turn IS NULL AND kind IN ('opened', 'evicted', 'rewound', 'cleared');

CREATE TRIGGER records_are_folded AFTER INSERT ON records WHEN new.reach IS NOT NULL
BEGIN
  INSERT INTO edits (seq, log, kind, name, span_from, span_to, note, author, weight, anchor, parent, reach)
  VALUES (new.seq, new.log, new.kind, new.label, new.span_from, new.span_to, new.note, new.author, new.weight, new.anchor,
          new.parent, new.reach);
END;

-- A log begins. A fork sees what its parent sees, as of now, and takes over the ground that stands; bounds only shrink down the
-- chain. A turn of the parent that owes results is withdrawn: it could never be answered here.
CREATE TRIGGER edits_open_logs INSTEAD OF INSERT ON edits WHEN new.kind = 'opened'
BEGIN
  INSERT INTO logs (log, name, parent, opened, base) VALUES (new.log, new.name, new.parent, new.seq, new.reach);
  INSERT INTO ancestry (log, ancestor, upto, turn_from, turn_to)
    SELECT new.log, ancestor, min(upto, new.seq), turn_from, min(turn_to, new.reach) FROM ancestry WHERE log = new.parent
    UNION ALL SELECT new.log, new.log, 9223372036854775807, new.reach + 1, 9223372036854775807;
  INSERT INTO withdrawals (log, span_from, span_to, seq)
    SELECT new.log, new.anchor, new.anchor, new.seq WHERE new.anchor IS NOT NULL;
  INSERT INTO standing (log, span_from, span_to, residue, seq)
    SELECT new.log, span_from, span_to, residue, new.seq FROM standing
     WHERE log = new.parent AND (new.anchor IS NULL OR residue IS NOT NULL OR span_to <> new.anchor - 1)
    UNION ALL
    SELECT new.log, coalesce((SELECT span_from FROM standing
                               WHERE log = new.parent AND span_to = new.anchor - 1 AND residue IS NULL), new.anchor),
           new.anchor, NULL, new.seq
     WHERE new.anchor IS NOT NULL;
END;

-- A run leaves. Every item of the context in it is stamped with its holder, the new residue, which then stands for all of it.
CREATE TRIGGER edits_evict INSTEAD OF INSERT ON edits WHEN new.kind = 'evicted'
BEGIN
  -- aligned (L5) and over whole grounds, so nested or disjoint with every other (L6)
  INSERT INTO residues (seq, log, span_from, span_to, note, author, weight)
    VALUES (new.seq, new.log, new.span_from, new.span_to, new.note, new.author, new.weight);
  INSERT INTO locations (log, span_from, residue, holder)
    SELECT new.log, walk.span_from, walk.residue, new.seq FROM (
      -- from item to item: where a ground begins it is the next one, elsewhere the next turn is (0); withdrawn ground is NULL
      WITH RECURSIVE item (span_from, span_to, residue) AS (
        SELECT new.span_from - 1, new.span_from - 1, NULL
        UNION ALL
        SELECT item.span_to + 1, coalesce(g.span_to, item.span_to + 1), CASE WHEN g.seq IS NULL THEN 0 ELSE g.residue END
          FROM item LEFT JOIN standing AS g ON g.log = new.log AND g.span_from = item.span_to + 1
           AND g.span_to = (SELECT min(span_to) FROM standing WHERE log = new.log AND span_to > item.span_to)
         WHERE item.span_to < new.span_to)
      SELECT span_from, residue FROM item WHERE residue IS NOT NULL) AS walk;
  INSERT INTO standing (log, span_from, span_to, residue, seq) VALUES (new.log, new.span_from, new.span_to, new.seq, new.seq);
  DELETE FROM standing
   WHERE log = new.log AND span_to BETWEEN new.span_from AND new.span_to AND span_from >= new.span_from AND seq <> new.seq;
END;

-- Everything from the anchor on is withdrawn (a clear: from the first turn). The new runs are what no earlier run holds; the
-- ground they make is laid in one piece with withdrawn ground that ends right before it, so that one look finds the newest turn.
CREATE TRIGGER edits_withdraw INSTEAD OF INSERT ON edits WHEN new.kind IN ('rewound', 'cleared') AND new.reach > 0
BEGIN
  INSERT INTO withdrawals (log, span_from, span_to, seq)
    SELECT new.log, gap_from, gap_to, new.seq FROM (
      SELECT lag(span_to, 1, coalesce(new.anchor, 1) - 1) OVER (ORDER BY span_from) + 1 AS gap_from, span_from - 1 AS gap_to
        FROM (SELECT w.span_from, w.span_to FROM ancestry AS a JOIN withdrawals AS w ON w.log = a.ancestor AND w.seq <= a.upto
               WHERE a.log = new.log AND w.span_from BETWEEN coalesce(new.anchor, 1) AND new.reach
              UNION ALL SELECT new.reach + 1, new.reach + 1))
     WHERE gap_from <= gap_to;
  INSERT INTO standing (log, span_from, span_to, residue, seq)
    SELECT new.log, coalesce((SELECT span_from FROM standing
                               WHERE log = new.log AND span_to = new.anchor - 1 AND residue IS NULL),
                             new.anchor, 1), new.reach, NULL, new.seq;
  DELETE FROM standing
   WHERE log = new.log AND span_to BETWEEN coalesce(new.anchor, 1) - 1 AND new.reach AND seq <> new.seq
     AND span_from >= (SELECT span_from FROM standing WHERE log = new.log AND span_to = new.reach AND seq = new.seq);
END;

------------------------------------------------------------------------------------------------------------------------------
-- Guards: rows of record stay, and a fold row enters only as the newest record is being folded. A BEFORE INSERT guard on every
-- unique key is what stops INSERT OR REPLACE: it walks past UPDATE and DELETE triggers (measured), unless recursive_triggers is on.
------------------------------------------------------------------------------------------------------------------------------

CREATE TRIGGER lineage_is_one_row BEFORE INSERT ON lineage WHEN EXISTS (SELECT 1 FROM lineage)
BEGIN SELECT RAISE(ABORT, 'L1: a file is one lineage'); END;
CREATE TRIGGER lineage_is_kept BEFORE UPDATE ON lineage
BEGIN SELECT RAISE(ABORT, 'L1: the lineage is never changed'); END;
CREATE TRIGGER lineage_is_not_deleted BEFORE DELETE ON lineage
BEGIN SELECT RAISE(ABORT, 'L1: the lineage is never deleted'); END;

-- Blanking is the one change (L12): while a redaction of this record is the newest record, its body and what quotes it may go, and
-- so may the blobs it lists and nobody else names. A redaction of a part leaves every other part as it was, and a hole in its place;
-- what it leaves has the hash that the redaction states (checked by `verify`).
CREATE TRIGGER records_are_kept BEFORE UPDATE ON records
WHEN NOT (
  EXISTS (SELECT 1 FROM records AS r WHERE r.target = old.seq AND r.seq = (SELECT max(seq) FROM records)
             AND CASE WHEN new.body IS NULL THEN r.body ->> 'left' IS NULL
               WHEN old.turn IS NULL OR r.body ->> 'left' IS NULL OR NOT json_valid(new.body) THEN 0 ELSE
                   (SELECT json_group_array(json_remove(value, '$.parts')) FROM json_each(old.body))
                 = (SELECT json_group_array(json_remove(value, '$.parts')) FROM json_each(new.body))
               AND (SELECT json_group_array(CASE number WHEN r.body ->> 'part' THEN 'hole' ELSE part END) FROM (
                      SELECT row_number() OVER (ORDER BY m.key, p.key) - 1 AS number, p.value AS part
                        FROM json_each(old.body) AS m JOIN json_each(m.value, '$.parts') AS p))
                 = (SELECT json_group_array(CASE WHEN number <> r.body ->> 'part' THEN part WHEN '[redacted]' IN
                             (part ->> 'content', part ->> 'response', part ->> '$.arguments.redacted') THEN 'hole' END) FROM (
                      SELECT row_number() OVER (ORDER BY m.key, p.key) - 1 AS number, p.value AS part
                        FROM json_each(new.body) AS m JOIN json_each(m.value, '$.parts') AS p)) END)
  AND old.body IS NOT NULL AND new.seq = old.seq AND new.log = old.log AND new.kind = old.kind AND new.turn IS old.turn
  AND new.origin IS old.origin AND new.at_ms = old.at_ms AND new.key IS old.key AND new.weight IS old.weight
  AND new.calls IS old.calls AND new.span_from IS old.span_from AND new.span_to IS old.span_to AND new.author IS old.author
  AND new.anchor IS old.anchor AND new.parent IS old.parent AND new.target IS old.target AND new.reach IS old.reach
  AND new.body_hash = old.body_hash AND new.digest = old.digest
  AND (new.note IS old.note OR new.note IS NULL) AND (new.label IS old.label OR new.label = ''))
BEGIN SELECT RAISE(ABORT, 'L1: a record is never changed'); END;
CREATE TRIGGER records_are_not_deleted BEFORE DELETE ON records
BEGIN SELECT RAISE(ABORT, 'L1: a record is never deleted'); END;

CREATE TRIGGER blobs_are_new BEFORE INSERT ON blobs
WHEN new.data IS NULL OR EXISTS (SELECT 1 FROM blobs WHERE hash = new.hash OR rowid = new.rowid)
BEGIN SELECT RAISE(ABORT, 'L1: a blob is stored once, whole'); END;
-- a blob that was redacted may be stored again, by who records it again
CREATE TRIGGER blobs_are_kept BEFORE UPDATE ON blobs
WHEN NOT (new.hash = old.hash AND new.bytes = old.bytes AND old.data IS NULL AND new.data IS NOT NULL) AND NOT (
  new.hash = old.hash AND new.bytes = old.bytes AND new.data IS NULL AND old.data IS NOT NULL
  AND EXISTS (SELECT 1 FROM records AS r JOIN json_each(r.body, '$.blobs') AS named
               WHERE r.seq = (SELECT max(seq) FROM records) AND r.kind = 'redacted' AND named.value = lower(hex(old.hash)))
  AND NOT EXISTS (SELECT 1 FROM records AS r WHERE r.turn IS NOT NULL AND instr(r.body, lower(hex(old.hash))) > 0))
BEGIN SELECT RAISE(ABORT, 'L1: a blob is never changed'); END;
CREATE TRIGGER blobs_are_not_deleted BEFORE DELETE ON blobs
BEGIN SELECT RAISE(ABORT, 'L1: a blob is never deleted'); END;

CREATE TRIGGER logs_are_folded BEFORE INSERT ON logs
WHEN EXISTS (SELECT 1 FROM logs WHERE log = new.log OR name = new.name) OR NOT EXISTS (
  SELECT 1 FROM records WHERE seq = new.opened AND seq = (SELECT max(seq) FROM records) AND kind = 'opened'
     AND log = new.log AND label = new.name AND parent IS new.parent AND reach = new.base)
BEGIN SELECT RAISE(ABORT, 'L14: a log is what its opened record says'); END;
CREATE TRIGGER logs_are_kept BEFORE UPDATE ON logs
BEGIN SELECT RAISE(ABORT, 'L1: a log is never changed'); END;
CREATE TRIGGER logs_are_not_deleted BEFORE DELETE ON logs
BEGIN SELECT RAISE(ABORT, 'L1: a log is never deleted'); END;

CREATE TRIGGER ancestry_is_folded BEFORE INSERT ON ancestry
WHEN EXISTS (SELECT 1 FROM ancestry WHERE log = new.log AND ancestor = new.ancestor) OR NOT EXISTS (
  SELECT 1 FROM logs AS l LEFT JOIN ancestry AS a ON a.log = l.parent AND a.ancestor = new.ancestor
   WHERE l.log = new.log AND l.opened = (SELECT max(seq) FROM records)
     AND CASE WHEN new.ancestor = new.log
         THEN new.upto = 9223372036854775807 AND new.turn_from = l.base + 1 AND new.turn_to = 9223372036854775807
         ELSE new.upto = min(a.upto, l.opened) AND new.turn_from = a.turn_from AND new.turn_to = min(a.turn_to, l.base) END)
BEGIN SELECT RAISE(ABORT, 'L14: a log sees what its parent sees at the fork, and itself'); END;
CREATE TRIGGER ancestry_is_kept BEFORE UPDATE ON ancestry
BEGIN SELECT RAISE(ABORT, 'L1: ancestry is never changed'); END;
CREATE TRIGGER ancestry_is_not_deleted BEFORE DELETE ON ancestry
BEGIN SELECT RAISE(ABORT, 'L1: ancestry is never deleted'); END;

CREATE TRIGGER residues_are_folded BEFORE INSERT ON residues
WHEN EXISTS (SELECT 1 FROM residues WHERE seq = new.seq) OR NOT EXISTS (
  SELECT 1 FROM records WHERE seq = new.seq AND seq = (SELECT max(seq) FROM records) AND kind = 'evicted' AND log = new.log
     AND span_from = new.span_from AND span_to = new.span_to AND note IS new.note AND author = new.author AND weight = new.weight)
BEGIN SELECT RAISE(ABORT, 'L14: a residue is what its evicted record says'); END;
CREATE TRIGGER residues_are_kept BEFORE UPDATE ON residues
WHEN NOT (
  new.seq = old.seq AND new.log = old.log AND new.span_from = old.span_from AND new.span_to = old.span_to
  AND new.author = old.author AND new.weight = old.weight AND new.note IS NULL AND old.note IS NOT NULL
  AND EXISTS (SELECT 1 FROM records WHERE seq = old.seq AND note IS NULL))
BEGIN SELECT RAISE(ABORT, 'L1: a residue is never changed'); END;
CREATE TRIGGER residues_are_not_deleted BEFORE DELETE ON residues
BEGIN SELECT RAISE(ABORT, 'L1: a residue is never deleted'); END;

-- The ground of an edit is laid last: once it lies there, the edit is folded and nothing more may be said in its name.
CREATE TRIGGER locations_are_folded BEFORE INSERT ON locations
WHEN EXISTS (SELECT 1 FROM locations WHERE log = new.log AND span_from = new.span_from AND residue = new.residue)
  OR NOT EXISTS (
    SELECT 1 FROM residues WHERE seq = new.holder AND seq = (SELECT max(seq) FROM records) AND log = new.log
       AND new.span_from BETWEEN span_from AND span_to)
  OR EXISTS (SELECT 1 FROM standing WHERE log = new.log AND seq = new.holder
                AND span_to = (SELECT span_to FROM residues WHERE seq = new.holder))
BEGIN SELECT RAISE(ABORT, 'L7: an item goes under the residue of the eviction that covers it'); END;
CREATE TRIGGER locations_are_kept BEFORE UPDATE ON locations
BEGIN SELECT RAISE(ABORT, 'L1: a location is never changed'); END;
CREATE TRIGGER locations_are_not_deleted BEFORE DELETE ON locations
BEGIN SELECT RAISE(ABORT, 'L1: a location is never deleted'); END;

CREATE TRIGGER withdrawals_are_folded BEFORE INSERT ON withdrawals
WHEN EXISTS (SELECT 1 FROM withdrawals WHERE log = new.log AND span_from = new.span_from) OR new.span_from > new.span_to
  OR NOT EXISTS (
    SELECT 1 FROM records WHERE seq = new.seq AND seq = (SELECT max(seq) FROM records) AND log = new.log
       AND CASE kind WHEN 'opened' THEN new.span_from = anchor AND new.span_to = anchor
                     WHEN 'rewound' THEN new.span_from >= anchor AND new.span_to <= reach
                     WHEN 'cleared' THEN new.span_from >= 1 AND new.span_to <= reach END)
  OR EXISTS (SELECT 1 FROM standing WHERE log = new.log AND seq = new.seq
                AND span_to = (SELECT CASE kind WHEN 'opened' THEN anchor ELSE reach END FROM records WHERE seq = new.seq))
BEGIN SELECT RAISE(ABORT, 'L10: a run is withdrawn by the edit that says so'); END;
CREATE TRIGGER withdrawals_are_kept BEFORE UPDATE ON withdrawals
BEGIN SELECT RAISE(ABORT, 'L1: a withdrawal is never changed'); END;
CREATE TRIGGER withdrawals_are_not_deleted BEFORE DELETE ON withdrawals
BEGIN SELECT RAISE(ABORT, 'L1: a withdrawal is never deleted'); END;

CREATE TRIGGER standing_is_folded BEFORE INSERT ON standing
WHEN EXISTS (SELECT 1 FROM standing WHERE log = new.log AND span_to = new.span_to AND seq = new.seq) OR new.span_from > new.span_to
  OR NOT EXISTS (
    SELECT 1 FROM records AS r WHERE r.seq = new.seq AND r.seq = (SELECT max(seq) FROM records) AND r.log = new.log
       AND CASE r.kind
           WHEN 'evicted' THEN new.span_from = r.span_from AND new.span_to = r.span_to AND new.residue IS r.seq
           WHEN 'rewound' THEN new.span_from <= r.anchor AND new.span_to = r.reach AND new.residue IS NULL
           WHEN 'cleared' THEN new.span_from = 1 AND new.span_to = r.reach AND new.residue IS NULL
           WHEN 'opened' THEN
             NOT EXISTS (SELECT 1 FROM standing AS g
                          WHERE g.log = new.log AND g.span_from <= new.span_to AND g.span_to >= new.span_from)
             AND (new.residue IS NULL AND new.span_to = r.anchor
                  OR EXISTS (SELECT 1 FROM standing AS g WHERE g.log = r.parent AND g.span_from = new.span_from
                                AND g.span_to = new.span_to AND g.residue IS new.residue))
           END)
BEGIN SELECT RAISE(ABORT, 'L8: ground is laid by the edit that covers it'); END;
CREATE TRIGGER standing_is_kept BEFORE UPDATE ON standing
BEGIN SELECT RAISE(ABORT, 'L1: ground is never changed'); END;
CREATE TRIGGER standing_is_covered BEFORE DELETE ON standing
WHEN NOT EXISTS (
  SELECT 1 FROM records AS r JOIN standing AS g ON g.log = r.log AND g.seq = r.seq AND g.span_to = coalesce(r.span_to, r.reach)
   WHERE r.seq = (SELECT max(seq) FROM records) AND r.log = old.log AND r.seq > old.seq
     AND g.span_to >= old.span_to AND g.span_from <= old.span_from)
BEGIN SELECT RAISE(ABORT, 'L8: ground goes only under wider ground'); END;

------------------------------------------------------------------------------------------------------------------------------
-- 3. Views: for people. Each shows every log; narrow with WHERE log = ... and it costs that log alone
------------------------------------------------------------------------------------------------------------------------------

-- one row per run of turn ids without ground on it: where a log's resident turns lie. The last run of a log is open-ended.
CREATE VIEW gaps AS
SELECT
  log,       -- the log
  span_from, -- first turn id of the run
  span_to    -- last one, inclusive; 2^63-2 of the last run
FROM (SELECT log, lag(span_to, 1, 0) OVER (PARTITION BY log ORDER BY span_to) + 1 AS span_from, span_from - 1 AS span_to
        FROM (SELECT log, span_from, span_to FROM standing
              UNION ALL SELECT log, 9223372036854775807, 9223372036854775807 FROM logs))
WHERE span_from <= span_to;

-- one row per item of a log's context, as it stands (L8): ORDER BY span_from, and it is what the model is sent.
CREATE VIEW frontier AS
SELECT
  g.log                                                           AS log,       -- the log whose context it is
  r.turn                                                          AS span_from, -- first turn id of the item
  r.turn                                                          AS span_to,   -- last one, inclusive; of a turn the same
  CASE r.kind WHEN 'prompt' THEN 'user' ELSE 'assistant' END      AS role,      -- user or assistant; of a residue user
  CASE WHEN a.ancestor = g.log THEN r.origin ELSE 'inherited' END AS kind,      -- own, import, inherited or residue
  r.label                                                         AS label,     -- first line of a turn, note of a residue
  (SELECT sum(x.weight) FROM records AS x
    WHERE x.log = r.log AND x.turn = r.turn AND x.seq <= a.upto)  AS bytes,     -- what it weighs in the context
  r.seq                                                           AS seq        -- record that opened the turn, or evicted
FROM gaps AS g
JOIN ancestry AS a ON a.log = g.log AND a.turn_from <= g.span_to AND a.turn_to >= g.span_from
JOIN records AS r ON r.log = a.ancestor AND r.turn BETWEEN max(a.turn_from, g.span_from) AND min(a.turn_to, g.span_to)
 AND r.seq <= a.upto AND r.kind IN ('prompt', 'assistant')
UNION ALL
SELECT s.log, s.span_from, s.span_to, 'user', 'residue', coalesce(d.note, ''), d.weight, d.seq
FROM standing AS s JOIN residues AS d ON d.seq = s.residue;

-- one row per moment (a record), log and residue the log had seen by then, with what had become of it. Narrow with at = SEQ.
CREATE VIEW residues_at AS
SELECT
  m.seq        AS at,        -- the moment: after this record
  l.log        AS log,       -- the log that saw it
  d.seq        AS seq,       -- its `evicted` record
  d.span_from  AS span_from, -- first turn id covered
  d.span_to    AS span_to,   -- last one, inclusive
  d.note       AS note,      -- the model's note; NULL when forced, or redacted
  d.weight     AS bytes,     -- what it weighed in the context
  EXISTS (SELECT 1 FROM ancestry AS b JOIN withdrawals AS w ON w.log = b.ancestor AND w.seq <= min(b.upto, m.seq)
           WHERE b.log = l.log AND w.span_from = (
             SELECT max(v.span_from) FROM withdrawals AS v WHERE v.log = b.ancestor AND v.span_from <= d.span_from)
             AND w.span_to >= d.span_from) AS withdrawn, -- 1 once a rewind, clear or fork withdrew it
  (SELECT x.holder FROM ancestry AS b JOIN locations AS x ON x.log = b.ancestor AND x.holder <= min(b.upto, m.seq)
    WHERE b.log = l.log AND x.span_from = d.span_from AND x.residue = d.seq) AS holder -- residue (seq) it departed under; NULL if none
FROM logs AS l
JOIN ancestry AS a ON a.log = l.log
JOIN residues AS d ON d.log = a.ancestor AND d.seq <= a.upto
JOIN records AS m ON m.seq >= d.seq AND m.seq >= l.opened;

-- one row per moment (a record), log and item the log had seen by then, with where it was: the whole transcript as of then. Narrow
-- with at = SEQ; ORDER BY span_from, span_to DESC, seq DESC puts a residue before what it covers.
CREATE VIEW items_at AS
SELECT
  m.seq                                                           AS at,        -- the moment: after this record
  l.log                                                           AS log,       -- the log that saw it
  r.turn                                                          AS span_from, -- first turn id of the item
  r.turn                                                          AS span_to,   -- last one, inclusive; of a turn the same
  CASE r.kind WHEN 'prompt' THEN 'user' ELSE 'assistant' END      AS role,      -- user or assistant; of a residue user
  CASE WHEN a.ancestor = l.log THEN r.origin ELSE 'inherited' END AS kind,      -- own, import, inherited or residue
  r.label                                                         AS label,     -- first line of a turn, note of a residue
  (SELECT sum(x.weight) FROM records AS x
    WHERE x.log = r.log AND x.turn = r.turn AND x.seq <= min(a.upto, m.seq)) AS bytes, -- what it weighed
  r.seq                                                           AS seq,       -- record that opened the turn, or evicted
  EXISTS (SELECT 1 FROM ancestry AS b JOIN withdrawals AS w ON w.log = b.ancestor AND w.seq <= min(b.upto, m.seq)
           WHERE b.log = l.log AND w.span_from = (
             SELECT max(v.span_from) FROM withdrawals AS v WHERE v.log = b.ancestor AND v.span_from <= r.turn)
             AND w.span_to >= r.turn)                             AS withdrawn, -- 1 once a rewind, clear or fork withdrew it
  (SELECT x.holder FROM ancestry AS b JOIN locations AS x ON x.log = b.ancestor AND x.holder <= min(b.upto, m.seq)
    WHERE b.log = l.log AND x.span_from = r.turn AND x.residue = 0) AS holder   -- residue (seq) it departed under; NULL if none
FROM logs AS l
JOIN ancestry AS a ON a.log = l.log
JOIN records AS r ON r.log = a.ancestor AND r.turn BETWEEN a.turn_from AND a.turn_to AND r.kind IN ('prompt', 'assistant')
 AND r.seq <= a.upto
JOIN records AS m ON m.seq >= r.seq AND m.seq >= l.opened
UNION ALL
SELECT at, log, span_from, span_to, 'user', 'residue', coalesce(note, ''), bytes, seq, withdrawn, holder FROM residues_at;

-- one row per log and item it ever saw, with its location now: the index.
CREATE VIEW items AS
SELECT
  i.log,       -- the log that sees it
  i.span_from, -- first turn id of the item
  i.span_to,   -- last one, inclusive; of a turn the same
  i.role,      -- user or assistant; of a residue user
  i.kind,      -- own, import, inherited or residue
  i.label,     -- first line of a turn, note of a residue
  i.bytes,     -- what it weighs in the context
  i.seq,       -- record that opened the turn, or evicted
  CASE WHEN i.withdrawn THEN 'withdrawn' WHEN i.holder IS NOT NULL THEN 'under' ELSE 'resident' END AS location, -- as named (L7)
  CASE WHEN NOT i.withdrawn THEN h.span_from END AS under_from, -- first turn of the holder's span; NULL unless under
  CASE WHEN NOT i.withdrawn THEN h.span_to END   AS under_to    -- last one, inclusive; NULL unless under
FROM items_at AS i LEFT JOIN residues AS h ON h.seq = i.holder
WHERE i.at = (SELECT max(seq) FROM records);

-- one row per moment, log and run of turn ids without ground on it by then: `gaps` as of any past record. Narrow with at = SEQ.
CREATE VIEW gaps_at AS
SELECT
  at,        -- the moment: after this record
  log,       -- the log
  span_from, -- first turn id of the run
  span_to    -- last one, inclusive; 2^63-2 of the last run
FROM (
  SELECT at, log, span_from - 1 AS span_to,
         coalesce(max(span_to) OVER (PARTITION BY at, log ORDER BY span_from, span_to
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) + 1 AS span_from
    FROM (
      SELECT m.seq AS at, l.log AS log, d.span_from AS span_from, d.span_to AS span_to
        FROM logs AS l JOIN records AS m ON m.seq >= l.opened JOIN ancestry AS a ON a.log = l.log
        JOIN residues AS d ON d.log = a.ancestor AND d.seq <= min(a.upto, m.seq)
      UNION ALL
      SELECT m.seq, l.log, w.span_from, w.span_to
        FROM logs AS l JOIN records AS m ON m.seq >= l.opened JOIN ancestry AS a ON a.log = l.log
        JOIN withdrawals AS w ON w.log = a.ancestor AND w.seq <= min(a.upto, m.seq)
      UNION ALL
      SELECT m.seq, l.log, 9223372036854775807, 9223372036854775807
        FROM logs AS l JOIN records AS m ON m.seq >= l.opened))
WHERE span_from <= span_to;

-- one row per moment, log and item of its context as it stood then: what did the model see when it did that? Narrow with at = SEQ.
CREATE VIEW frontier_at AS
SELECT
  g.at,                                                                -- the moment: after this record
  g.log,                                                               -- the log whose context it was
  r.turn                                                          AS span_from, -- first turn id of the item
  r.turn                                                          AS span_to,   -- last one, inclusive; of a turn the same
  CASE r.kind WHEN 'prompt' THEN 'user' ELSE 'assistant' END      AS role,      -- user or assistant; of a residue user
  CASE WHEN a.ancestor = g.log THEN r.origin ELSE 'inherited' END AS kind,      -- own, import, inherited or residue
  r.label,                                                             -- first line of a turn, note of a residue
  (SELECT sum(x.weight) FROM records AS x
    WHERE x.log = r.log AND x.turn = r.turn AND x.seq <= min(a.upto, g.at)) AS bytes, -- what it weighed
  r.seq                                                                -- record that opened the turn, or evicted
FROM gaps_at AS g
JOIN ancestry AS a ON a.log = g.log AND a.turn_from <= g.span_to AND a.turn_to >= g.span_from
JOIN records AS r ON r.log = a.ancestor AND r.turn BETWEEN max(a.turn_from, g.span_from) AND min(a.turn_to, g.span_to)
 AND r.seq <= min(a.upto, g.at) AND r.kind IN ('prompt', 'assistant')
UNION ALL
SELECT at, log, span_from, span_to, 'user', 'residue', coalesce(note, ''), bytes, seq
FROM residues_at WHERE holder IS NULL AND NOT withdrawn;

-- one row per log and item of its index: where the item is, and nothing else.
CREATE VIEW location_of AS
SELECT
  log,        -- the log that sees it
  span_from,  -- first turn id of the item
  span_to,    -- last one, inclusive
  kind,       -- own, import, inherited or residue
  location,   -- resident, under or withdrawn
  under_from, -- first turn of the holder's span; NULL unless under
  under_to    -- last one, inclusive; NULL unless under
FROM items;

-- one row per turn, in the log that recorded it (no fork repeats it).
CREATE VIEW turns AS
SELECT
  r.log,                                                       -- the log that recorded it
  r.turn,                                                      -- its id
  CASE r.kind WHEN 'prompt' THEN 'user' ELSE 'assistant' END AS role, -- user or assistant
  r.origin,                                                    -- own, or import
  r.label,                                                     -- its first line
  (SELECT sum(x.weight) FROM records AS x WHERE x.log = r.log AND x.turn = r.turn) AS bytes, -- weight of its messages
  (SELECT count(*) FROM records AS x WHERE x.log = r.log AND x.turn = r.turn) AS records,    -- number of records it is made of
  coalesce(json_array_length(r.calls), 0) AS calls,            -- tool calls it makes
  r.seq AS opened,                                             -- record that opened it
  (SELECT max(x.seq) FROM records AS x WHERE x.log = r.log AND x.turn = r.turn) AS extended, -- record that extended it last
  r.at_ms                                                      -- Unix milliseconds, as claimed when it was opened
FROM records AS r WHERE r.turn IS NOT NULL AND r.kind IN ('prompt', 'assistant');

-- one row per message, in the log that recorded it.
CREATE VIEW messages AS
SELECT
  r.seq,                     -- record that holds it
  r.log,                     -- the log that recorded it
  r.turn,                    -- turn it belongs to
  r.kind,                    -- prompt, assistant, tool_results or steering
  m.key AS message,          -- its place in the record, from 0
  m.value ->> 'role' AS role, -- user, assistant, tool, system, ...
  m.value AS json,           -- the message; a blob stands as {"$blob": sha256, "bytes": n} in place of its content
  r.at_ms                    -- Unix milliseconds, as claimed
FROM records AS r JOIN json_each(CASE WHEN json_valid(r.body) THEN r.body ELSE '[]' END) AS m WHERE r.turn IS NOT NULL;

-- one row per part of a message.
CREATE VIEW parts AS
SELECT
  m.seq,                      -- record that holds it
  m.log,                      -- the log that recorded it
  m.turn,                     -- turn it belongs to
  m.message,                  -- its message's place in the record, from 0
  p.key AS part,              -- its place in the message, from 0
  m.role,                     -- its message's role
  p.value ->> 'type' AS type, -- text, reasoning, tool_call, tool_call_response, blob, uri, file, ...
  -- text that SQL cannot hold (a NUL, half a surrogate pair) stays in its JSON spelling: one such would make the view unreadable
  CASE WHEN c.type = 'text' AND NOT (p.value GLOB '*\u[dD][89a-fA-F]*' OR instr(p.value, '\u0000')) THEN c.atom
       ELSE p.value -> ('$.' || c.key) END AS text, -- its content, arguments or response; as JSON where that is no text
  p.value AS json             -- the part
FROM messages AS m JOIN json_each(m.json, '$.parts') AS p
LEFT JOIN json_each(p.value) AS c ON c.key = CASE p.value ->> 'type' WHEN 'tool_call' THEN 'arguments'
                                             WHEN 'tool_call_response' THEN 'response' ELSE 'content' END;

-- one row per tool call.
CREATE VIEW tool_calls AS
SELECT
  p.seq,                     -- record of the reply that makes it
  p.log,                     -- the log that recorded it
  p.turn,                    -- turn it belongs to
  p.json ->> 'id' AS id,     -- the id its result names
  p.json ->> 'name' AS name, -- the tool
  p.text AS arguments,       -- JSON, or the text that came where JSON should; NULL where redacted, like the name
  (SELECT r.seq FROM records AS r WHERE r.log = p.log AND r.turn = p.turn AND r.kind = 'tool_results') AS answered -- seq; NULL while owed
FROM parts AS p WHERE p.type = 'tool_call'
UNION ALL
SELECT b.seq, b.log, b.turn, c.value, NULL, NULL,
       (SELECT r.seq FROM records AS r WHERE r.log = b.log AND r.turn = b.turn AND r.kind = 'tool_results')
FROM records AS b JOIN json_each(b.calls) AS c WHERE b.turn IS NOT NULL AND b.kind = 'assistant' AND b.body IS NULL;

-- one row per tool result.
CREATE VIEW tool_results AS
SELECT
  p.seq,                                 -- record that holds it
  p.log,                                 -- the log that recorded it
  p.turn,                                -- turn it belongs to
  p.json ->> 'id' AS id,                 -- the call it answers
  (SELECT c.json ->> 'name' FROM parts AS c
    WHERE c.seq = (SELECT r.seq FROM records AS r WHERE r.log = p.log AND r.turn = p.turn AND r.kind = 'assistant')
      AND c.type = 'tool_call' AND c.json ->> 'id' = p.json ->> 'id') AS name, -- the tool that was called
  length(CAST(p.text AS BLOB)) AS bytes, -- of the response
  p.text AS response                     -- text, or JSON where it is no text; NULL where redacted
FROM parts AS p WHERE p.type = 'tool_call_response'
UNION ALL
SELECT b.seq, b.log, b.turn, c.value, NULL, NULL, NULL
FROM records AS b JOIN json_each(b.calls) AS c WHERE b.turn IS NOT NULL AND b.kind = 'tool_results' AND b.body IS NULL;

-- one row per usage witness: what a response cost, as the provider counted.
CREATE VIEW usage AS
SELECT
  seq,                                                              -- the witness record
  log,                                                              -- the log that recorded it
  said ->> 'turn' AS turn,                                          -- turn it was counted for; NULL when unknown
  said ->> 'model' AS model,                                        -- as the provider names it
  coalesce(said ->> 'input_tokens', said ->> 'prompt_tokens')
    - coalesce(said ->> '$.input_tokens_details.cached_tokens', said ->> '$.prompt_tokens_details.cached_tokens', 0)
    AS input_tokens,                                                -- not from the cache, whether the provider counts it in or not
  coalesce(said ->> 'output_tokens', said ->> 'completion_tokens') AS output_tokens, -- generated
  coalesce(said ->> 'cache_read_input_tokens', said ->> '$.input_tokens_details.cached_tokens',
           said ->> '$.prompt_tokens_details.cached_tokens') AS cache_read_tokens, -- read from the provider's cache; NULL unsaid
  said ->> 'cache_creation_input_tokens' AS cache_creation_tokens,  -- written to it; NULL unsaid
  at_ms                                                             -- Unix milliseconds, as claimed
FROM (SELECT seq, log, at_ms, CASE WHEN json_valid(body) AND NOT body GLOB '*\u[dD][89a-fA-F]*' THEN body ELSE '{}' END AS said
        FROM records WHERE turn IS NULL AND kind = 'usage');

-- one row per eviction: who let go of what, under which note, and what it saved when it was made.
CREATE VIEW evictions AS
SELECT
  d.seq,       -- the `evicted` record
  d.log,       -- log that evicted
  d.span_from, -- first turn id covered
  d.span_to,   -- last one, inclusive
  d.author,    -- model or harness
  d.note,      -- the model's note; NULL when forced, or redacted
  (SELECT count(*) FROM locations AS x
    WHERE x.log = d.log AND x.span_from BETWEEN d.span_from AND d.span_to AND x.holder = d.seq) AS items, -- taken out of the context
  (SELECT coalesce(sum(CASE x.residue
             WHEN 0 THEN (SELECT sum(t.weight) FROM ancestry AS a JOIN records AS t
                              ON t.log = a.ancestor AND t.turn = x.span_from AND t.seq <= min(a.upto, d.seq)
                           WHERE a.log = d.log AND x.span_from BETWEEN a.turn_from AND a.turn_to)
             ELSE (SELECT i.weight FROM residues AS i WHERE i.seq = x.residue) END), 0)
     FROM locations AS x
    WHERE x.log = d.log AND x.span_from BETWEEN d.span_from AND d.span_to AND x.holder = d.seq)
    - d.weight AS bytes_saved, -- weight that left, less the residue's own
  r.at_ms      -- Unix milliseconds, as claimed
FROM residues AS d JOIN records AS r ON r.seq = d.seq;

-- one row per witness record: what was only seen, never folded.
CREATE VIEW witnesses AS
SELECT
  seq,          -- the record
  log,          -- the log that recorded it
  kind,         -- usage, door (a door line and the size of its answer), note, error or meta
  key,          -- the writer's idempotency key; NULL for none
  body AS json, -- what was seen
  at_ms         -- Unix milliseconds, as claimed
FROM records WHERE turn IS NULL AND kind IN ('usage', 'door', 'note', 'error', 'meta');

-- one row per redaction: what was blanked, and why (L12).
CREATE VIEW redactions AS
SELECT
  seq,                        -- the `redacted` record
  log,                        -- the log that recorded it
  target,                     -- seq of the record that was blanked
  body ->> 'part' AS part,    -- part that was blanked, from 0 over the record's messages; NULL for all of it
  body ->> 'reason' AS reason, -- as given
  at_ms                       -- Unix milliseconds, as claimed
FROM records WHERE turn IS NULL AND kind = 'redacted';

------------------------------------------------------------------------------------------------------------------------------
-- 4. Search: optional, made by the first search that it pays for, and by `reindex`
------------------------------------------------------------------------------------------------------------------------------

-- Running this file makes a lineage without these tables, so they stand in comments: each line that begins with "--| " is a line
-- of SQL to the right of that mark. They follow from the records, may be dropped at any time, and are never the authority: what
-- they have not reached, or no longer answer for, is searched in the records (docs/search.md). FTS5 adds tables of its own,
-- search_data, search_idx and search_config.
--
--| -- one row per record that has text to search: which three characters stand side by side in it. No text is kept.
--| CREATE VIRTUAL TABLE search USING fts5 (
--|   text, -- rowid: seq of the record; text: what grep searches of it (a turn's messages by LF, an eviction's note)
--|   content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 0'
--| );
--|
--| -- one row per page of search_data: what it held when it was written, so that a search notices a page that no longer does.
--| CREATE TABLE search_pages (
--|   id  INTEGER PRIMARY KEY, -- search_data.id
--|   sum INTEGER NOT NULL     -- 8 bytes of BLAKE2b over id, page and the row of search_idx that leads to it
--| ) STRICT;
--|
--| -- one row: how far the index has come. Written in the transaction that came so far.
--| CREATE TABLE search_progress (
--|   id       INTEGER PRIMARY KEY CHECK (id = 1), -- always 1: there is one row
--|   seq      INTEGER NOT NULL, -- every record up to this one is in the index; 0 for none
--|   head     INTEGER NOT NULL, -- the newest record when it came so far: redactions up to there are reckoned with
--|   digest   BLOB NOT NULL,    -- digest of that newest record: the index is of this lineage, and not of its future
--|   segments TEXT NOT NULL,    -- JSON: [segid, last page] of each segment FTS5 then had
--|   sum      INTEGER NOT NULL  -- 8 bytes of BLAKE2b over this row and FTS5's list of segments
--| ) STRICT;
