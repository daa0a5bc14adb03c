-- +goose Up

-- Every order there ever was, as it is after the last record that changed it.
CREATE TABLE orders (
    code               uuid        PRIMARY KEY,
    customer_code      text        NOT NULL,
    broker             text        NOT NULL,
    symbol             text        NOT NULL,
    action             text        NOT NULL,
    type               text        NOT NULL,
    status             text        NOT NULL,
    live               boolean     NOT NULL, -- the status is open or partially_filled
    amount             numeric     NOT NULL,
    filled_amount      numeric     NOT NULL,
    cash_amount        numeric,
    filled_quote       numeric     NOT NULL,
    limit_price        numeric,
    trigger_price      numeric,
    stop_loss_price    numeric,
    take_profit_price  numeric,
    trigger_price_type text,
    average_fill_price numeric,
    time_in_force      text        NOT NULL,
    expire_time        timestamptz,
    post_only          boolean     NOT NULL,
    reduce_only        boolean     NOT NULL,
    reference_id       text        NOT NULL,
    reason             text,
    created            timestamptz NOT NULL,
    updated            timestamptz NOT NULL,
    created_sequence   bigint      NOT NULL, -- of the record that made it, with its event's place there: the order's
    created_ordinal    integer     NOT NULL, -- place in every list, which never changes
    sequence           bigint      NOT NULL  -- of the record that changed it last
) WITH (fillfactor = 75);
-- No index holds what changes while an order lives (status, amounts, sequence), so that such updates stay in the row's
-- page and touch no index.
CREATE INDEX orders_live ON orders (broker, customer_code, symbol) WHERE live;
CREATE INDEX orders_by_customer ON orders (customer_code, created_sequence, created_ordinal);
CREATE INDEX orders_by_reference ON orders (customer_code, reference_id, created_sequence);

-- +goose Down
DROP TABLE orders;
