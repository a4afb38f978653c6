PRAGMA application_id = 1702392689;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE ancestry (
  log       INTEGER NOT NULL, -- the log that sees
  ancestor  INTEGER NOT NULL, -- the log that is seen
  upto      INTEGER NOT NULL, -- last seq it sees of the ancestor: the fork on the way there; 2^63-1 of itself
  turn_from INTEGER NOT NULL, -- first turn id the ancestor owns in this lineage
  turn_to   INTEGER NOT NULL, -- last one, inclusive; below turn_from when it owns none; 2^63-1 of itself
  PRIMARY KEY (log, ancestor)
) STRICT, WITHOUT ROWID;
INSERT INTO "ancestry" VALUES(1,1,9223372036854775807,1,9223372036854775807);
INSERT INTO "ancestry" VALUES(2,1,31,1,15);
INSERT INTO "ancestry" VALUES(2,2,9223372036854775807,16,9223372036854775807);
INSERT INTO "ancestry" VALUES(3,1,32,1,15);
INSERT INTO "ancestry" VALUES(3,3,9223372036854775807,16,9223372036854775807);
INSERT INTO "ancestry" VALUES(4,1,31,1,15);
INSERT INTO "ancestry" VALUES(4,2,40,16,18);
INSERT INTO "ancestry" VALUES(4,4,9223372036854775807,19,9223372036854775807);
INSERT INTO "ancestry" VALUES(5,5,9223372036854775807,1,9223372036854775807);
INSERT INTO "ancestry" VALUES(6,6,9223372036854775807,1,9223372036854775807);
CREATE TABLE blobs (
  hash  BLOB NOT NULL UNIQUE, -- SHA-256 of the raw bytes, 32 bytes
  bytes INTEGER NOT NULL,     -- length of the raw bytes; stays when the data is blanked
  data  BLOB,                 -- the raw bytes, not base64; NULL only where redacted (L12)
  CONSTRAINT whole_hash CHECK (length(hash) = 32),
  CONSTRAINT true_length CHECK (data IS NULL OR length(data) = bytes)
) STRICT;
INSERT INTO "blobs" VALUES(X'61578AD7D8AFDE50F365251304F0C5E711CFB3F18D4FC2F620F1969BAC827F2F',12,NULL);
CREATE TABLE lineage (
  id         INTEGER PRIMARY KEY CHECK (id = 1), -- always 1: there is one row
  uuid       TEXT NOT NULL,                      -- lower-case RFC 4122 text, drawn when the file was made
  created_ms INTEGER NOT NULL,                   -- Unix milliseconds; a claim, like every time in this file
  format     INTEGER NOT NULL                    -- version of the digest rules; 1
) STRICT;
INSERT INTO "lineage" VALUES(1,'22a26c69-07a6-43d6-aed1-003c2f2d72bc',1796096211790,1);
CREATE TABLE locations (
  log       INTEGER NOT NULL, -- log whose eviction took it; its descendants see it as far as `ancestry` says
  span_from INTEGER NOT NULL, -- first turn id of the item
  residue   INTEGER NOT NULL, -- seq of the residue that the item is; 0 when the item is a turn
  holder    INTEGER NOT NULL, -- seq of the residue it lies under, which is also the record that took it
  PRIMARY KEY (log, span_from, residue)
) STRICT, WITHOUT ROWID;
INSERT INTO "locations" VALUES(1,1,0,17);
INSERT INTO "locations" VALUES(1,1,17,18);
INSERT INTO "locations" VALUES(1,1,18,20);
INSERT INTO "locations" VALUES(1,2,0,16);
INSERT INTO "locations" VALUES(1,2,16,17);
INSERT INTO "locations" VALUES(1,3,0,17);
INSERT INTO "locations" VALUES(1,4,0,20);
INSERT INTO "locations" VALUES(1,5,0,19);
INSERT INTO "locations" VALUES(1,5,19,20);
INSERT INTO "locations" VALUES(1,6,0,25);
INSERT INTO "locations" VALUES(1,7,0,25);
INSERT INTO "locations" VALUES(1,10,0,25);
INSERT INTO "locations" VALUES(1,11,0,33);
INSERT INTO "locations" VALUES(2,12,0,37);
CREATE TABLE logs (
  log    INTEGER PRIMARY KEY,  -- 1 is the trunk; then in the order of opening
  name   TEXT NOT NULL UNIQUE, -- what the harness calls it
  parent INTEGER,              -- log it was forked from; NULL for a log of its own
  opened INTEGER NOT NULL,     -- seq of its `opened` record
  base   INTEGER NOT NULL      -- its parent's reach at the fork, 0 without a parent: its own turns are base + 1 and up
) STRICT;
INSERT INTO "logs" VALUES(1,'trunk',NULL,1,0);
INSERT INTO "logs" VALUES(2,'child',1,31,15);
INSERT INTO "logs" VALUES(3,'heir',1,32,15);
INSERT INTO "logs" VALUES(4,'grandchild',2,40,18);
INSERT INTO "logs" VALUES(5,'owing',NULL,44,0);
INSERT INTO "logs" VALUES(6,'empty',NULL,48,0);
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
INSERT INTO "records" VALUES(1,1,'opened',NULL,NULL,1796096211790,NULL,'trunk',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,X'9F22AD244A26EA9E41B9AF3605F2D4A6B89456433962C8DF1FA83336087FB7DB',X'6FD615189A3DCB6BFFAD72A21FB5632F7971CCFF52E25702D6ED3E1EDDFE24BE','{"name":"trunk","parent":null,"reach":0,"withdrawn":null}');
INSERT INTO "records" VALUES(2,1,'meta',NULL,NULL,1796096211801,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'019068C95B70AEEA86552D13E15AB2A0697E9578151406577AEAF3E7CE1F7616',X'626F073FDF37E19968B5D309D6595759427C43F685EF02D3B217309DD8CE54BE','{"model":"m-1"}');
INSERT INTO "records" VALUES(3,1,'prompt',1,'own',1796096211822,'first','',172,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'CD5A6C56A02732E529C60FE5DC6D262A7B5B8EF0C9A5E24FC567FCBB6BB78C53',X'2CC2A62ECFA7BD14F220F3318420DDE92C8C7FFFE150FB4603C8BEC947D996D0',NULL);
INSERT INTO "records" VALUES(4,1,'assistant',2,'own',1796096211823,NULL,'looking',267,'["c1","c2"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'64CF04514C8702E00A787974F32E29F11A693B3FFACEC3BF007582C09C2B2A64',X'A136C541C647FDEAB0EE03C27E5EEECA0197BDDA1A29007DA8EBB25BB96CAD9D','[{"role":"assistant","parts":[{"type":"reasoning","content":"let me see","signature":"c2ln"},{"type":"text","content":"looking"},{"type":"tool_call","id":"c1","name":"ral","arguments":{"cmd":"ls"}},{"type":"tool_call","id":"c2","name":"ral","arguments":{"cmd":"ls"}}]}]');
INSERT INTO "records" VALUES(5,1,'door',NULL,NULL,1796096211823,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'0168F481316363C1A82D9F01548908D802FC1CA72B5E383503D41D2A218A0615',X'951C510349B82E84CEA73B31217B54F7D5131A0A660A80C160DE60B093686DEB','{"line":"exarch-context `survey","bytes":120}');
INSERT INTO "records" VALUES(6,1,'tool_results',2,'own',1796096211823,NULL,NULL,166,'["c2","c1"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'D1D931188FF819A9DDD6BDA83D2B2064D1A7CB26A0FB877BF0873F317DC604EA',X'98FCE92AE28691F56FA6DF86122D308EA3A06FC38EB2CC8BAA21FB4139F41E05','[{"role":"tool","parts":[{"type":"tool_call_response","id":"c2","response":"[redacted]"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"a.py"}]}]');
INSERT INTO "records" VALUES(7,1,'steering',2,'own',1796096211823,NULL,NULL,71,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'520836653E898A860B3320F85C9095879C7990AF9937B76EC5F19C4EF1C44821',X'9AE1B269AB6BFA669A0D4B4B7325CDC348FB25C529CC761493432F62863D818B','[{"role":"user","parts":[{"type":"text","content":"only the red ones"}]}]');
INSERT INTO "records" VALUES(8,1,'assistant',3,'own',1796096211823,NULL,'the red one is upside down',85,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'AE3821457D4A172DBB4EF2CE8B2F54B56C4859F2940D0CCF55A766E1A22416D1',X'369DCE927B7EF2D43E4CF1B4E82D2EA886A4A9A1C151736F4E6F84A5BCDDF9C7','[{"role":"assistant","parts":[{"type":"text","content":"the red one is upside down"}]}]');
INSERT INTO "records" VALUES(9,1,'usage',NULL,NULL,1796096211823,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'FF95B357FAA3443FBE3A1ED1C6D2CD66696451D931F824CC7EA51AF0B53F06FD',X'74DA7AE9F3ABB97600B33998891157C2DA96C60F4AED4B425D64F780A7E8135E','{"turn":3,"input_tokens":900,"output_tokens":40,"model":"m-1"}');
INSERT INTO "records" VALUES(10,1,'prompt',4,'own',1796096211824,NULL,'turn it',61,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'98E6A46DEDB741748233CE048559F8D4C4CDFB533C2D69B3B23FC4F09B91D9EE',X'468A8CDF457738576ADCDC3E167F534EE07136610D0DA03B417187868294E53B','[{"role":"user","parts":[{"type":"text","content":"turn it"}]}]');
INSERT INTO "records" VALUES(11,1,'assistant',5,'own',1796096211824,NULL,'turned',65,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'834C54538E0A9AD111B354ABEAC024D9B1A1C10D7791A56B2FAFAE179E6493CE',X'A689A15B721F22180B01DCCDBBECD1A640EA8E16825E009BBFD44DEB22DFBCE4','[{"role":"assistant","parts":[{"type":"text","content":"turned"}]}]');
INSERT INTO "records" VALUES(12,1,'prompt',6,'own',1796096211824,NULL,'and the rest?',67,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'5ABC6F41C901EE0F16783AE09863D0CDAC17B308AFF98901748A539926B8135C',X'C96F2DBC63EBE0CBE4DC6717557D2749463F6E19920AD1DEE87DA05E6EDB9C60','[{"role":"user","parts":[{"type":"text","content":"and the rest?"}]}]');
INSERT INTO "records" VALUES(13,1,'assistant',7,'import',1796096211824,NULL,'recorded elsewhere',77,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'7C75487A4A5CAF5244F95AB2540F8E12D0855B6D3CE439DC3F4E765F7EB19DA8',X'9024389126869AEEEBC8817A530502D6CA4D83BD0CFDB5F4F1FF490BA273CD16','[{"role":"assistant","parts":[{"type":"text","content":"recorded elsewhere"}]}]');
INSERT INTO "records" VALUES(14,1,'prompt',8,'own',1796096211824,NULL,'a detour',62,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'65EA61D20380353DBA08D3F20F7E3D97DBF158831A18FF7BEDE50EDBAC0FD1F7',X'03CC30173E0B11522C6AA11B826476167D352D4D6430426F8E1F35035C2C6B9C','[{"role":"user","parts":[{"type":"text","content":"a detour"}]}]');
INSERT INTO "records" VALUES(15,1,'assistant',9,'own',1796096211824,NULL,'no use',65,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'0B9811FF00245FD55716CCC3289F3337CE5891C9024398E8BD62F5950F70DFC6',X'4571F8E94B2D2DA5DB620E6773C8D72DF3806F79F05208C7F5B48BF72443FA38','[{"role":"assistant","parts":[{"type":"text","content":"no use"}]}]');
INSERT INTO "records" VALUES(16,1,'evicted',NULL,NULL,1796096211824,NULL,NULL,169,NULL,2,2,'leaf','model',NULL,NULL,NULL,9,X'0995D6E4BA302CDE577C22E8BF5E197EDE076F079AE6F26491ED6DCC816841EB',X'3F87DB36A16A453D40F04181BE1B35DAB653FED1C3BBCE85DDE5683AA2FAC9AE','{"from":2,"to":2,"note":"leaf","by":"model","reach":9}');
INSERT INTO "records" VALUES(17,1,'evicted',NULL,NULL,1796096211824,NULL,NULL,178,NULL,1,3,'nests','model',NULL,NULL,NULL,9,X'0E61F89FAE20E5264BD7915D53B5D43801C0071E03E04AC3C2F0B6C3AE9A62B4',X'E083FA0862C4A65FED84A3A37DC92AB6FF89F78437A4483793905211841F17CF','{"from":1,"to":3,"note":"nests","by":"model","reach":9}');
INSERT INTO "records" VALUES(18,1,'evicted',NULL,NULL,1796096211825,'rewrite',NULL,181,NULL,1,3,'rewrites','model',NULL,NULL,NULL,9,X'DDBF9D16D4292B9609E730007792D555D13F3DB8A62148031D61684DCB88D767',X'4E607E0CE54A05BB9AB9A94245BCD60110A4EA538C8821C0B8F9DBCA5777682E','{"from":1,"to":3,"note":"rewrites","by":"model","reach":9}');
INSERT INTO "records" VALUES(19,1,'evicted',NULL,NULL,1796096211825,NULL,NULL,177,NULL,5,5,'another leaf','model',NULL,NULL,NULL,9,X'7920CAE8567FABED5109877AC2AB4E14E7DDB121D831C7F78E3E9319F52A68B8',X'294EF7FDE30457A0AAAA00B7A83672D1D4B32DBCD4D39FAA103DB8E26A11175D','{"from":5,"to":5,"note":"another leaf","by":"model","reach":9}');
INSERT INTO "records" VALUES(20,1,'evicted',NULL,NULL,1796096211826,NULL,NULL,194,NULL,1,5,NULL,'harness',NULL,NULL,NULL,9,X'22C296FFC28F759A5DA564FC55CA95E517103BC59895DBA7D62DD917C9BBB499',X'A59EEC7C923ED4A01F672F0065A0FE22F523A6817D16031F4993656049CC2699','{"from":1,"to":5,"note":null,"by":"harness","reach":9}');
INSERT INTO "records" VALUES(21,1,'error',NULL,NULL,1796096211826,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'0384DF1541AABB939C4E0851BC8D2501B73DB8D571543F27CE743AC679569448',X'613EBA8190B2DD9EBEC16BEB1A4F2F753F7D00104E2D34BBD3B8AEC4211D1731','{"text":"the network was away"}');
INSERT INTO "records" VALUES(22,1,'rewound',NULL,NULL,1796096211826,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,8,NULL,NULL,9,X'DB3ECC40257F4BA1261C5AC6BDCE8F51A0E9BE2F6E2DBD2AA93AE7AB9F7D1E86',X'6769793033A2D48C73481419A42A1CDB065AD65FEEBFF3DC4598D944ADCED69C','{"anchor":8,"reach":9}');
INSERT INTO "records" VALUES(23,1,'prompt',10,'own',1796096211827,NULL,'back on the road',70,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'ADFCF4EC0BFA6C1CA280B21CA9DF92B0D1C050A4EEB6D0E55A352644DC2EF608',X'8CC88E91083F434DE2D6CA35E8A009E7F0C7E7928499DCC0C16F4425F52BB6B3','[{"role":"user","parts":[{"type":"text","content":"back on the road"}]}]');
INSERT INTO "records" VALUES(24,1,'assistant',11,'own',1796096211827,NULL,'going',64,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'EF14891754B198D4BE8E3DB194071A964646AEED5F52FF01C5C9C9A476A428FD',X'E38FBDFD45496BA3150072213702742574D64733949EC5477DA18BB2E6D70B8B','[{"role":"assistant","parts":[{"type":"text","content":"going"}]}]');
INSERT INTO "records" VALUES(25,1,'evicted',NULL,NULL,1796096211827,NULL,NULL,195,NULL,6,10,'over a withdrawn run','model',NULL,NULL,NULL,11,X'C81756D6C0181F4BB98D38B2B10634AE3FD13892BFD2BA180585904B87E85823',X'305021D3F29B78A9B9876495D14E4976FA8E0D881C8615E239585319C5DE1FFD','{"from":6,"to":10,"note":"over a withdrawn run","by":"model","reach":11}');
INSERT INTO "records" VALUES(26,1,'prompt',12,'own',1796096211827,NULL,'faster',60,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'19DF9A0A7C60621F13F9A710EC8D684DD68C770CABC915D6588D1D4FB42BBC59',X'DBBFE8342790E3DDDD8E516D47336439318327054D7FEED364E8E5F23E198692','[{"role":"user","parts":[{"type":"text","content":"faster"}]}]');
INSERT INTO "records" VALUES(27,1,'assistant',13,'own',1796096211827,NULL,'too fast',67,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'E2A82E56DAE27D7EF94BBEF86CD1D66CEFDC57172440F8AE2756F53C67439FEA',X'632C9EA1E62EC0D1ACE466BEC37EC82276D9D88B5E4F7B5863474D4872CE96BF','[{"role":"assistant","parts":[{"type":"text","content":"too fast"}]}]');
INSERT INTO "records" VALUES(28,1,'rewound',NULL,NULL,1796096211828,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,13,NULL,NULL,13,X'0D5D961BB69E67CF149273867015D646D8B5FF0994229B1C3D171E27841FB525',X'020442D3ED30CB6BBF5AC83E6400F450197F20CB94A2D0BEF675332D7567A00F','{"anchor":13,"reach":13}');
INSERT INTO "records" VALUES(29,1,'prompt',14,'own',1796096211828,NULL,'slower',60,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'9E0A74C500596942BD4C7CEE9A39A496EEF6E45633F218F5D033E827264BB74B',X'CD645A772E012D3A94637D7A6F0426F8CB7B7F07971660916AF0A13188631FE8','[{"role":"user","parts":[{"type":"text","content":"slower"}]}]');
INSERT INTO "records" VALUES(30,1,'assistant',15,'own',1796096211828,NULL,'trying',197,'["d1"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'642BE05BBB9B40C37FEA051EB11C0F0498201E2D7CFA7BE1BA775C7BABF9090D',X'E4EA1349A9A002D489CE8BB0B8227AE1DB1482B0D080387DDBF600F1157CD8AF','[{"role":"assistant","parts":[{"type":"reasoning","content":"let me see","signature":"c2ln"},{"type":"text","content":"trying"},{"type":"tool_call","id":"d1","name":"ral","arguments":{"cmd":"ls"}}]}]');
INSERT INTO "records" VALUES(31,2,'opened',NULL,NULL,1796096211828,NULL,'child',NULL,NULL,NULL,NULL,NULL,NULL,15,1,NULL,15,X'6CD9E206BFCF506CF597DD18EE3B6AC542DA2AE4E5AF891D88A17D9BE6BD0666',X'BB8090F62BA32C36F62E24FE8C09FF0DBF2A12FBAF1140356D2038E20BED23D1','{"name":"child","parent":1,"reach":15,"withdrawn":15}');
INSERT INTO "records" VALUES(32,3,'opened',NULL,NULL,1796096211828,NULL,'heir',NULL,NULL,NULL,NULL,NULL,NULL,15,1,NULL,15,X'226CFFB29EA27FB2A0D653207E757422AE48462171A3330FB959E6240A5A22F9',X'17EEC5E20E430ACD817E617656262B46CC4F1F0122BB413BF1D4EDA1225CD29C','{"name":"heir","parent":1,"reach":15,"withdrawn":15}');
INSERT INTO "records" VALUES(33,1,'evicted',NULL,NULL,1796096211829,NULL,NULL,183,NULL,11,11,'inside the call','model',NULL,NULL,NULL,15,X'58BE480B76FA87F208594591FB1A531B1DB2017CFC17B0A31336CFDDE8FC4114',X'19B912BD068BFCBD344498B1D9ADD7B3171B875FB17BA1CEFD23AE5E88DA9B46','{"from":11,"to":11,"note":"inside the call","by":"model","reach":15}');
INSERT INTO "records" VALUES(34,1,'tool_results',15,'own',1796096211829,NULL,NULL,89,'["d1"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'8BFA4482E6B36299D87B462E1CBB3901E2E3F530DC9D25DDD1B2CF46A86924FA',X'806AF46DCA41291D7C4209F42064E5CCB7DAB6A767FAFDA5A16FC4B49845B4F6','[{"role":"tool","parts":[{"type":"tool_call_response","id":"d1","response":"half speed"}]}]');
INSERT INTO "records" VALUES(35,1,'assistant',16,'own',1796096211829,NULL,'slow enough',70,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'168B81125D1C780517A2C1473F40BA0D176B536E44CCDA140B6E333367A4761E',X'0201E794491710CE2C4059313EF9598668A3A099D4FFD435904B6AB6D939288F','[{"role":"assistant","parts":[{"type":"text","content":"slow enough"}]}]');
INSERT INTO "records" VALUES(36,2,'assistant',16,'own',1796096211829,NULL,'the child goes on',76,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'CC5A9C021CF419A1A4278910E787E6AE7B958C512E4CF14B78F16429FDDE30F4',X'699538713187831F4529113725643C8BC2196584D669E1D28025349C42314DC9','[{"role":"assistant","parts":[{"type":"text","content":"the child goes on"}]}]');
INSERT INTO "records" VALUES(37,2,'evicted',NULL,NULL,1796096211829,NULL,NULL,191,NULL,12,12,'inherited, evicted here','model',NULL,NULL,NULL,16,X'9ED9E141D7F1403062E68825692007FF6F01E873AC19906119AF098665707DBB',X'A90EFDE0B864771F1990BA937E93AE78C8A768337CDE4E4E09AFFC2ED7CFCFAE','{"from":12,"to":12,"note":"inherited, evicted here","by":"model","reach":16}');
INSERT INTO "records" VALUES(38,2,'prompt',17,'own',1796096211830,NULL,'what now?',63,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'A20524720F0E83D388474769BDB30526002A61082AE14ED703FAC78A762576EF',X'EA73E1807C62459DE626764889EBCDC89920755126AC7A964B6DFA233A964343','[{"role":"user","parts":[{"type":"text","content":"what now?"}]}]');
INSERT INTO "records" VALUES(39,2,'assistant',18,'own',1796096211830,NULL,'asking',197,'["e1"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'D602063FD95E908A47570A18AD87E50158221BEA386E69294F771E19E42BF084',X'81A1404F4838BE5A96D06B767412184BC8EB46EC5B5405506B8CDD2ED7385E41','[{"role":"assistant","parts":[{"type":"reasoning","content":"let me see","signature":"c2ln"},{"type":"text","content":"asking"},{"type":"tool_call","id":"e1","name":"ral","arguments":{"cmd":"ls"}}]}]');
INSERT INTO "records" VALUES(40,4,'opened',NULL,NULL,1796096211830,NULL,'grandchild',NULL,NULL,NULL,NULL,NULL,NULL,18,2,NULL,18,X'D9F3234AF9172094483728CBC5D13D384A9F16B5659B121CDAFCE2D4B1593E77',X'9AB471BFDB128033C2EEA6A6CE3371E3C61F33AE28F9F8A2608E2A43A737CBF2','{"name":"grandchild","parent":2,"reach":18,"withdrawn":18}');
INSERT INTO "records" VALUES(41,2,'tool_results',18,'own',1796096211830,NULL,NULL,82,'["e1"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'07C295D9705E3D2236F358912B21D614AFBCF3C47D9AEB06A09F0AE958B9927D',X'2881FE4F1F16864123E367E30BB17046BEA09FBA80DC2301553C6D474BF5CC2C','[{"role":"tool","parts":[{"type":"tool_call_response","id":"e1","response":"yes"}]}]');
INSERT INTO "records" VALUES(42,4,'cleared',NULL,NULL,1796096211830,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,18,X'E9C4420F7DD89B348967C0CE8FA443EB8F9A85527D7C1B058031C190C299EBD0',X'7A0E469FFF6C682CBB30CF659A40C6FAA77984933B84562E5116409628C2135F','{"reach":18}');
INSERT INTO "records" VALUES(43,4,'prompt',19,'own',1796096211831,NULL,'from nothing',66,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'69FF6E6BF7C8FF4B5D02FDEDD056870AFC151EE0CABD25DB327FCD5AD7761E3A',X'3C029222C5E59A244ADCE91A224AC5217C125EB64AA1D79554DF0DF9A7477AAB','[{"role":"user","parts":[{"type":"text","content":"from nothing"}]}]');
INSERT INTO "records" VALUES(44,5,'opened',NULL,NULL,1796096211831,NULL,'owing',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,X'87E0D9AC2AD77472B914262B0DBCE5BB780FCEFD958C07AD43666C60E7145C05',X'3187DBC018372871FCED3382370A1DAA0C70EC9C254541C1570EB8BD99B20FB4','{"name":"owing","parent":null,"reach":0,"withdrawn":null}');
INSERT INTO "records" VALUES(45,5,'prompt',1,'own',1796096211831,NULL,'do it',59,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'EFB9FFBE634CE71F01CF1DCFCA8F9D85B78C31AEA123A66598B7E6C613767C38',X'BBF878EE4D4D95ECA471DEF0BF519D36672485FA4B8AF7A43573CE77A72B857A','[{"role":"user","parts":[{"type":"text","content":"do it"}]}]');
INSERT INTO "records" VALUES(46,5,'assistant',2,'own',1796096211831,NULL,'doing it',268,'["x1","x2"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'60B69C85EAA9B540B1CEF57C96E38E3ED98412345A68E3CA841FC16F3A65A0DB',X'7167379D8F37F901D10D7DE2D548CFB80EF8CBDB7A42B9724E1101D8E0DE7A4D','[{"role":"assistant","parts":[{"type":"reasoning","content":"let me see","signature":"c2ln"},{"type":"text","content":"doing it"},{"type":"tool_call","id":"x1","name":"ral","arguments":{"cmd":"ls"}},{"type":"tool_call","id":"x2","name":"ral","arguments":{"cmd":"ls"}}]}]');
INSERT INTO "records" VALUES(47,5,'note',NULL,NULL,1796096211831,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,X'BA4F444AB1BBC0EC40FAB636EED465187E53FDB05BAA7F09A4D3A0126AECF511',X'A8AF2AF3ABAB7A90A5B2A07983E521F55F73C65D9BB1EE3C1B3C5B507577B9E1','{"text":"two calls are out"}');
INSERT INTO "records" VALUES(48,6,'opened',NULL,NULL,1796096211831,NULL,'empty',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,X'643143D8657D67A22542E880B28F2441828D22B647A6CEF9D0301862A164ECFC',X'CCE3A633957B4F50055EEBD6887F263C56C26093C943A87CA81B8DACBB76166E','{"name":"empty","parent":null,"reach":0,"withdrawn":null}');
INSERT INTO "records" VALUES(49,6,'cleared',NULL,NULL,1796096211831,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,X'D8545FBA5F6D1DED8EE9F25F273E335E43794C1740D8153B27884F38A9051236',X'36B6C6146BD36BB00494F5E42F44B6854E5C04759ED6328C123357A91E12A113','{"reach":0}');
INSERT INTO "records" VALUES(50,1,'redacted',NULL,NULL,1796096211835,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,3,NULL,X'FB8BE89BA0E6CDED38E3CA79B1D6F11CA8DC72A7A8308B9B7642A7A031BA7376',X'CEFDFDF315489A01F022701B4D9903EFF52AEEAB9D2AC02C1BE107F25A0AEA0C','{"target":3,"part":null,"left":null,"blobs":["61578ad7d8afde50f365251304f0c5e711cfb3f18d4fc2f620f1969bac827f2f"],"reason":"the picture goes"}');
INSERT INTO "records" VALUES(51,1,'redacted',NULL,NULL,1796096211841,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,6,NULL,X'C9DAC62C44DB80B317F4466A44A1B3EEC9E0473F85B029BB9D364ACEAE51EF4D',X'9C25D9736ADF6600FBE631F18AFE5114761116943A092BE43DBD2F7BBE3C6EF0','{"target":6,"part":0,"left":"317b27d0e88b667a95041580a2b6e62fbabc6418bfc94282f67a998b84c7a523","blobs":[],"reason":"a password"}');
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
INSERT INTO "residues" VALUES(16,1,2,2,'leaf','model',169);
INSERT INTO "residues" VALUES(17,1,1,3,'nests','model',178);
INSERT INTO "residues" VALUES(18,1,1,3,'rewrites','model',181);
INSERT INTO "residues" VALUES(19,1,5,5,'another leaf','model',177);
INSERT INTO "residues" VALUES(20,1,1,5,NULL,'harness',194);
INSERT INTO "residues" VALUES(25,1,6,10,'over a withdrawn run','model',195);
INSERT INTO "residues" VALUES(33,1,11,11,'inside the call','model',183);
INSERT INTO "residues" VALUES(37,2,12,12,'inherited, evicted here','model',191);
CREATE TABLE standing (
  log       INTEGER NOT NULL, -- the log whose context it is
  span_to   INTEGER NOT NULL, -- last turn id of the ground, inclusive
  seq       INTEGER NOT NULL, -- record of this log that laid it (of inherited ground: `opened`)
  span_from INTEGER NOT NULL, -- first turn id of the ground
  residue   INTEGER,          -- seq of the residue that stands here; NULL for withdrawn ground
  PRIMARY KEY (log, span_to, seq),
  CONSTRAINT never_inverted CHECK (span_from <= span_to)
) STRICT, WITHOUT ROWID;
INSERT INTO "standing" VALUES(1,5,20,1,20);
INSERT INTO "standing" VALUES(1,10,25,6,25);
INSERT INTO "standing" VALUES(1,11,33,11,33);
INSERT INTO "standing" VALUES(1,13,28,13,NULL);
INSERT INTO "standing" VALUES(2,5,31,1,20);
INSERT INTO "standing" VALUES(2,10,31,6,25);
INSERT INTO "standing" VALUES(2,12,37,12,37);
INSERT INTO "standing" VALUES(2,13,31,13,NULL);
INSERT INTO "standing" VALUES(2,15,31,15,NULL);
INSERT INTO "standing" VALUES(3,5,32,1,20);
INSERT INTO "standing" VALUES(3,10,32,6,25);
INSERT INTO "standing" VALUES(3,13,32,13,NULL);
INSERT INTO "standing" VALUES(3,15,32,15,NULL);
INSERT INTO "standing" VALUES(4,18,42,1,NULL);
CREATE TABLE withdrawals (
  log       INTEGER NOT NULL, -- log that withdrew it
  span_from INTEGER NOT NULL, -- first turn id of the run
  span_to   INTEGER NOT NULL, -- last one, inclusive
  seq       INTEGER NOT NULL, -- record that withdrew it
  PRIMARY KEY (log, span_from),
  CONSTRAINT never_inverted CHECK (span_from <= span_to)
) STRICT, WITHOUT ROWID;
INSERT INTO "withdrawals" VALUES(1,8,9,22);
INSERT INTO "withdrawals" VALUES(1,13,13,28);
INSERT INTO "withdrawals" VALUES(2,15,15,31);
INSERT INTO "withdrawals" VALUES(3,15,15,32);
INSERT INTO "withdrawals" VALUES(4,1,7,42);
INSERT INTO "withdrawals" VALUES(4,10,12,42);
INSERT INTO "withdrawals" VALUES(4,14,14,42);
INSERT INTO "withdrawals" VALUES(4,16,17,42);
INSERT INTO "withdrawals" VALUES(4,18,18,40);
CREATE INDEX records_of_turns ON records (log, turn, seq, kind, origin, weight, label) WHERE turn IS NOT NULL;
CREATE INDEX records_of_others ON records (log, kind, seq) WHERE turn IS NULL;
CREATE UNIQUE INDEX records_by_key ON records (log, key) WHERE key IS NOT NULL;
CREATE INDEX records_by_target ON records (target) WHERE target IS NOT NULL;
CREATE INDEX residues_of_log ON residues (log, span_from, span_to, seq);
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
CREATE TRIGGER lineage_is_one_row BEFORE INSERT ON lineage WHEN EXISTS (SELECT 1 FROM lineage)
BEGIN SELECT RAISE(ABORT, 'L1: a file is one lineage'); END;
CREATE TRIGGER lineage_is_kept BEFORE UPDATE ON lineage
BEGIN SELECT RAISE(ABORT, 'L1: the lineage is never changed'); END;
CREATE TRIGGER lineage_is_not_deleted BEFORE DELETE ON lineage
BEGIN SELECT RAISE(ABORT, 'L1: the lineage is never deleted'); END;
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
CREATE VIEW gaps AS
SELECT
  log,       -- the log
  span_from, -- first turn id of the run
  span_to    -- last one, inclusive; 2^63-2 of the last run
FROM (SELECT log, lag(span_to, 1, 0) OVER (PARTITION BY log ORDER BY span_to) + 1 AS span_from, span_from - 1 AS span_to
        FROM (SELECT log, span_from, span_to FROM standing
              UNION ALL SELECT log, 9223372036854775807, 9223372036854775807 FROM logs))
WHERE span_from <= span_to;
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
CREATE VIEW witnesses AS
SELECT
  seq,          -- the record
  log,          -- the log that recorded it
  kind,         -- usage, door (a door line and the size of its answer), note, error or meta
  key,          -- the writer's idempotency key; NULL for none
  body AS json, -- what was seen
  at_ms         -- Unix milliseconds, as claimed
FROM records WHERE turn IS NULL AND kind IN ('usage', 'door', 'note', 'error', 'meta');
CREATE VIEW redactions AS
SELECT
  seq,                        -- the `redacted` record
  log,                        -- the log that recorded it
  target,                     -- seq of the record that was blanked
  body ->> 'part' AS part,    -- part that was blanked, from 0 over the record's messages; NULL for all of it
  body ->> 'reason' AS reason, -- as given
  at_ms                       -- Unix milliseconds, as claimed
FROM records WHERE turn IS NULL AND kind = 'redacted';
COMMIT;
