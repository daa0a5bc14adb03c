-- +goose Up

CREATE TABLE liabilities (
    sequence    bigint      NOT NULL,
    time        timestamptz NOT NULL,
    position    bigint      NOT NULL,
    hash        text        NOT NULL,
    asset       text        NOT NULL,
    scale       integer     NOT NULL,
    leaves      bigint      NOT NULL,
    total       numeric     NOT NULL,
    deficits    numeric     NOT NULL,
    insurance   numeric     NOT NULL,
    fees        numeric     NOT NULL,
    funding     numeric     NOT NULL,
    clearing    numeric     NOT NULL,
    rounding    numeric     NOT NULL,
    net_paid_in numeric     NOT NULL,
    root        bytea       NOT NULL,
    PRIMARY KEY (sequence)
);
CREATE INDEX liabilities_by_position ON liabilities (position, sequence);
COMMENT ON TABLE liabilities IS 'What the venue owed to its customers after an instant of funding, as recorded. Amounts are whole numbers of 10^-scale of the asset: total - deficits + insurance + fees + funding + clearing + rounding = net_paid_in.';
COMMENT ON COLUMN liabilities.sequence IS 'Sequence of the record with the statement.';
COMMENT ON COLUMN liabilities.time IS 'The funding instant, UTC.';
COMMENT ON COLUMN liabilities.position IS 'Sequence of the record that fixed the funding of the instant for the last instrument. The liabilities are those after it.';
COMMENT ON COLUMN liabilities.hash IS 'SHA-256 of that record in hex.';
COMMENT ON COLUMN liabilities.asset IS 'Asset of the amounts.';
COMMENT ON COLUMN liabilities.scale IS 'Number of decimals of an amount.';
COMMENT ON COLUMN liabilities.leaves IS 'Number of leaves of the Merkle sum tree, with those that pad it.';
COMMENT ON COLUMN liabilities.total IS 'Sum of the positive balances of customers, as if all funding and settlement that was fixed had been posted.';
COMMENT ON COLUMN liabilities.deficits IS 'Sum of the negative balances of customers, without the sign.';
COMMENT ON COLUMN liabilities.insurance IS 'Balance of the insurance fund.';
COMMENT ON COLUMN liabilities.fees IS 'Balance of the account for fees.';
COMMENT ON COLUMN liabilities.funding IS 'Balance of the account for funding.';
COMMENT ON COLUMN liabilities.clearing IS 'Balance of the clearing account.';
COMMENT ON COLUMN liabilities.rounding IS 'Balance of the account for remainders of rounding.';
COMMENT ON COLUMN liabilities.net_paid_in IS 'Deposits less withdrawals.';
COMMENT ON COLUMN liabilities.root IS 'Hash of the root of the Merkle sum tree.';

SELECT track_changes('liabilities');
