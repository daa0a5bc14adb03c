-- +goose Up

-- One row for each record of a journal.
CREATE TABLE records (
    journal       text        NOT NULL,
    sequence      bigint      NOT NULL,
    "offset"      bigint      NOT NULL,
    hash          bytea       NOT NULL CHECK (length(hash) = 32),
    time          timestamptz NOT NULL,
    outcome       text        NOT NULL,
    command_id    uuid        NOT NULL,
    command_type  text        NOT NULL,
    sub           text,
    broker        text,
    customer_code text,
    system        text, -- the actor where no user is: "engine"
    PRIMARY KEY (journal, sequence)
);
CREATE INDEX records_taken ON records (journal, sequence) WHERE command_type = 'journal.taken';
CREATE INDEX records_by_command ON records (command_id);
-- Times never go back along the sequence, so this finds the sequences between two times.
CREATE INDEX records_by_time ON records (journal, time, sequence);

-- +goose Down
DROP TABLE records;
