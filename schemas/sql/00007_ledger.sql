-- +goose Up

-- Movements on customers' accounts. A withdrawal's row changes in place when it is completed or canceled; every other
-- row stays as it is. (sequence, ordinal) is the row's first appearance: its place in every list.
CREATE TABLE transactions (
    sequence         bigint      NOT NULL,
    ordinal          integer     NOT NULL,
    code             uuid        NOT NULL, -- shared by a trade, its row and its fee's row
    customer_code    text        NOT NULL,
    broker           text        NOT NULL,
    type             text        NOT NULL,
    currency         text        NOT NULL,
    amount           numeric     NOT NULL, -- signed
    status           text        NOT NULL,
    balance          numeric,              -- after it, of completed ones
    symbol           text,
    order_code       uuid,
    reference_id     text,                 -- of deposits and withdrawals
    created          timestamptz NOT NULL,
    updated          timestamptz NOT NULL,
    changed_sequence bigint      NOT NULL, -- of the record that changed it last
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX transactions_by_customer ON transactions (customer_code, sequence, ordinal);
CREATE UNIQUE INDEX transactions_by_code ON transactions (code) WHERE reference_id IS NOT NULL;
CREATE INDEX transactions_by_reference ON transactions (customer_code, type, reference_id) WHERE reference_id IS NOT NULL;

-- The other side of every movement: postings on the venue's own accounts.
CREATE TABLE venue_postings (
    sequence   bigint      NOT NULL,
    ordinal    integer     NOT NULL,
    account    text        NOT NULL,
    type       text        NOT NULL,
    currency   text        NOT NULL,
    amount     numeric     NOT NULL,
    balance    numeric     NOT NULL,
    symbol     text,
    order_code uuid,
    time       timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);

CREATE TABLE balances (
    customer_code text        NOT NULL,
    currency      text        NOT NULL,
    broker        text        NOT NULL,
    balance       numeric     NOT NULL,
    updated       timestamptz NOT NULL,
    sequence      bigint      NOT NULL,
    PRIMARY KEY (customer_code, currency)
) WITH (fillfactor = 75);

CREATE TABLE venue_balances (
    account  text        NOT NULL,
    currency text        NOT NULL,
    balance  numeric     NOT NULL,
    updated  timestamptz NOT NULL,
    sequence bigint      NOT NULL,
    PRIMARY KEY (account, currency)
) WITH (fillfactor = 50);

-- A closed position stays as a row of amount zero.
CREATE TABLE positions (
    customer_code text        NOT NULL,
    symbol        text        NOT NULL,
    broker        text        NOT NULL,
    amount        numeric     NOT NULL, -- signed: negative is short
    cost          numeric     NOT NULL,
    entry_price   numeric,
    updated       timestamptz NOT NULL,
    sequence      bigint      NOT NULL,
    PRIMARY KEY (customer_code, symbol)
) WITH (fillfactor = 75);

-- +goose Down
DROP TABLE positions;
DROP TABLE venue_balances;
DROP TABLE balances;
DROP TABLE venue_postings;
DROP TABLE transactions;
