-- +goose Up

-- A copy of where each trimmed log begins. The data folders and the newest archive manifest hold others; the newest counts.
-- Rows are not made from the log, so a rebuild leaves them.
CREATE TABLE bases (
    journal    text    NOT NULL,
    partition  integer NOT NULL,
    partitions integer NOT NULL,
    journal_id uuid    NOT NULL,
    sequence   bigint  NOT NULL CHECK (sequence > 0),
    hash       bytea   NOT NULL CHECK (length(hash) = 32),
    term       bigint  NOT NULL,
    PRIMARY KEY (journal, partition)
);
COMMENT ON TABLE bases IS 'Where the topic of a journal begins, if records were trimmed that the archive holds. A journal without a row begins with its genesis.';
COMMENT ON COLUMN bases.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN bases.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN bases.partitions IS 'Number of partitions, as in the genesis of the journal.';
COMMENT ON COLUMN bases.journal_id IS 'Identity of the journal, as in its genesis.';
COMMENT ON COLUMN bases.sequence IS 'Sequence of the first record that the topic must hold.';
COMMENT ON COLUMN bases.hash IS 'SHA-256 of the value of the record before it, which the first record names as prev.';
COMMENT ON COLUMN bases.term IS 'Term that the record before it belongs to.';
