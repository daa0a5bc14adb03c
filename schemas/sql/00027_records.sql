-- +goose Up

-- The data dictionary is the comments, which \d+ in psql shows. Dates and times are UTC; prices and amounts keep the decimals that
-- they came with.

-- A checkpoint changes only together with the other tables, by compare-and-set on the old position. Without a row, nothing was
-- applied.
CREATE TABLE checkpoints (
    journal    text        NOT NULL,
    partition  integer     NOT NULL,
    log_offset bigint      NOT NULL,
    sequence   bigint      NOT NULL,
    hash       bytea       NOT NULL CHECK (length(hash) = 32),
    time       timestamptz NOT NULL,
    PRIMARY KEY (journal, partition)
) WITH (fillfactor = 50);
COMMENT ON TABLE checkpoints IS 'How far the rows of this database are in each journal: the position of the last record applied.';
COMMENT ON COLUMN checkpoints.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN checkpoints.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN checkpoints.log_offset IS 'Kafka offset at which the record was found. A copy of the log may have others.';
COMMENT ON COLUMN checkpoints.sequence IS 'Sequence of the last record applied.';
COMMENT ON COLUMN checkpoints.hash IS 'SHA-256 of the value of the last record applied.';
COMMENT ON COLUMN checkpoints.time IS 'Time of the last record applied, UTC.';

CREATE TABLE anchors (
    journal    text    NOT NULL,
    partition  integer NOT NULL,
    sequence   bigint  NOT NULL,
    log_offset bigint  NOT NULL,
    hash       bytea   NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (journal, partition, sequence)
);
COMMENT ON TABLE anchors IS 'A position every 4,096 records, from which a reader can start in the middle of a journal.';
COMMENT ON COLUMN anchors.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN anchors.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN anchors.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN anchors.log_offset IS 'Kafka offset at which the record was found. A copy of the log may have others.';
COMMENT ON COLUMN anchors.hash IS 'SHA-256 of the record''s value, which the next record repeats.';

-- The first record at or after a time is found by halving the sequences: times never go back along them.
CREATE TABLE records (
    journal       text        NOT NULL,
    sequence      bigint      NOT NULL,
    log_offset    bigint      NOT NULL,
    hash          bytea       NOT NULL CHECK (length(hash) = 32),
    time          timestamptz NOT NULL,
    outcome       text        NOT NULL,
    command_id    uuid        NOT NULL,
    command_type  text        NOT NULL,
    sub           text,
    broker        text,
    customer_code text,
    system        text,
    PRIMARY KEY (journal, sequence)
);
CREATE INDEX records_by_command ON records (command_id);
COMMENT ON TABLE records IS 'One row for each valid record of each journal: who commanded what, and the outcome. The record itself is in the log.';
COMMENT ON COLUMN records.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN records.sequence IS 'Sequence of the record in its journal, from 0 without gaps.';
COMMENT ON COLUMN records.log_offset IS 'Kafka offset at which the record was found. A copy of the log may have others.';
COMMENT ON COLUMN records.hash IS 'SHA-256 of the record''s value, which the next record repeats.';
COMMENT ON COLUMN records.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN records.outcome IS 'accepted or rejected.';
COMMENT ON COLUMN records.command_id IS 'Id of the command, as the client was given it.';
COMMENT ON COLUMN records.command_type IS 'Type of the command, such as order.place.';
COMMENT ON COLUMN records.sub IS 'User who sent the command. NULL if the venue itself did.';
COMMENT ON COLUMN records.broker IS 'Broker of that user. NULL if the venue itself sent the command.';
COMMENT ON COLUMN records.customer_code IS 'Customer whom that user is bound to. NULL if the user is not bound to one.';
COMMENT ON COLUMN records.system IS 'Part of the venue that sent the command, such as engine. NULL if a user did.';

SELECT track_changes(name) FROM unnest(ARRAY['anchors', 'checkpoints', 'records']) name;
