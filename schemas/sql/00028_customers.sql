-- +goose Up

CREATE TABLE customers (
    customer_code text        PRIMARY KEY,
    broker        text        NOT NULL,
    name          text        NOT NULL,
    created       timestamptz NOT NULL,
    sequence      bigint      NOT NULL,
    ordinal       integer     NOT NULL
);
CREATE INDEX customers_by_broker ON customers (broker, sequence, ordinal);
COMMENT ON TABLE customers IS 'Customers of brokers. Each has one trading account.';
COMMENT ON COLUMN customers.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN customers.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN customers.name IS 'Display name that the broker gave.';
COMMENT ON COLUMN customers.created IS 'When the customer was registered, UTC.';
COMMENT ON COLUMN customers.sequence IS 'Sequence of the record that registered the customer.';
COMMENT ON COLUMN customers.ordinal IS 'Position of the row among those that its record made, from 0.';

CREATE TABLE fee_profiles (
    customer_code text    NOT NULL,
    symbol        text    NOT NULL,
    broker        text    NOT NULL,
    maker_fee     numeric NOT NULL,
    taker_fee     numeric NOT NULL,
    sequence      bigint  NOT NULL,
    PRIMARY KEY (customer_code, symbol)
);
COMMENT ON TABLE fee_profiles IS 'Fees of customers where they differ from the instrument''s.';
COMMENT ON COLUMN fee_profiles.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN fee_profiles.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN fee_profiles.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN fee_profiles.maker_fee IS 'Maker fee in basis points. Negative is a rebate.';
COMMENT ON COLUMN fee_profiles.taker_fee IS 'Taker fee in basis points.';
COMMENT ON COLUMN fee_profiles.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE margin_profiles (
    customer_code      text    PRIMARY KEY,
    broker             text    NOT NULL,
    leverage           integer NOT NULL,
    initial_margin     numeric NOT NULL,
    maintenance_margin numeric NOT NULL,
    sequence           bigint  NOT NULL
);
COMMENT ON TABLE margin_profiles IS 'Default margins of accounts for which an operator set them.';
COMMENT ON COLUMN margin_profiles.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN margin_profiles.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN margin_profiles.leverage IS 'Leverage that was set. 0 if the percentages were set instead.';
COMMENT ON COLUMN margin_profiles.initial_margin IS 'Initial margin in percent of the notional.';
COMMENT ON COLUMN margin_profiles.maintenance_margin IS 'Maintenance margin in percent of the notional.';
COMMENT ON COLUMN margin_profiles.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE leverages (
    customer_code text    NOT NULL,
    symbol        text    NOT NULL,
    broker        text    NOT NULL,
    leverage      integer NOT NULL,
    sequence      bigint  NOT NULL,
    PRIMARY KEY (customer_code, symbol)
);
COMMENT ON TABLE leverages IS 'Leverage that customers chose for an instrument with their orders.';
COMMENT ON COLUMN leverages.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN leverages.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN leverages.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN leverages.leverage IS 'Leverage in force for new positions.';
COMMENT ON COLUMN leverages.sequence IS 'Sequence of the last record that changed the row.';

SELECT track_changes(name) FROM unnest(ARRAY['customers', 'fee_profiles', 'leverages', 'margin_profiles']) name;
