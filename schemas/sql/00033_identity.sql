-- +goose Up

-- Passwords, even hashed and sealed, stay in the journal.
CREATE TABLE brokers (
    broker   text        PRIMARY KEY,
    name     text        NOT NULL,
    created  timestamptz NOT NULL,
    sequence bigint      NOT NULL
);
COMMENT ON TABLE brokers IS 'Brokers, which are also the tenants of onboarding.';
COMMENT ON COLUMN brokers.broker IS 'Name by which everything else refers to the broker.';
COMMENT ON COLUMN brokers.name IS 'Display name of the broker.';
COMMENT ON COLUMN brokers.created IS 'When the broker was registered, UTC.';
COMMENT ON COLUMN brokers.sequence IS 'Sequence of the record that registered the broker.';

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
COMMENT ON TABLE users IS 'Users who can log in. Passwords, even hashed and sealed, stay in the journal.';
COMMENT ON COLUMN users.username IS 'Name with which the user logs in.';
COMMENT ON COLUMN users.broker IS 'Broker for whom the user acts.';
COMMENT ON COLUMN users.customer_code IS 'Customer whom the user is bound to. NULL if the user acts for all customers of the broker.';
COMMENT ON COLUMN users.scopes IS 'What the user may do.';
COMMENT ON COLUMN users.is_active IS 'Whether the user may log in.';
COMMENT ON COLUMN users.is_verified IS 'Whether the user''s identity was verified.';
COMMENT ON COLUMN users.rate_per_second IS 'Requests per second that the user may send. NULL for the venue''s default.';
COMMENT ON COLUMN users.rate_burst IS 'Requests that the user may send at once. NULL for the venue''s default.';
COMMENT ON COLUMN users.created IS 'When the user was registered, UTC.';
COMMENT ON COLUMN users.updated IS 'When the user was last changed, UTC.';
COMMENT ON COLUMN users.created_sequence IS 'Sequence of the record that registered the user.';
COMMENT ON COLUMN users.sequence IS 'Sequence of the last record that changed the row.';

SELECT track_changes(name) FROM unnest(ARRAY['brokers', 'users']) name;
