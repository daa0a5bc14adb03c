-- +goose Up

-- A copy of what the newest manifest of each archive says, so that an owner can tell what was archived while the bucket is away. Each
-- data folder holds another one. Rows are not made from the log, so a rebuild leaves them.
CREATE TABLE archive_heads (
    journal    text    NOT NULL,
    partition  integer NOT NULL,
    partitions integer NOT NULL,
    journal_id uuid    NOT NULL,
    range      bigint  NOT NULL CHECK (range >= 0),
    manifest   text    NOT NULL CHECK (length(manifest) = 64),
    sequence   bigint  NOT NULL CHECK (sequence > 0),
    hash       bytea   NOT NULL CHECK (length(hash) = 32),
    term       bigint  NOT NULL,
    log_offset bigint  NOT NULL,
    kept       timestamptz(6) NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (journal, partition)
);
COMMENT ON TABLE archive_heads IS 'The newest manifest of each archive, with a full range. A journal without a row has no full range in its archive.';
COMMENT ON COLUMN archive_heads.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN archive_heads.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN archive_heads.partitions IS 'Number of partitions, as in the genesis of the journal.';
COMMENT ON COLUMN archive_heads.journal_id IS 'Identity of the journal, as in its genesis.';
COMMENT ON COLUMN archive_heads.range IS 'Number of the range, from 0. It is also that of the manifest.';
COMMENT ON COLUMN archive_heads.manifest IS 'SHA-256 of the manifest, in hex. The manifest names the one before.';
COMMENT ON COLUMN archive_heads.sequence IS 'Sequence of the first record after the range: a log that was trimmed up to the range begins with it.';
COMMENT ON COLUMN archive_heads.hash IS 'SHA-256 of the last record of the range. An owner that does not find it in the log reports LOG_DIVERGED.';
COMMENT ON COLUMN archive_heads.term IS 'Term that the last record of the range belongs to.';
COMMENT ON COLUMN archive_heads.log_offset IS 'Offset of the last record of the range in the topic that was archived. A hint.';
COMMENT ON COLUMN archive_heads.kept IS 'When the row was written.';
