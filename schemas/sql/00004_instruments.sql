-- +goose Up

-- Every instrument that was ever listed; the status withdrawn takes it out of listings.
CREATE TABLE instruments (
    symbol                   text    PRIMARY KEY,
    underlying               text    NOT NULL,
    quote_currency           text    NOT NULL,
    settlement_currency      text    NOT NULL,
    status                   text    NOT NULL, -- as the operator set it
    price_tick               numeric NOT NULL,
    amount_step              numeric NOT NULL,
    min_amount               numeric NOT NULL,
    max_amount               numeric NOT NULL,
    contract_size            numeric NOT NULL,
    init_margin_req          numeric NOT NULL,
    maint_margin_req         numeric NOT NULL,
    max_leverage             integer NOT NULL,
    funding_interval_seconds integer NOT NULL,
    price_band               numeric NOT NULL,
    limit_band               numeric NOT NULL,
    maker_fee                numeric NOT NULL,
    taker_fee                numeric NOT NULL,
    index_stale_seconds      integer NOT NULL,
    tiers                    json    NOT NULL, -- as in the journal
    listed_sequence          bigint  NOT NULL, -- of the record that listed it; listings are in this order
    sequence                 bigint  NOT NULL  -- of its last change
);

-- The last prices of each instrument.
CREATE TABLE prices (
    symbol        text PRIMARY KEY,
    index_price   numeric,
    mark_price    numeric,
    index_time    timestamptz,
    last_price    numeric,
    last_time     timestamptz
) WITH (fillfactor = 50);

-- +goose Down
DROP TABLE prices;
DROP TABLE instruments;
