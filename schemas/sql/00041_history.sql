-- +goose Up

-- Earlier versions of rows, for answers as of a past record. A version is valid in the interval [since, until) of sequences. The
-- version that is valid now is the row in the table itself, whose column sequence is its since. So a version is written when the
-- next one replaces it, and never changes.
--
-- The tables are partitioned by until: without the partitions up to a sequence, every later question still has its answer.
CREATE TABLE order_history (
    since              bigint      NOT NULL,
    until              bigint      NOT NULL,
    updated            timestamptz NOT NULL,
    triggered          timestamptz,
    expire_time        timestamptz,
    code               uuid        NOT NULL,
    live               boolean     NOT NULL,
    status             text        NOT NULL,
    customer_code      text        NOT NULL,
    amount             numeric     NOT NULL,
    filled_amount      numeric     NOT NULL,
    filled_quote       numeric     NOT NULL,
    limit_price        numeric,
    trigger_price      numeric,
    stop_loss_price    numeric,
    take_profit_price  numeric,
    average_fill_price numeric,
    reason             text,
    PRIMARY KEY (code, until)
) PARTITION BY RANGE (until);
-- Open orders of a customer as of a sequence. An index on (customer, range) would need an extension, so each customer has a range of
-- 2^40 numbers, by the hash of the code, and a version's interval is moved into it. Customers with equal hashes are told apart by the
-- code.
CREATE INDEX order_history_live ON order_history
    USING gist (int8range(((hashtextextended(customer_code, 0) & 4194303) << 40) + since,
        ((hashtextextended(customer_code, 0) & 4194303) << 40) + until)) WHERE live;
COMMENT ON TABLE order_history IS 'Earlier states of orders, which changed since. The columns of an order that never change are in orders.';
COMMENT ON COLUMN order_history.since IS 'Sequence of the record that made this state.';
COMMENT ON COLUMN order_history.until IS 'Sequence of the record that ended it.';
COMMENT ON COLUMN order_history.code IS 'Id of the order.';
COMMENT ON COLUMN order_history.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN order_history.status IS 'open or partially_filled.';
COMMENT ON COLUMN order_history.live IS 'Whether the status is open or partially_filled.';
COMMENT ON COLUMN order_history.amount IS 'Ordered amount in contracts. 0 if cash_amount was ordered.';
COMMENT ON COLUMN order_history.filled_amount IS 'Filled amount in contracts.';
COMMENT ON COLUMN order_history.filled_quote IS 'Sum of price times amount over the fills, in the quote currency.';
COMMENT ON COLUMN order_history.limit_price IS 'Limit price. NULL for a market order.';
COMMENT ON COLUMN order_history.trigger_price IS 'Price that triggers a stop. NULL for other orders.';
COMMENT ON COLUMN order_history.stop_loss_price IS 'Price of the stop loss attached to the order. NULL without one.';
COMMENT ON COLUMN order_history.take_profit_price IS 'Price of the take profit attached to the order. NULL without one.';
COMMENT ON COLUMN order_history.average_fill_price IS 'Average price of the fills. NULL before the first.';
COMMENT ON COLUMN order_history.expire_time IS 'When a GTD order expires, UTC. NULL for others.';
COMMENT ON COLUMN order_history.reason IS 'Why the order was canceled or rejected. NULL for others.';
COMMENT ON COLUMN order_history.updated IS 'Time of the record that made this state, UTC.';
COMMENT ON COLUMN order_history.triggered IS 'Time at which the stop fired. NULL if it had not, and for other orders.';

CREATE TABLE balance_history (
    since         bigint      NOT NULL,
    until         bigint      NOT NULL,
    updated       timestamptz NOT NULL,
    customer_code text        NOT NULL,
    currency      text        NOT NULL,
    balance       numeric     NOT NULL,
    PRIMARY KEY (customer_code, currency, until)
) PARTITION BY RANGE (until);
COMMENT ON TABLE balance_history IS 'Earlier balances of each customer by currency.';
COMMENT ON COLUMN balance_history.since IS 'Sequence of the record that made this balance.';
COMMENT ON COLUMN balance_history.until IS 'Sequence of the record that made the next one.';
COMMENT ON COLUMN balance_history.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN balance_history.currency IS 'Currency of the balance.';
COMMENT ON COLUMN balance_history.balance IS 'Balance after the record since.';
COMMENT ON COLUMN balance_history.updated IS 'Time of the record since, UTC.';

CREATE TABLE position_history (
    since         bigint      NOT NULL,
    until         bigint      NOT NULL,
    updated       timestamptz NOT NULL,
    customer_code text        NOT NULL,
    symbol        text        NOT NULL,
    amount        numeric     NOT NULL,
    cost          numeric     NOT NULL,
    entry_price   numeric,
    PRIMARY KEY (customer_code, symbol, until)
) PARTITION BY RANGE (until);
COMMENT ON TABLE position_history IS 'Earlier positions of each customer by instrument. The amount of a closed one is 0.';
COMMENT ON COLUMN position_history.since IS 'Sequence of the record that made this position.';
COMMENT ON COLUMN position_history.until IS 'Sequence of the record that made the next one.';
COMMENT ON COLUMN position_history.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN position_history.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN position_history.amount IS 'Size in contracts, negative if short.';
COMMENT ON COLUMN position_history.cost IS 'What the position cost, in the settlement currency, negative if short.';
COMMENT ON COLUMN position_history.entry_price IS 'Average entry price. NULL for a closed position.';
COMMENT ON COLUMN position_history.updated IS 'Time of the record since, UTC.';

-- Makes the partitions of the versions that end at a sequence, unless they exist. A partition has 2^20 sequences, and from 2^26 on
-- a 32nd to a 64th of the sequences before it. So the number of partitions stays low in a long log, and in every log old ones can
-- be dropped. Each partition begins at a multiple of 2^20.
--
-- Attaching takes a weaker lock than creating in place: readers of the tables do not wait.
-- +goose StatementBegin
CREATE FUNCTION history_partitions(sequence bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bits   integer := length(ltrim(sequence::bit(64)::text, '0'));
    width  bigint := 1::bigint << greatest(20, bits - 6);
    low    bigint := sequence / width * width;
    parent text;
    child  text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['order_history', 'balance_history', 'position_history'] LOOP
        child := parent || '_' || low;
        CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relname = child AND relnamespace = current_schema()::regnamespace);
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING COMMENTS)', child, parent);
        EXECUTE format('COMMENT ON TABLE %I IS %L', child,
            format('Versions in %s that ended from sequence %s on and before %s.', parent, low, low + width));
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, low, low + width);
    END LOOP;
END $$;
-- +goose StatementEnd

-- Where the answers begin. An earlier build changes the rows without versions, before this migration and beside this build. History
-- begins again after its last record.
CREATE TABLE history_bounds (
    journal text   PRIMARY KEY,
    kept    bigint NOT NULL,
    built   bigint NOT NULL,
    written bigint NOT NULL
);
COMMENT ON TABLE history_bounds IS 'First record as of which the tables of history answer: the later one of kept and built, or the checkpoint if written is not there.';
COMMENT ON COLUMN history_bounds.journal IS 'Journal: trading.';
COMMENT ON COLUMN history_bounds.kept IS 'Sequence of the first record as of which versions are kept, or -1. Those that ended there or before were dropped for their age.';
COMMENT ON COLUMN history_bounds.built IS 'Sequence of the first record from which on all versions were written, or -1. A rebuild makes the earlier ones.';
COMMENT ON COLUMN history_bounds.written IS 'Sequence of the last record whose versions were written. If the checkpoint is not there, an earlier build has moved it.';
INSERT INTO history_bounds SELECT 'trading', -1, COALESCE(max(sequence), -1), COALESCE(max(sequence), -1)
    FROM checkpoints WHERE journal = 'trading' AND partition = 0;

-- Says that the transaction writes the versions of the records from first to last. After a gap, versions that end later are those of
-- a former log.
-- +goose StatementBegin
CREATE FUNCTION history_written(first bigint, last bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE history_bounds SET written = last WHERE journal = 'trading' AND written = first - 1;
    IF NOT FOUND THEN
        UPDATE history_bounds SET built = first - 1, written = last WHERE journal = 'trading';
        PERFORM history_partitions(first);
        DELETE FROM order_history WHERE until >= first;
        DELETE FROM balance_history WHERE until >= first;
        DELETE FROM position_history WHERE until >= first;
    END IF;
END $$;
-- +goose StatementEnd

-- The partitions of the next record. The projector makes each later one with the partition's first record.
SELECT history_partitions(COALESCE(max(sequence), -1) + 1) FROM checkpoints WHERE journal = 'trading';

SELECT track_changes(name) FROM unnest(ARRAY['order_history', 'balance_history', 'position_history']) name;

-- As before, and also for tables with partitions.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION grant_readers(readable text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO perpetua_reader', current_schema());
    FOR r IN
        SELECT c.relname, bool_or(a.sealed) AS sealed,
            string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE NOT a.sealed) AS columns,
            bool_and(CASE WHEN a.sealed THEN NOT has_column_privilege('perpetua_reader', c.oid, a.attnum, 'SELECT')
                ELSE has_column_privilege('perpetua_reader', c.oid, a.attnum, 'SELECT') END) AS granted
        FROM pg_class c
            JOIN LATERAL (SELECT attname, attnum, atttypid = 'bytea'::regtype
                AND attname NOT IN ('hash', 'sha256', 'public_key', 'next_public_key', 'root') AS sealed
                FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a ON true
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'v', 'p') AND c.relname = ANY (readable)
        GROUP BY c.oid, c.relname
    LOOP
        CONTINUE WHEN r.granted;
        EXECUTE format('REVOKE ALL ON %I.%I FROM perpetua_reader', current_schema(), r.relname);
        IF r.sealed THEN
            EXECUTE format('GRANT SELECT (%s) ON %I.%I TO perpetua_reader', r.columns, current_schema(), r.relname);
        ELSE
            EXECUTE format('GRANT SELECT ON %I.%I TO perpetua_reader', current_schema(), r.relname);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
