-- +goose Up

CREATE TABLE instruments (
    symbol                   text        PRIMARY KEY,
    underlying               text        NOT NULL,
    quote_currency           text        NOT NULL,
    settlement_currency      text        NOT NULL,
    status                   text        NOT NULL,
    price_tick               numeric     NOT NULL,
    amount_step              numeric     NOT NULL,
    min_amount               numeric     NOT NULL,
    max_amount               numeric     NOT NULL,
    contract_size            numeric     NOT NULL,
    init_margin_req          numeric     NOT NULL,
    maint_margin_req         numeric     NOT NULL,
    max_leverage             integer     NOT NULL,
    funding_interval_seconds integer     NOT NULL,
    price_band               numeric     NOT NULL,
    limit_band               numeric     NOT NULL,
    maker_fee                numeric     NOT NULL,
    taker_fee                numeric     NOT NULL,
    index_stale_seconds      integer     NOT NULL,
    tiers                    json        NOT NULL,
    listed_sequence          bigint      NOT NULL,
    sequence                 bigint      NOT NULL,
    created                  timestamptz NOT NULL
);
COMMENT ON TABLE instruments IS 'Every instrument that was ever listed.';
COMMENT ON COLUMN instruments.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN instruments.underlying IS 'Asset whose price the contract follows.';
COMMENT ON COLUMN instruments.quote_currency IS 'Currency of prices.';
COMMENT ON COLUMN instruments.settlement_currency IS 'Currency of margin, fees and profit.';
COMMENT ON COLUMN instruments.status IS 'Status that the operator set: open, post_only, cancel_only, trade_halt or withdrawn. The status in force is in instrument_statuses.';
COMMENT ON COLUMN instruments.price_tick IS 'Smallest price step.';
COMMENT ON COLUMN instruments.amount_step IS 'Smallest step of order amounts, in contracts.';
COMMENT ON COLUMN instruments.min_amount IS 'Smallest order amount, in contracts.';
COMMENT ON COLUMN instruments.max_amount IS 'Largest order amount, in contracts.';
COMMENT ON COLUMN instruments.contract_size IS 'Units of the underlying in one contract.';
COMMENT ON COLUMN instruments.init_margin_req IS 'Initial margin requirement in percent, before tiers.';
COMMENT ON COLUMN instruments.maint_margin_req IS 'Maintenance margin requirement in percent, before tiers.';
COMMENT ON COLUMN instruments.max_leverage IS 'Highest leverage allowed.';
COMMENT ON COLUMN instruments.funding_interval_seconds IS 'Seconds between two funding instants.';
COMMENT ON COLUMN instruments.price_band IS 'Distance from the mark price, in percent, within which market orders trade.';
COMMENT ON COLUMN instruments.limit_band IS 'Distance in percent by which a limit price may cross the mark price.';
COMMENT ON COLUMN instruments.maker_fee IS 'Default maker fee in basis points. Negative is a rebate.';
COMMENT ON COLUMN instruments.taker_fee IS 'Default taker fee in basis points.';
COMMENT ON COLUMN instruments.index_stale_seconds IS 'Age in seconds from which the index price is too old to use.';
COMMENT ON COLUMN instruments.tiers IS 'Margin tiers by position size, as the journal has them.';
COMMENT ON COLUMN instruments.listed_sequence IS 'Sequence of the record that listed the instrument. Listings are in this order.';
COMMENT ON COLUMN instruments.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN instruments.created IS 'When the instrument was listed, UTC.';

CREATE TABLE prices (
    symbol      text        PRIMARY KEY,
    index_price numeric,
    mark_price  numeric,
    index_time  timestamptz,
    last_price  numeric,
    last_time   timestamptz,
    index_stale boolean     NOT NULL DEFAULT false
) WITH (fillfactor = 50);
COMMENT ON TABLE prices IS 'The last prices of each instrument.';
COMMENT ON COLUMN prices.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN prices.index_price IS 'Last index price. NULL before the first.';
COMMENT ON COLUMN prices.mark_price IS 'Last mark price. NULL before the first.';
COMMENT ON COLUMN prices.index_time IS 'Time of the last index price, UTC. NULL before the first.';
COMMENT ON COLUMN prices.last_price IS 'Price of the last trade. NULL before the first.';
COMMENT ON COLUMN prices.last_time IS 'Time of the last trade, UTC. NULL before the first.';
COMMENT ON COLUMN prices.index_stale IS 'Whether the index price is too old to use.';

CREATE VIEW instrument_statuses AS
SELECT i.symbol, CASE WHEN i.status = 'open' AND (p.index_price IS NULL OR p.index_stale) THEN 'post_only' ELSE i.status END AS status
FROM instruments i LEFT JOIN prices p USING (symbol);
COMMENT ON VIEW instrument_statuses IS 'View of the status in force for each instrument: the operator''s, or post_only while there is no fresh index price.';
COMMENT ON COLUMN instrument_statuses.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN instrument_statuses.status IS 'Status in force.';

CREATE TABLE candles (
    symbol   text        NOT NULL,
    price    text        NOT NULL,
    seconds  integer     NOT NULL,
    start    timestamptz NOT NULL,
    open     numeric     NOT NULL,
    high     numeric     NOT NULL,
    low      numeric     NOT NULL,
    close    numeric     NOT NULL,
    volume   numeric     NOT NULL,
    turnover numeric     NOT NULL,
    trades   bigint      NOT NULL,
    PRIMARY KEY (symbol, price, seconds, start)
) WITH (fillfactor = 75);
COMMENT ON TABLE candles IS 'Open, high, low and close of each instrument by interval.';
COMMENT ON COLUMN candles.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN candles.price IS 'Price that the candle is made of: trade, mark or index.';
COMMENT ON COLUMN candles.seconds IS 'Length of the interval in seconds: 60, 300, 900, 3600, 14400 or 86400.';
COMMENT ON COLUMN candles.start IS 'Beginning of the interval, UTC.';
COMMENT ON COLUMN candles.open IS 'First price in the interval.';
COMMENT ON COLUMN candles.high IS 'Highest price in the interval.';
COMMENT ON COLUMN candles.low IS 'Lowest price in the interval.';
COMMENT ON COLUMN candles.close IS 'Last price in the interval.';
COMMENT ON COLUMN candles.volume IS 'Traded contracts. 0 for mark and index prices.';
COMMENT ON COLUMN candles.turnover IS 'Traded value in the quote currency. 0 for mark and index prices.';
COMMENT ON COLUMN candles.trades IS 'Number of trades in the interval. 0 for mark and index prices.';

CREATE TABLE funding_rates (
    sequence         bigint      NOT NULL,
    ordinal          integer     NOT NULL,
    symbol           text        NOT NULL,
    funding_rate     numeric     NOT NULL,
    index_price      numeric     NOT NULL,
    mark_price       numeric     NOT NULL,
    interval_seconds integer     NOT NULL,
    time             timestamptz NOT NULL,
    missed           boolean     NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX funding_rates_by_symbol ON funding_rates (symbol, sequence, ordinal);
COMMENT ON TABLE funding_rates IS 'Rate fixed at each funding instant of each instrument, missed instants included.';
COMMENT ON COLUMN funding_rates.sequence IS 'Sequence of the record that fixed the rate.';
COMMENT ON COLUMN funding_rates.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN funding_rates.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN funding_rates.funding_rate IS 'Fraction of the position''s value that longs pay to shorts. Negative if shorts pay.';
COMMENT ON COLUMN funding_rates.index_price IS 'Index price at the instant.';
COMMENT ON COLUMN funding_rates.mark_price IS 'Mark price at the instant.';
COMMENT ON COLUMN funding_rates.interval_seconds IS 'Seconds since the instant before.';
COMMENT ON COLUMN funding_rates.time IS 'The funding instant, UTC.';
COMMENT ON COLUMN funding_rates.missed IS 'Whether the instant was missed, so that nobody paid.';

SELECT track_changes(name) FROM unnest(ARRAY['candles', 'funding_rates', 'instruments', 'prices']) name;
