-- +goose Up

-- What an instrument's prices did in the interval of so many seconds (60, 300, 900, 3600, 14400, 86400) from start on: those
-- of trades, of takeovers and deleveraging none, or the mark or index prices, of which there is neither volume nor turnover.
-- The candles of mark and index prices begin here; perpetua rebuild makes those of before.
DROP TABLE candles;
CREATE TABLE candles (
    symbol   text        NOT NULL,
    price    text        NOT NULL, -- trade, mark or index
    seconds  integer     NOT NULL,
    start    timestamptz NOT NULL,
    open     numeric     NOT NULL,
    high     numeric     NOT NULL,
    low      numeric     NOT NULL,
    close    numeric     NOT NULL,
    volume   numeric     NOT NULL, -- contracts
    turnover numeric     NOT NULL, -- notional
    trades   bigint      NOT NULL,
    PRIMARY KEY (symbol, price, seconds, start)
) WITH (fillfactor = 75);
INSERT INTO candles
SELECT symbol, 'trade', seconds, date_bin(seconds * interval '1 second', time, 'epoch'),
    (array_agg(price ORDER BY sequence, ordinal))[1],
    (array_agg(price ORDER BY price DESC, sequence, ordinal))[1],
    (array_agg(price ORDER BY price, sequence, ordinal))[1],
    (array_agg(price ORDER BY sequence DESC, ordinal DESC))[1],
    sum(amount), sum(notional), count(*)
FROM trades, (VALUES (60), (300), (900), (3600), (14400), (86400)) AS spans (seconds)
WHERE role = 'taker' AND type <> 'auto_deleveraging'
GROUP BY symbol, seconds, date_bin(seconds * interval '1 second', time, 'epoch');

-- When the instrument was listed.
ALTER TABLE instruments ADD COLUMN created timestamptz;
UPDATE instruments i SET created = r.time FROM records r WHERE r.journal = 'trading' AND r.sequence = i.listed_sequence;
ALTER TABLE instruments ALTER COLUMN created SET NOT NULL;

-- +goose Down
ALTER TABLE instruments DROP COLUMN created;

DROP TABLE candles;
CREATE TABLE candles (
    seconds  integer     NOT NULL,
    start    timestamptz NOT NULL,
    symbol   text        NOT NULL,
    open     numeric     NOT NULL,
    high     numeric     NOT NULL,
    low      numeric     NOT NULL,
    close    numeric     NOT NULL,
    volume   numeric     NOT NULL,
    turnover numeric     NOT NULL,
    trades   bigint      NOT NULL,
    PRIMARY KEY (seconds, start, symbol)
) WITH (fillfactor = 75);
INSERT INTO candles
SELECT seconds, date_bin(seconds * interval '1 second', time, 'epoch'), symbol,
    (array_agg(price ORDER BY sequence, ordinal))[1],
    (array_agg(price ORDER BY price DESC, sequence, ordinal))[1],
    (array_agg(price ORDER BY price, sequence, ordinal))[1],
    (array_agg(price ORDER BY sequence DESC, ordinal DESC))[1],
    sum(amount), sum(notional), count(*)
FROM trades, (VALUES (60), (3600)) AS spans (seconds)
WHERE role = 'taker' AND type <> 'auto_deleveraging'
GROUP BY seconds, date_bin(seconds * interval '1 second', time, 'epoch'), symbol;
