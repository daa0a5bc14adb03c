-- +goose Up

-- Where a runner stands in a journal's partition: the last valid record that is in the other tables. It changes only
-- together with them, by compare-and-set on the old position. Where there is no row, nothing was applied.
CREATE TABLE checkpoints (
    journal    text        NOT NULL,
    partition  integer     NOT NULL,
    "offset"   bigint      NOT NULL,
    sequence   bigint      NOT NULL,
    hash       bytea       NOT NULL CHECK (length(hash) = 32),
    time       timestamptz NOT NULL, -- of that record
    PRIMARY KEY (journal, partition)
) WITH (fillfactor = 50);

-- A position every 4,096 records, from where a reader can start without reading the journal from its genesis.
CREATE TABLE anchors (
    journal    text    NOT NULL,
    partition  integer NOT NULL,
    sequence   bigint  NOT NULL,
    "offset"   bigint  NOT NULL,
    hash       bytea   NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (journal, partition, sequence)
);

-- +goose Down
DROP TABLE anchors;
DROP TABLE checkpoints;
