-- exarch_sql: the audits, questions to ask of any lineage file first. Plain SQL over the file's own tables and views:
--   exarch-sql audit lineage.exarch NAME        runs one, in a table, --json or --nl
--   sqlite3 -box lineage.exarch < audits.sql    runs them all, on SQLite 3.40 and up
-- An audit is its name, the question, how to read the answer, and one statement. docs/cookbook.md is made from this file.

-- audit: biggest
-- question: What fills the context now?
-- reading: The twenty largest items still resident in each log, with their share of what that log's model is sent. A large tool
--   result far back is what an eviction would save first; `exarch-sql evict` takes the span as it stands here.
SELECT log, span_from, span_to, kind, role, bytes, share_percent, label
FROM (SELECT l.name AS log, f.span_from, f.span_to, f.kind, f.role, f.bytes,
             round(100.0 * f.bytes / sum(f.bytes) OVER (PARTITION BY f.log), 1) AS share_percent,
             f.label, row_number() OVER (PARTITION BY f.log ORDER BY f.bytes DESC) AS place, f.log AS number
        FROM frontier AS f JOIN logs AS l ON l.log = f.log)
WHERE place <= 20
ORDER BY number, bytes DESC, span_from;

-- audit: context
-- question: How did each context grow and shrink over time?
-- reading: What the model of a log would have been sent after about twenty evenly spaced records. A fall between two rows is an
--   eviction, a rewind or a clear; `exarch-sql survey --at` shows the items at any of them.
WITH moments (at) AS (
  SELECT seq FROM records
   WHERE seq % (1 + (SELECT max(seq) FROM records) / 20) = 0 OR seq = (SELECT max(seq) FROM records)),
pieces (log, span_from, residue, born, items, bytes) AS ( -- every record of a turn, and every residue, as a log sees it
  SELECT l.log, r.turn, 0, max(r.seq, l.opened), r.kind IN ('prompt', 'assistant'), r.weight
    FROM logs AS l JOIN ancestry AS a ON a.log = l.log
    JOIN records AS r ON r.log = a.ancestor AND r.turn BETWEEN a.turn_from AND a.turn_to AND r.seq <= a.upto
  UNION ALL
  SELECT l.log, d.span_from, d.seq, max(d.seq, l.opened), 1, d.weight
    FROM logs AS l JOIN ancestry AS a ON a.log = l.log JOIN residues AS d ON d.log = a.ancestor AND d.seq <= a.upto),
lives AS MATERIALIZED (
  SELECT p.log, p.born, p.items, p.bytes,
         (SELECT x.holder FROM ancestry AS a JOIN locations AS x ON x.log = a.ancestor AND x.holder <= a.upto
           WHERE a.log = p.log AND x.span_from = p.span_from AND x.residue = p.residue) AS left_at,
         (SELECT min(w.seq) FROM ancestry AS a JOIN withdrawals AS w ON w.log = a.ancestor AND w.seq <= a.upto
           WHERE a.log = p.log AND p.span_from BETWEEN w.span_from AND w.span_to) AS withdrawn_at
    FROM pieces AS p)
SELECT l.name AS log, m.at, coalesce(sum(v.items), 0) AS items, coalesce(sum(v.bytes), 0) AS bytes
FROM moments AS m JOIN logs AS l ON l.opened <= m.at
LEFT JOIN lives AS v ON v.log = l.log AND v.born <= m.at
 AND (v.left_at IS NULL OR v.left_at > m.at) AND (v.withdrawn_at IS NULL OR v.withdrawn_at > m.at)
GROUP BY l.log, m.at
ORDER BY l.log, m.at;

-- audit: evictions
-- question: Who let go of what, and how many bytes did it save?
-- reading: Evictions by log and author: model, under a note, or harness, forced and without one. bytes_saved is what the context
--   shrank by when each was made. Many forced evictions say that the model did not tidy up in time.
SELECT l.name AS log, e.author, count(*) AS evictions, sum(e.items) AS items, sum(e.bytes_saved) AS bytes_saved,
       min(e.bytes_saved) AS least, max(e.bytes_saved) AS most
FROM evictions AS e JOIN logs AS l ON l.log = e.log
GROUP BY e.log, e.author
ORDER BY e.log, e.author;

-- audit: unread
-- question: What was let go and never read back?
-- reading: Evictions of which no later door line of the log, or of a fork of it, brought back a single turn. Their notes were
--   enough, or were never looked behind. Only lines run through a recording door are known: without door records all rows appear.
WITH brought (seq, log, turn) AS (
  SELECT d.seq, d.log, t.value FROM records AS d JOIN json_each(d.body, '$.turns') AS t WHERE d.kind = 'door')
SELECT l.name AS log, e.seq, e.span_from, e.span_to, e.author, e.items, e.bytes_saved, e.note
FROM evictions AS e JOIN logs AS l ON l.log = e.log
WHERE NOT EXISTS (
  SELECT 1 FROM ancestry AS a JOIN brought AS b ON b.log = a.log AND b.seq > e.seq AND b.turn BETWEEN e.span_from AND e.span_to
   WHERE a.ancestor = e.log AND e.seq <= a.upto)
ORDER BY e.seq;

-- audit: read-back
-- question: Which door lines brought back what had left?
-- reading: Lines that read or searched turns which were not in the context any more, with how many of the turns they brought had
--   departed by then. The same span again and again says that its note does not hold what is needed.
SELECT l.name AS log, d.seq, d.body ->> 'verb' AS verb, count(*) AS turns,
       sum(EXISTS (SELECT 1 FROM ancestry AS a JOIN locations AS x ON x.log = a.ancestor AND x.holder <= min(a.upto, d.seq)
                    WHERE a.log = d.log AND x.span_from = t.value AND x.residue = 0)) AS departed,
       d.body ->> 'bytes' AS answer_bytes, substr(d.body ->> 'line', 1, 200) AS line
FROM records AS d JOIN json_each(d.body, '$.turns') AS t JOIN logs AS l ON l.log = d.log
WHERE d.kind = 'door'
GROUP BY d.seq
HAVING departed > 0
ORDER BY d.seq;

-- audit: notes-over-notes
-- question: Which notes cover earlier notes?
-- reading: A residue that lies under a wider or a later one, with both notes. What the inner note said is out of the context unless
--   the outer one repeats it; a null note is a forced eviction, or a redacted note.
SELECT l.name AS log, o.seq, o.span_from, o.span_to, o.note, i.seq AS covers_seq, i.span_from AS covers_from,
       i.span_to AS covers_to, i.note AS covers_note
FROM locations AS x
JOIN residues AS i ON i.seq = x.residue
JOIN residues AS o ON o.seq = x.holder
JOIN logs AS l ON l.log = x.log
ORDER BY o.seq, i.span_from, i.seq;

-- audit: tools
-- question: Which tools were called, and how much did they answer?
-- reading: Calls and results by tool name, the largest total first. A tool whose results are large and called often is where the
--   context goes; calls without results were interrupted, or are still owed.
SELECT name, sum(calls) AS calls, sum(results) AS results, sum(bytes) AS bytes, max(bytes) AS largest
FROM (SELECT name, 1 AS calls, 0 AS results, 0 AS bytes FROM tool_calls
      UNION ALL SELECT name, 0, 1, bytes FROM tool_results)
GROUP BY name
ORDER BY sum(bytes) DESC, name;

-- audit: owed
-- question: Which tool calls were never answered?
-- reading: Calls without a result on record. One in a log that owes results waits; one in a withdrawn turn was abandoned with it.
SELECT l.name AS log, c.turn, c.seq, c.id, c.name, substr(c.arguments, 1, 200) AS arguments
FROM tool_calls AS c JOIN logs AS l ON l.log = c.log
WHERE c.answered IS NULL
ORDER BY c.seq, c.id;

-- audit: duplicates
-- question: Which results did the model get more than once?
-- reading: Results of at least 200 bytes that came back word for word, with what the repetitions weigh. The same file read again
--   after an eviction is the price of the eviction; without one between, it is waste.
SELECT l.name AS log, r.name, count(*) AS times, r.bytes, (count(*) - 1) * r.bytes AS repeated_bytes,
       group_concat(r.turn, ' ') AS turns, substr(r.response, 1, 80) AS begins
FROM tool_results AS r JOIN logs AS l ON l.log = r.log
WHERE r.bytes >= 200
GROUP BY r.log, r.response
HAVING count(*) > 1
ORDER BY repeated_bytes DESC, r.log;

-- audit: tokens
-- question: What did each reply cost, and how does that compare with its weight?
-- reading: One row for each reply with a usage record: tokens as the provider counted them beside the bytes of the turn.
--   cached_percent is the part of the input that was read from the cache; it drops after an eviction far back.
SELECT l.name AS log, u.turn, u.model, u.input_tokens, u.cache_read_tokens, u.cache_creation_tokens, u.output_tokens, t.bytes,
       round(100.0 * u.cache_read_tokens
             / nullif(u.input_tokens + coalesce(u.cache_read_tokens, 0) + coalesce(u.cache_creation_tokens, 0), 0), 1)
         AS cached_percent
FROM usage AS u JOIN logs AS l ON l.log = u.log LEFT JOIN turns AS t ON t.log = u.log AND t.turn = u.turn
ORDER BY u.seq;

-- audit: forks
-- question: Which forks were made, and what did they inherit?
-- reading: One row for each fork: the turns of its ancestors that it saw when it began and how much of its context now is still
--   theirs, beside the turns of its own. Bytes are of its context as it stands.
SELECT l.name AS log, p.name AS parent, l.opened, l.base AS inherited_to,
       (SELECT count(*) FROM frontier AS f WHERE f.log = l.log AND f.kind = 'inherited') AS inherited_resident,
       (SELECT coalesce(sum(f.bytes), 0) FROM frontier AS f WHERE f.log = l.log AND f.kind = 'inherited') AS inherited_bytes,
       (SELECT count(*) FROM turns AS t WHERE t.log = l.log) AS own_turns,
       (SELECT coalesce(sum(f.bytes), 0) FROM frontier AS f WHERE f.log = l.log) AS bytes
FROM logs AS l JOIN logs AS p ON p.log = l.parent
ORDER BY l.log;

-- audit: withdrawn
-- question: What was withdrawn, by which edit?
-- reading: Each run of turns that a rewind, a clear or a fork with calls owing took back for good. The turns can still be read;
--   no context will ever hold them again. Bytes are what they weighed.
SELECT l.name AS log, w.seq, r.kind, w.span_from, w.span_to,
       (SELECT count(DISTINCT x.turn) FROM ancestry AS a
          JOIN records AS x ON x.log = a.ancestor AND x.turn BETWEEN a.turn_from AND a.turn_to AND x.seq <= a.upto
         WHERE a.log = w.log AND x.turn BETWEEN w.span_from AND w.span_to) AS turns,
       (SELECT coalesce(sum(x.weight), 0) FROM ancestry AS a
          JOIN records AS x ON x.log = a.ancestor AND x.turn BETWEEN a.turn_from AND a.turn_to AND x.seq <= a.upto
         WHERE a.log = w.log AND x.turn BETWEEN w.span_from AND w.span_to) AS bytes
FROM withdrawals AS w JOIN records AS r ON r.seq = w.seq JOIN logs AS l ON l.log = w.log
ORDER BY w.seq, w.span_from;

-- audit: steering
-- question: Where was the work in hand steered?
-- reading: What was said to a turn while it was being written, in the order it was recorded: where somebody stepped in.
SELECT l.name AS log, p.turn, p.seq, substr(p.text, 1, 200) AS text
FROM parts AS p JOIN records AS r ON r.seq = p.seq JOIN logs AS l ON l.log = p.log
WHERE r.kind = 'steering' AND p.type = 'text'
ORDER BY p.seq, p.message, p.part;

-- audit: errors
-- question: What went wrong that the model was not told of?
-- reading: Error records: damaged lines of an import, steps a log refused, failures of the harness. `exarch-sql sql` with
--   SELECT json FROM witnesses WHERE seq = ... shows one whole.
SELECT l.name AS log, w.seq, substr(w.json, 1, 300) AS error
FROM witnesses AS w JOIN logs AS l ON l.log = w.log
WHERE w.kind = 'error'
ORDER BY w.seq;

-- audit: redactions
-- question: What was blanked, and why?
-- reading: Each recorded redaction with the record it blanked and the stated reason. The blanked record keeps its place, its hash
--   and its length in the chain; `exarch-sql verify` lists the same seqs.
SELECT l.name AS log, d.seq, d.target, r.kind, r.turn, r.body IS NULL AS blank, d.reason
FROM redactions AS d JOIN records AS r ON r.seq = d.target JOIN logs AS l ON l.log = r.log
ORDER BY d.seq;
