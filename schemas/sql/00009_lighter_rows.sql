-- +goose Up

-- What no query uses costs every row: the rows' keys serve as the indexes of the lists that they are read by.

-- The first record at or after a time is found by halving the sequences: times never go back along them.
DROP INDEX records_by_time;

-- Where the client gave the order no name its code stands for it, by which it is found without this index.
DROP INDEX orders_by_reference;
CREATE INDEX orders_by_reference ON orders (customer_code, reference_id, created_sequence) WHERE reference_id <> code::text;
DROP INDEX orders_live;
CREATE INDEX orders_live ON orders (broker, customer_code) WHERE live;

-- Two rows for each trade, the taker's and the maker's. The market's trades are the takers' rows. ordinal is twice the
-- event's place in its record, plus 1 for the maker.
ALTER TABLE trades DROP CONSTRAINT trades_pkey;
DROP INDEX trades_by_customer;
ALTER TABLE trades ADD PRIMARY KEY (customer_code, sequence, ordinal);
CREATE INDEX trades_of_market ON trades (sequence, ordinal) WHERE role = 'taker';
CREATE INDEX trades_of_market_by_symbol ON trades (symbol, sequence, ordinal) WHERE role = 'taker';
DROP TABLE market_trades;
CREATE VIEW market_trades AS
SELECT sequence, ordinal / 2 AS ordinal, code, symbol, price, amount, action, type, time FROM trades WHERE role = 'taker';

-- What was traded of a symbol in the minute (60) or hour (3600) from start on, deleveraging left out.
CREATE TABLE candles (
    seconds  integer     NOT NULL,
    start    timestamptz NOT NULL,
    symbol   text        NOT NULL,
    open     numeric     NOT NULL,
    high     numeric     NOT NULL,
    low      numeric     NOT NULL,
    close    numeric     NOT NULL,
    volume   numeric     NOT NULL, -- contracts
    turnover numeric     NOT NULL, -- notional
    trades   bigint      NOT NULL,
    PRIMARY KEY (seconds, start, symbol)
) WITH (fillfactor = 75);
INSERT INTO candles
SELECT seconds, to_timestamp(floor(extract(epoch FROM time) / seconds) * seconds), symbol,
    (array_agg(price ORDER BY sequence, ordinal))[1],
    (array_agg(price ORDER BY price DESC, sequence, ordinal))[1],
    (array_agg(price ORDER BY price, sequence, ordinal))[1],
    (array_agg(price ORDER BY sequence DESC, ordinal DESC))[1],
    sum(amount), sum(notional), count(*)
FROM trades, (VALUES (60), (3600)) AS spans (seconds)
WHERE role = 'taker' AND type <> 'auto_deleveraging'
GROUP BY 1, 2, 3;

ALTER TABLE transactions DROP CONSTRAINT transactions_pkey;
DROP INDEX transactions_by_customer;
ALTER TABLE transactions ADD PRIMARY KEY (customer_code, sequence, ordinal);
CREATE INDEX transactions_of_transfers ON transactions (customer_code, sequence, ordinal) WHERE reference_id IS NOT NULL;

-- Read as a whole by whoever audits; no query looks one up.
ALTER TABLE venue_postings DROP CONSTRAINT venue_postings_pkey;

-- +goose Down
ALTER TABLE venue_postings ADD PRIMARY KEY (sequence, ordinal);

DROP INDEX transactions_of_transfers;
ALTER TABLE transactions DROP CONSTRAINT transactions_pkey;
ALTER TABLE transactions ADD PRIMARY KEY (sequence, ordinal);
CREATE INDEX transactions_by_customer ON transactions (customer_code, sequence, ordinal);

DROP TABLE candles;

DROP VIEW market_trades;
CREATE TABLE market_trades (
    sequence bigint      NOT NULL,
    ordinal  integer     NOT NULL,
    code     uuid        NOT NULL,
    symbol   text        NOT NULL,
    price    numeric     NOT NULL,
    amount   numeric     NOT NULL,
    action   text        NOT NULL,
    type     text        NOT NULL,
    time     timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
INSERT INTO market_trades
SELECT sequence, ordinal / 2, code, symbol, price, amount, action, type, time FROM trades WHERE role = 'taker';
CREATE INDEX market_trades_by_symbol ON market_trades (symbol, sequence, ordinal);
DROP INDEX trades_of_market_by_symbol;
DROP INDEX trades_of_market;
ALTER TABLE trades DROP CONSTRAINT trades_pkey;
ALTER TABLE trades ADD PRIMARY KEY (sequence, ordinal);
CREATE INDEX trades_by_customer ON trades (customer_code, sequence, ordinal);

DROP INDEX orders_live;
CREATE INDEX orders_live ON orders (broker, customer_code, symbol) WHERE live;
DROP INDEX orders_by_reference;
CREATE INDEX orders_by_reference ON orders (customer_code, reference_id, created_sequence);

CREATE INDEX records_by_time ON records (journal, time, sequence);
