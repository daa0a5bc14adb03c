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

-- What customers pay where it is not the instrument's default, in basis points.
CREATE TABLE fee_profiles (
    customer_code text    NOT NULL,
    symbol        text    NOT NULL,
    broker        text    NOT NULL,
    maker_fee     numeric NOT NULL,
    taker_fee     numeric NOT NULL,
    sequence      bigint  NOT NULL,
    PRIMARY KEY (customer_code, symbol)
);

-- The default margins of accounts where an operator set them, in percent; leverage where that is what was set.
CREATE TABLE margin_profiles (
    customer_code      text    PRIMARY KEY,
    broker             text    NOT NULL,
    leverage           integer NOT NULL, -- 0: the percentages were given
    initial_margin     numeric NOT NULL,
    maintenance_margin numeric NOT NULL,
    sequence           bigint  NOT NULL
);

-- The overrides that came with orders.
CREATE TABLE leverages (
    customer_code text    NOT NULL,
    symbol        text    NOT NULL,
    broker        text    NOT NULL,
    leverage      integer NOT NULL,
    sequence      bigint  NOT NULL,
    PRIMARY KEY (customer_code, symbol)
);

-- +goose Down
DROP TABLE leverages;
DROP TABLE margin_profiles;
DROP TABLE fee_profiles;
DROP TABLE customers;
