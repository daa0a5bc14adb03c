-- +goose Up

-- What was fixed at every funding instant of every instrument, missed ones included.
CREATE TABLE funding_rates (
    sequence         bigint      NOT NULL,
    ordinal          integer     NOT NULL, -- among those of the record
    symbol           text        NOT NULL,
    funding_rate     numeric     NOT NULL, -- what longs pay of what their positions are worth
    index_price      numeric     NOT NULL,
    mark_price       numeric     NOT NULL,
    interval_seconds integer     NOT NULL,
    time             timestamptz NOT NULL, -- the instant
    missed           boolean     NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX funding_rates_by_symbol ON funding_rates (symbol, sequence, ordinal);

-- Of funding rows: what the payment follows from.
ALTER TABLE transactions
    ADD COLUMN funding_rate    numeric,
    ADD COLUMN position_amount numeric,
    ADD COLUMN mark_price      numeric;

-- Whether the index price is too old to be used.
ALTER TABLE prices ADD COLUMN index_stale boolean NOT NULL DEFAULT false;

-- What is in force on each instrument: the operator's status or the guard's, whichever is stricter.
CREATE VIEW instrument_statuses AS
SELECT i.symbol, CASE WHEN i.status = 'open' AND (p.index_price IS NULL OR p.index_stale) THEN 'post_only' ELSE i.status END AS status
FROM instruments i LEFT JOIN prices p USING (symbol);

-- +goose Down
DROP VIEW instrument_statuses;
ALTER TABLE prices DROP COLUMN index_stale;
ALTER TABLE transactions DROP COLUMN funding_rate, DROP COLUMN position_amount, DROP COLUMN mark_price;
DROP TABLE funding_rates;
