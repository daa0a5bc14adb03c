-- +goose Up

-- A withdrawal's row changes in place when it is completed or canceled. All other rows stay as they are. (sequence, ordinal) is the
-- row's first appearance and its position in every list.
CREATE TABLE transactions (
    sequence         bigint      NOT NULL,
    ordinal          integer     NOT NULL,
    code             uuid        NOT NULL,
    customer_code    text        NOT NULL,
    broker           text        NOT NULL,
    type             text        NOT NULL,
    currency         text        NOT NULL,
    amount           numeric     NOT NULL,
    status           text        NOT NULL,
    balance          numeric,
    symbol           text,
    order_code       uuid,
    reference_id     text,
    created          timestamptz NOT NULL,
    updated          timestamptz NOT NULL,
    changed_sequence bigint      NOT NULL,
    funding_rate     numeric,
    position_amount  numeric,
    mark_price       numeric,
    PRIMARY KEY (customer_code, sequence, ordinal)
);
CREATE UNIQUE INDEX transactions_by_code ON transactions (code) WHERE reference_id IS NOT NULL;
CREATE INDEX transactions_of_transfers ON transactions (customer_code, sequence, ordinal) WHERE reference_id IS NOT NULL;
CREATE INDEX transactions_by_broker ON transactions (broker, sequence, ordinal);
COMMENT ON TABLE transactions IS 'Movements on customers'' accounts: deposits, withdrawals, trades, fees, funding and settlement. Completed ones sum to the balance.';
COMMENT ON COLUMN transactions.sequence IS 'Sequence of the record in which the movement first appeared.';
COMMENT ON COLUMN transactions.ordinal IS 'Position of the movement in that record.';
COMMENT ON COLUMN transactions.code IS 'Id of the transaction. A trade and its fee share the trade''s.';
COMMENT ON COLUMN transactions.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN transactions.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN transactions.type IS 'Kind of movement, such as deposit, withdrawal, trade, trade_fee or funding.';
COMMENT ON COLUMN transactions.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN transactions.amount IS 'Amount, negative if it leaves the account.';
COMMENT ON COLUMN transactions.status IS 'pending, completed or canceled. Only withdrawals change it.';
COMMENT ON COLUMN transactions.balance IS 'Balance after the movement. NULL unless completed.';
COMMENT ON COLUMN transactions.symbol IS 'Instrument. NULL for deposits and withdrawals.';
COMMENT ON COLUMN transactions.order_code IS 'Order that caused the movement. NULL without one.';
COMMENT ON COLUMN transactions.reference_id IS 'Client''s own id of a deposit or withdrawal. NULL for other movements.';
COMMENT ON COLUMN transactions.created IS 'When the movement first appeared, UTC.';
COMMENT ON COLUMN transactions.updated IS 'When the movement was last changed, UTC.';
COMMENT ON COLUMN transactions.changed_sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN transactions.funding_rate IS 'Funding rate of a funding payment. NULL for other movements.';
COMMENT ON COLUMN transactions.position_amount IS 'Position that a funding payment is for, in contracts. NULL for other movements.';
COMMENT ON COLUMN transactions.mark_price IS 'Mark price of a funding payment. NULL for other movements.';

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
COMMENT ON TABLE venue_postings IS 'The other side of every movement: postings on the venue''s own accounts. With the completed transactions of a record they sum to 0.';
COMMENT ON COLUMN venue_postings.sequence IS 'Sequence of the record that made the posting.';
COMMENT ON COLUMN venue_postings.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN venue_postings.account IS 'Account of the venue: external, fees, insurance, funding, clearing or rounding.';
COMMENT ON COLUMN venue_postings.type IS 'Kind of movement.';
COMMENT ON COLUMN venue_postings.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN venue_postings.amount IS 'Amount, negative if it leaves the account.';
COMMENT ON COLUMN venue_postings.balance IS 'Balance of the account after the posting.';
COMMENT ON COLUMN venue_postings.symbol IS 'Instrument. NULL if the movement is not about one.';
COMMENT ON COLUMN venue_postings.order_code IS 'Order that caused the posting. NULL without one.';
COMMENT ON COLUMN venue_postings.time IS 'Time of the record, UTC.';

CREATE TABLE balances (
    customer_code text        NOT NULL,
    currency      text        NOT NULL,
    broker        text        NOT NULL,
    balance       numeric     NOT NULL,
    updated       timestamptz NOT NULL,
    sequence      bigint      NOT NULL,
    PRIMARY KEY (customer_code, currency)
) WITH (fillfactor = 75);
COMMENT ON TABLE balances IS 'Balance of each customer by currency.';
COMMENT ON COLUMN balances.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN balances.currency IS 'Currency of the balance.';
COMMENT ON COLUMN balances.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN balances.balance IS 'Sum of the customer''s completed transactions.';
COMMENT ON COLUMN balances.updated IS 'When the balance last changed, UTC.';
COMMENT ON COLUMN balances.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE venue_balances (
    account  text        NOT NULL,
    currency text        NOT NULL,
    balance  numeric     NOT NULL,
    updated  timestamptz NOT NULL,
    sequence bigint      NOT NULL,
    PRIMARY KEY (account, currency)
) WITH (fillfactor = 50);
COMMENT ON TABLE venue_balances IS 'Balance of each of the venue''s own accounts by currency.';
COMMENT ON COLUMN venue_balances.account IS 'Account of the venue: external, fees, insurance, funding, clearing or rounding.';
COMMENT ON COLUMN venue_balances.currency IS 'Currency of the balance.';
COMMENT ON COLUMN venue_balances.balance IS 'Sum of the account''s postings.';
COMMENT ON COLUMN venue_balances.updated IS 'When the balance last changed, UTC.';
COMMENT ON COLUMN venue_balances.sequence IS 'Sequence of the last record that changed the row.';

-- A closed position stays as a row with the amount zero.
CREATE TABLE positions (
    customer_code text        NOT NULL,
    symbol        text        NOT NULL,
    broker        text        NOT NULL,
    amount        numeric     NOT NULL,
    cost          numeric     NOT NULL,
    entry_price   numeric,
    updated       timestamptz NOT NULL,
    sequence      bigint      NOT NULL,
    PRIMARY KEY (customer_code, symbol)
) WITH (fillfactor = 75);
COMMENT ON TABLE positions IS 'Position of each customer by instrument. A closed position stays as a row with amount 0.';
COMMENT ON COLUMN positions.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN positions.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN positions.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN positions.amount IS 'Size in contracts, negative if short.';
COMMENT ON COLUMN positions.cost IS 'What the position cost, in the settlement currency, negative if short.';
COMMENT ON COLUMN positions.entry_price IS 'Average entry price. NULL for a closed position.';
COMMENT ON COLUMN positions.updated IS 'When the position last changed, UTC.';
COMMENT ON COLUMN positions.sequence IS 'Sequence of the last record that changed the row.';

SELECT track_changes(name) FROM unnest(ARRAY['balances', 'positions', 'transactions', 'venue_balances', 'venue_postings']) name;
