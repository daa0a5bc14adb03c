-- +goose Up

-- No index has a column that changes while an order lives (status, amounts, sequence), so such an update stays in the row's page
-- and touches no index.
CREATE TABLE orders (
    code               uuid        PRIMARY KEY,
    customer_code      text        NOT NULL,
    broker             text        NOT NULL,
    symbol             text        NOT NULL,
    action             text        NOT NULL,
    type               text        NOT NULL,
    status             text        NOT NULL,
    live               boolean     NOT NULL,
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
    created_sequence   bigint      NOT NULL,
    created_ordinal    integer     NOT NULL,
    sequence           bigint      NOT NULL,
    triggered          timestamptz
) WITH (fillfactor = 75);
CREATE INDEX orders_live ON orders (broker, customer_code) WHERE live;
CREATE INDEX orders_by_customer ON orders (customer_code, created_sequence, created_ordinal);
-- An order that the client gave no name has its code for a name. It is found by its code, without this index.
CREATE INDEX orders_by_reference ON orders (customer_code, reference_id, created_sequence) WHERE reference_id <> code::text;
-- Lists of all customers of a broker. Those of all brokers are merged from them.
CREATE INDEX orders_by_broker ON orders (broker, created_sequence, created_ordinal);
COMMENT ON TABLE orders IS 'Every order that was ever accepted or rejected, as the last record left it.';
COMMENT ON COLUMN orders.code IS 'Id of the order.';
COMMENT ON COLUMN orders.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN orders.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN orders.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN orders.action IS 'buy or sell.';
COMMENT ON COLUMN orders.type IS 'Order type, such as limit or market.';
COMMENT ON COLUMN orders.status IS 'open, partially_filled, filled, canceled, expired or rejected.';
COMMENT ON COLUMN orders.live IS 'Whether the status is open or partially_filled.';
COMMENT ON COLUMN orders.amount IS 'Ordered amount in contracts. 0 if cash_amount was ordered.';
COMMENT ON COLUMN orders.filled_amount IS 'Filled amount in contracts.';
COMMENT ON COLUMN orders.cash_amount IS 'Ordered value in the quote currency. NULL if an amount was ordered.';
COMMENT ON COLUMN orders.filled_quote IS 'Sum of price times amount over the fills, in the quote currency.';
COMMENT ON COLUMN orders.limit_price IS 'Limit price. NULL for a market order.';
COMMENT ON COLUMN orders.trigger_price IS 'Price that triggers a stop. NULL for other orders.';
COMMENT ON COLUMN orders.stop_loss_price IS 'Price of the stop loss attached to the order. NULL without one.';
COMMENT ON COLUMN orders.take_profit_price IS 'Price of the take profit attached to the order. NULL without one.';
COMMENT ON COLUMN orders.trigger_price_type IS 'Price that triggers are compared with: trade_price or mark_price. NULL without a trigger.';
COMMENT ON COLUMN orders.average_fill_price IS 'Average price of the fills. NULL before the first.';
COMMENT ON COLUMN orders.time_in_force IS 'GTC, GTD, IOC or FOK.';
COMMENT ON COLUMN orders.expire_time IS 'When a GTD order expires, UTC. NULL for others.';
COMMENT ON COLUMN orders.post_only IS 'Whether the order may only add to the book.';
COMMENT ON COLUMN orders.reduce_only IS 'Whether the order may only reduce a position.';
COMMENT ON COLUMN orders.reference_id IS 'Client''s own id of the order, or the code where the client gave none.';
COMMENT ON COLUMN orders.reason IS 'Why the order was canceled or rejected. NULL for others.';
COMMENT ON COLUMN orders.created IS 'When the order was made, UTC.';
COMMENT ON COLUMN orders.updated IS 'When the order was last changed, UTC.';
COMMENT ON COLUMN orders.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN orders.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN orders.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN orders.triggered IS 'Time at which the stop fired. Null if it has not, and for other orders.';

SELECT track_changes('orders');
