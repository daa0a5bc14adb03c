-- +goose Up

-- Two rows for each trade, the taker's and the maker's. ordinal is twice the position of the event in its record, plus 1 for the
-- maker. What the insurance fund takes over from a liquidation, and what is deleveraged, has no order on either side.
CREATE TABLE trades (
    sequence      bigint      NOT NULL,
    ordinal       integer     NOT NULL,
    code          uuid        NOT NULL,
    order_code    uuid,
    customer_code text        NOT NULL,
    broker        text        NOT NULL,
    symbol        text        NOT NULL,
    action        text        NOT NULL,
    price         numeric     NOT NULL,
    amount        numeric     NOT NULL,
    notional      numeric     NOT NULL,
    fee           numeric     NOT NULL,
    fee_currency  text        NOT NULL,
    role          text        NOT NULL,
    type          text        NOT NULL,
    reference_id  text,
    time          timestamptz NOT NULL,
    PRIMARY KEY (customer_code, sequence, ordinal)
);
CREATE INDEX trades_of_market ON trades (sequence, ordinal) WHERE role = 'taker';
CREATE INDEX trades_of_market_by_symbol ON trades (symbol, sequence, ordinal) WHERE role = 'taker';
CREATE INDEX trades_by_broker ON trades (broker, sequence, ordinal);
COMMENT ON TABLE trades IS 'The sides of all trades: two rows for each, the taker''s and the maker''s.';
COMMENT ON COLUMN trades.sequence IS 'Sequence of the record that made the trade.';
COMMENT ON COLUMN trades.ordinal IS 'Twice the trade''s position in its record, plus 1 for the maker''s side.';
COMMENT ON COLUMN trades.code IS 'Id of the trade, the same for both sides.';
COMMENT ON COLUMN trades.order_code IS 'Order of this side. NULL for a takeover or deleveraging, which has no orders.';
COMMENT ON COLUMN trades.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN trades.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN trades.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN trades.action IS 'What this side did: buy or sell.';
COMMENT ON COLUMN trades.price IS 'Price of the trade.';
COMMENT ON COLUMN trades.amount IS 'Amount in contracts.';
COMMENT ON COLUMN trades.notional IS 'Value of the trade in the quote currency.';
COMMENT ON COLUMN trades.fee IS 'Fee of this side. Negative is a rebate.';
COMMENT ON COLUMN trades.fee_currency IS 'Currency of the fee.';
COMMENT ON COLUMN trades.role IS 'taker or maker.';
COMMENT ON COLUMN trades.type IS 'trade, liquidation or auto_deleveraging.';
COMMENT ON COLUMN trades.reference_id IS 'Client''s own id of the order. NULL without an order.';
COMMENT ON COLUMN trades.time IS 'Time of the trade, UTC.';

-- The market's trades are the takers' rows.
CREATE VIEW market_trades AS
SELECT sequence, ordinal / 2 AS ordinal, code, symbol, price, amount, action, type, time FROM trades WHERE role = 'taker';
COMMENT ON VIEW market_trades IS 'View of all trades without the customers: one row for each.';
COMMENT ON COLUMN market_trades.sequence IS 'Sequence of the record that made the trade.';
COMMENT ON COLUMN market_trades.ordinal IS 'Position of the trade in its record.';
COMMENT ON COLUMN market_trades.code IS 'Id of the trade.';
COMMENT ON COLUMN market_trades.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN market_trades.price IS 'Price of the trade.';
COMMENT ON COLUMN market_trades.amount IS 'Amount in contracts.';
COMMENT ON COLUMN market_trades.action IS 'What the taker did: buy or sell.';
COMMENT ON COLUMN market_trades.type IS 'trade, liquidation or auto_deleveraging.';
COMMENT ON COLUMN market_trades.time IS 'Time of the trade, UTC.';

SELECT track_changes('trades');
