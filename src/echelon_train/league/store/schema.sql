-- A league's tables. Rows of events are only ever added. The ratings alone are derived, and can be computed again.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE members (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('scripted', 'main', 'exploiter', 'past')),
    state TEXT NOT NULL CHECK (state IN ('active', 'retired')),
    parent INTEGER REFERENCES members (id),
    age INTEGER NOT NULL CHECK (age >= 0),        -- decisions of its training
    weights_sha256 TEXT UNIQUE,                   -- of policy.safetensors; also the folder's name
    document_sha256 TEXT,                         -- of checkpoint.json
    created_at TEXT NOT NULL,                     -- UTC, for people to read: the order is that of the ids
    origin TEXT NOT NULL,                         -- JSON object
    CHECK ((kind = 'scripted') = (weights_sha256 IS NULL)),
    CHECK ((weights_sha256 IS NULL) = (document_sha256 IS NULL))
);

-- battle configurations without their rewards, by `battle_hash`
CREATE TABLE configs (
    hash TEXT PRIMARY KEY,
    document TEXT NOT NULL                        -- JSON object
);

CREATE TABLE matches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    first INTEGER NOT NULL REFERENCES members (id),
    second INTEGER NOT NULL REFERENCES members (id) CHECK (second <> first),
    learner INTEGER REFERENCES members (id) CHECK (learner IN (first, second)),
    scenario TEXT NOT NULL,
    config TEXT NOT NULL REFERENCES configs (hash),
    outcomes TEXT NOT NULL,                       -- JSON list: 1, 0 or -1 for the first member, two for each map
    document TEXT NOT NULL,                       -- JSON object: the rest of the match
    content_sha256 TEXT NOT NULL UNIQUE,          -- of all columns above, except id and uuid
    stamp TEXT NOT NULL,                          -- JSON object: versions and hashes that it was played with
    worker TEXT NOT NULL,
    played_at TEXT NOT NULL                       -- UTC, for people to read
);

CREATE INDEX matches_of_first ON matches (first);
CREATE INDEX matches_of_second ON matches (second);

-- rating periods, with all inputs of a period's ratings besides the matches
CREATE TABLE periods (
    number INTEGER PRIMARY KEY CHECK (number >= 1),
    last_match INTEGER NOT NULL,                  -- 0 if there were none yet
    last_member INTEGER NOT NULL,
    tau REAL NOT NULL,
    drifting TEXT NOT NULL,                       -- JSON list of the ids of members still training
    pinned TEXT NOT NULL,                         -- JSON list of the ids of members whose rating is given
    closed_at TEXT NOT NULL                       -- UTC, for people to read
);

CREATE TABLE ratings (
    period INTEGER NOT NULL REFERENCES periods (number),
    member INTEGER NOT NULL REFERENCES members (id),
    rating REAL NOT NULL,
    deviation REAL NOT NULL,
    volatility REAL NOT NULL,
    PRIMARY KEY (period, member)
) WITHOUT ROWID;

-- champions in the order of their reigns
CREATE TABLE promotions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    member INTEGER NOT NULL REFERENCES members (id),
    previous INTEGER REFERENCES members (id) CHECK (previous <> member),
    validation TEXT UNIQUE REFERENCES matches (uuid), -- the match of the two
    period INTEGER NOT NULL REFERENCES periods (number),
    k REAL NOT NULL CHECK (k >= 0),               -- a score is a rating - k x its deviation, after that period
    score REAL NOT NULL,
    previous_score REAL CHECK (previous_score < score),
    promoted_at TEXT NOT NULL,                    -- UTC, for people to read
    CHECK ((previous IS NULL) = (validation IS NULL)),
    CHECK ((previous IS NULL) = (previous_score IS NULL))
);

CREATE TRIGGER members_stay BEFORE DELETE ON members
BEGIN SELECT RAISE(ABORT, 'members are never deleted'); END;

CREATE TRIGGER members_keep_their_identity
BEFORE UPDATE OF id, name, kind, parent, age, weights_sha256, document_sha256, created_at, origin ON members
BEGIN SELECT RAISE(ABORT, 'of a member only the state changes'); END;

CREATE TRIGGER configs_stay BEFORE DELETE ON configs
BEGIN SELECT RAISE(ABORT, 'configs are never deleted'); END;

CREATE TRIGGER configs_keep BEFORE UPDATE ON configs
BEGIN SELECT RAISE(ABORT, 'configs are never changed'); END;

CREATE TRIGGER matches_stay BEFORE DELETE ON matches
BEGIN SELECT RAISE(ABORT, 'matches are never deleted'); END;

CREATE TRIGGER matches_keep BEFORE UPDATE ON matches
BEGIN SELECT RAISE(ABORT, 'matches are never changed'); END;

CREATE TRIGGER periods_stay BEFORE DELETE ON periods
BEGIN SELECT RAISE(ABORT, 'periods are never deleted'); END;

CREATE TRIGGER periods_keep BEFORE UPDATE ON periods
BEGIN SELECT RAISE(ABORT, 'periods are never changed'); END;

CREATE TRIGGER promotions_stay BEFORE DELETE ON promotions
BEGIN SELECT RAISE(ABORT, 'promotions are never deleted'); END;

CREATE TRIGGER promotions_keep BEFORE UPDATE ON promotions
BEGIN SELECT RAISE(ABORT, 'promotions are never changed'); END;
