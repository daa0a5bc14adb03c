-- +goose Up

-- The trades of customers: two rows for each trade, the taker's and the maker's. ordinal is twice the event's place in
-- its record, plus 1 for the maker.
CREATE TABLE trades (
    sequence      bigint      NOT NULL,
    ordinal       integer     NOT NULL,
    code          uuid        NOT NULL,
    order_code    uuid        NOT NULL,
    customer_code text        NOT NULL,
    broker        text        NOT NULL,
    symbol        text        NOT NULL,
    action        text        NOT NULL,
    price         numeric     NOT NULL,
    amount        numeric     NOT NULL,
    notional      numeric     NOT NULL,
    fee           numeric     NOT NULL, -- negative: a rebate
    fee_currency  text        NOT NULL,
    role          text        NOT NULL,
    type          text        NOT NULL,
    reference_id  text        NOT NULL, -- of the order
    time          timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX trades_by_customer ON trades (customer_code, sequence, ordinal);

-- The same trades without names. ordinal is the event's place in its record.
CREATE TABLE market_trades (
    sequence bigint      NOT NULL,
    ordinal  integer     NOT NULL,
    code     uuid        NOT NULL,
    symbol   text        NOT NULL,
    price    numeric     NOT NULL,
    amount   numeric     NOT NULL,
    action   text        NOT NULL, -- the taker's
    type     text        NOT NULL,
    time     timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX market_trades_by_symbol ON market_trades (symbol, sequence, ordinal);

-- +goose Down
DROP TABLE market_trades;
DROP TABLE trades;
