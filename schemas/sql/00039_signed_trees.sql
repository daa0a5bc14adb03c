-- +goose Up

-- The signer of a transparency log records each tree here before it signs it, by compare-and-set. Unlike all other tables, this
-- one is not computed from the log: a row is never deleted, not even when the log is forgotten.
CREATE TABLE signed_trees (
    origin     text    PRIMARY KEY,
    journal    text    NOT NULL,
    partition  integer NOT NULL,
    size       bigint  NOT NULL CHECK (size > 0),
    root       text    NOT NULL CHECK (length(root) = 44),
    log_offset bigint  NOT NULL,
    hash       bytea   NOT NULL CHECK (length(hash) = 32),
    forgotten  boolean NOT NULL DEFAULT false,
    signed     timestamptz(6) NOT NULL DEFAULT clock_timestamp(),
    checkpoint text,
    verifier   text,
    CHECK ((checkpoint IS NULL) = (verifier IS NULL))
);
COMMENT ON TABLE signed_trees IS 'The largest tree of each transparency log that was signed or may have been. Rows are never deleted.';
COMMENT ON COLUMN signed_trees.origin IS 'Origin of the log: <host>/tlog/<journal>/<partition>/<journal id>.';
COMMENT ON COLUMN signed_trees.journal IS 'Journal whose records are the leaves.';
COMMENT ON COLUMN signed_trees.partition IS 'Partition of the journal.';
COMMENT ON COLUMN signed_trees.size IS 'Number of leaves: the sequence of the last record, plus one.';
COMMENT ON COLUMN signed_trees.root IS 'Root of the tree (RFC 6962) in base64, as in a checkpoint.';
COMMENT ON COLUMN signed_trees.log_offset IS 'Offset at which the last record was last seen in the log.';
COMMENT ON COLUMN signed_trees.hash IS 'SHA-256 of the last record. An owner that does not find it in the log reports LOG_DIVERGED.';
COMMENT ON COLUMN signed_trees.forgotten IS 'The log was forgotten since: owners do not look for the last record. The signer still signs no tree that contradicts this one.';
COMMENT ON COLUMN signed_trees.signed IS 'When the tree was recorded.';
COMMENT ON COLUMN signed_trees.checkpoint IS 'The last checkpoint that was published: a signed note, of this size or of a smaller one.';
COMMENT ON COLUMN signed_trees.verifier IS 'Keys that verify the checkpoint, in the form of verifier keys of signed notes: one a line, the newest first.';
