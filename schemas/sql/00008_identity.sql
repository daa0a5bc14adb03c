-- +goose Up

CREATE TABLE brokers (
    broker   text        PRIMARY KEY,
    name     text        NOT NULL,
    created  timestamptz NOT NULL,
    sequence bigint      NOT NULL -- of the record that made it
);

-- Who can log in. Passwords, even hashed and sealed, stay in the journal.
CREATE TABLE users (
    username         text        PRIMARY KEY,
    broker           text        NOT NULL,
    customer_code    text,
    scopes           text[]      NOT NULL,
    is_active        boolean     NOT NULL,
    is_verified      boolean     NOT NULL,
    rate_per_second  bigint,
    rate_burst       bigint,
    created          timestamptz NOT NULL,
    updated          timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    sequence         bigint      NOT NULL
);

-- +goose Down
DROP TABLE users;
DROP TABLE brokers;
