-- +goose Up

-- As before, and also for tables and views whose schema is named.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION grant_readers(readable text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO perpetua_reader', current_schema());
    FOR r IN
        SELECT c.oid::regclass AS name, c.relnamespace::regnamespace AS home, bool_or(a.sealed) AS sealed,
            string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE NOT a.sealed) AS columns,
            bool_and(CASE WHEN a.sealed THEN NOT has_column_privilege('perpetua_reader', c.oid, a.attnum, 'SELECT')
                ELSE has_column_privilege('perpetua_reader', c.oid, a.attnum, 'SELECT') END)
                AND has_schema_privilege('perpetua_reader', c.relnamespace, 'USAGE') AS granted
        FROM pg_class c
            JOIN LATERAL (SELECT attname, attnum, atttypid = 'bytea'::regtype
                AND attname NOT IN ('hash', 'sha256', 'public_key', 'next_public_key', 'root') AS sealed
                FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a ON true
        WHERE c.relkind IN ('r', 'v', 'p') AND c.oid IN (SELECT to_regclass(CASE WHEN name LIKE '%.%' THEN name
            ELSE format('%I.%I', current_schema(), name) END) FROM unnest(readable) name)
        GROUP BY c.oid, c.relnamespace
    LOOP
        CONTINUE WHEN r.granted;
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO perpetua_reader', r.home);
        EXECUTE format('REVOKE ALL ON %s FROM perpetua_reader', r.name);
        IF r.sealed THEN
            EXECUTE format('GRANT SELECT (%s) ON %s TO perpetua_reader', r.columns, r.name);
        ELSE
            EXECUTE format('GRANT SELECT ON %s TO perpetua_reader', r.name);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

-- The views for analysts are in the schema analytics. Names without a schema are looked up there first, and then among the tables.
-- Each view reads only columns that perpetua_reader may read.
--
-- A rebuild and an audit run the migrations in a schema of their own. The last migration with views drops those made there.
-- +goose StatementBegin
DO $$
DECLARE
    home    text := quote_ident(current_schema());
    scratch boolean := COALESCE(current_setting('perpetua.scratch', true), '') = 'on';
    made    text := CASE WHEN scratch THEN quote_ident(current_schema() || '_analytics') ELSE 'analytics' END;
BEGIN
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = made AND NOT pg_has_role(nspowner, 'USAGE')) THEN
        RAISE EXCEPTION 'the schema % belongs to another user', made
            USING HINT = 'The venue makes its views for analysts there. Rename the schema, or give it to the user of the venue.';
    END IF;
    EXECUTE 'CREATE SCHEMA IF NOT EXISTS ' || made;
    PERFORM set_config('perpetua.home', home, true), set_config('search_path', made || ', ' || home, true);
END $$;
-- +goose StatementEnd

-- Times of records never decrease and sequences have no gaps, so a binary search by the primary key finds the record: those up to
-- low are at the time or before it, and those from high on are later.
-- +goose StatementBegin
CREATE FUNCTION position_at(journal text, at timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE COST 10000
BEGIN ATOMIC
    WITH RECURSIVE half (low, high) AS (
        SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = position_at.journal)
        UNION ALL
        SELECT CASE WHEN r.time <= position_at.at THEN r.sequence ELSE low END, CASE WHEN r.time <= position_at.at THEN high ELSE r.sequence END
        FROM half, LATERAL (SELECT r.sequence, r.time FROM records r
            WHERE r.journal = position_at.journal AND r.sequence = (low + high) / 2 OFFSET 0) r
        WHERE high - low > 1
    )
    SELECT max(low) FROM half;
END;
-- +goose StatementEnd
COMMENT ON FUNCTION position_at(text, timestamptz) IS 'Version 1. Sequence of the last record of a journal with the time or an earlier one. -1 before the first record.';

CREATE VIEW bounds AS
SELECT c.sequence, c.time, greatest(b.kept, CASE WHEN b.written = c.sequence THEN b.built ELSE c.sequence END) AS history_from
FROM history_bounds b JOIN checkpoints c USING (journal)
WHERE journal = 'trading' AND c.partition = 0;
COMMENT ON VIEW bounds IS 'Version 1. First and last record of the trading journal as of which the views answer. One row.';
COMMENT ON COLUMN bounds.sequence IS 'Sequence of the last record that the views contain.';
COMMENT ON COLUMN bounds.time IS 'Time of that record, UTC.';
COMMENT ON COLUMN bounds.history_from IS 'Sequence of the first record as of which book_orders, balances_daily and positions_daily answer, or -1 for the first record of the journal. A rebuild or --history moves it.';

CREATE VIEW trading_brokers AS
WITH RECURSIVE found AS (
    (SELECT broker, sequence FROM customers ORDER BY broker, sequence, ordinal LIMIT 1)
    UNION ALL
    SELECT n.broker, n.sequence FROM found CROSS JOIN LATERAL (
        SELECT c.broker, c.sequence FROM customers c WHERE c.broker > found.broker ORDER BY c.broker, c.sequence, c.ordinal LIMIT 1) n
)
SELECT broker, sequence FROM found
UNION ALL
SELECT 'venue', NULL::bigint WHERE NOT EXISTS (SELECT FROM found WHERE broker = 'venue');
COMMENT ON VIEW trading_brokers IS 'Version 1. Brokers with customers, and venue, to which the insurance fund belongs. Found with one look at the index customers_by_broker each.';
COMMENT ON COLUMN trading_brokers.broker IS 'Name of the broker.';
COMMENT ON COLUMN trading_brokers.sequence IS 'Sequence of the record that registered its first customer. NULL for venue without customers.';

CREATE VIEW days AS
SELECT g.start::date AS day, s.before + 1 AS first_sequence, s.last_sequence, (g.start + interval '1 day') AT TIME ZONE 'UTC' <= b.time AS final,
    s.last_sequence >= b.history_from AS history
FROM bounds b
    CROSS JOIN LATERAL generate_series((SELECT date_trunc('day', time AT TIME ZONE 'UTC') FROM records WHERE journal = 'trading' ORDER BY sequence LIMIT 1),
        date_trunc('day', b.time AT TIME ZONE 'UTC'), interval '1 day') g (start)
    CROSS JOIN LATERAL (SELECT position_at('trading', g.start AT TIME ZONE 'UTC' - interval '1 microsecond') AS before,
        position_at('trading', (g.start + interval '1 day') AT TIME ZONE 'UTC' - interval '1 microsecond') AS last_sequence OFFSET 0) s;
COMMENT ON VIEW days IS 'Version 1. UTC days from the first to the last record of the trading journal, with their records. Two binary searches by the primary key of records for each day that a query asks for.';
COMMENT ON COLUMN days.day IS 'The day, UTC.';
COMMENT ON COLUMN days.first_sequence IS 'Sequence of the first record of the day. Above last_sequence if the day has no records.';
COMMENT ON COLUMN days.last_sequence IS 'Sequence of the last record of the day, or of the last one before it if the day has none.';
COMMENT ON COLUMN days.final IS 'Whether the day is over: no later record can change its rows.';
COMMENT ON COLUMN days.history IS 'Whether book_orders, balances_daily and positions_daily answer as of the end of the day.';

CREATE VIEW hours AS
SELECT g.start AT TIME ZONE 'UTC' AS hour, s.before + 1 AS first_sequence, s.last_sequence, (g.start + interval '1 hour') AT TIME ZONE 'UTC' <= b.time AS final,
    s.last_sequence >= b.history_from AS history
FROM bounds b
    CROSS JOIN LATERAL generate_series((SELECT date_trunc('hour', time AT TIME ZONE 'UTC') FROM records WHERE journal = 'trading' ORDER BY sequence LIMIT 1),
        date_trunc('hour', b.time AT TIME ZONE 'UTC'), interval '1 hour') g (start)
    CROSS JOIN LATERAL (SELECT position_at('trading', g.start AT TIME ZONE 'UTC' - interval '1 microsecond') AS before,
        position_at('trading', (g.start + interval '1 hour') AT TIME ZONE 'UTC' - interval '1 microsecond') AS last_sequence OFFSET 0) s;
COMMENT ON VIEW hours IS 'Version 1. Hours from the first to the last record of the trading journal, with their records. Two binary searches by the primary key of records for each hour that a query asks for.';
COMMENT ON COLUMN hours.hour IS 'Beginning of the hour, UTC.';
COMMENT ON COLUMN hours.first_sequence IS 'Sequence of the first record of the hour. Above last_sequence if the hour has no records.';
COMMENT ON COLUMN hours.last_sequence IS 'Sequence of the last record of the hour, or of the last one before it if the hour has none.';
COMMENT ON COLUMN hours.final IS 'Whether the hour is over: no later record can change its rows.';
COMMENT ON COLUMN hours.history IS 'Whether book_depth_hourly answers as of the end of the hour.';

-- The views by day and by hour group inside of LATERAL, once for each period and broker or instrument. So the plan is a nested loop
-- of index scans over the records of the period, and a condition on the customer gets into it. A join would be planned with guesses
-- about the ranges of sequences and read whole tables. A customer has one broker, so no group is split.
CREATE VIEW pnl_daily AS
SELECT d.day, t.customer_code, b.broker, t.currency, t.realized_pnl, t.fees, t.funding, t.insurance, t.net_pnl, t.entries, t.sequence, d.final
FROM days d CROSS JOIN trading_brokers b CROSS JOIN LATERAL (
    SELECT t.customer_code, t.currency,
        COALESCE(sum(t.amount) FILTER (WHERE t.type IN ('trade', 'settlement', 'liquidation', 'auto_deleveraging')), 0) AS realized_pnl,
        COALESCE(sum(t.amount) FILTER (WHERE t.type IN ('trade_fee', 'liquidation_fee')), 0) AS fees,
        COALESCE(sum(t.amount) FILTER (WHERE t.type = 'funding'), 0) AS funding,
        COALESCE(sum(t.amount) FILTER (WHERE t.type = 'insurance'), 0) AS insurance,
        sum(t.amount) AS net_pnl, count(*) AS entries, max(t.sequence) AS sequence
    FROM transactions t
    WHERE t.broker = b.broker AND t.sequence BETWEEN d.first_sequence AND d.last_sequence AND t.reference_id IS NULL
    GROUP BY t.customer_code, t.currency) t;
COMMENT ON VIEW pnl_daily IS 'Version 1. Realized profit and loss of customers by UTC day, with fees and funding apart. Days without any are left out. With transfers_daily it gives the change of the balance. Indexes: for a customer the primary key of transactions, else transactions_by_broker.';
COMMENT ON COLUMN pnl_daily.day IS 'The day of the entries, UTC. Funding and settlement count when they are posted, which may be after the instant.';
COMMENT ON COLUMN pnl_daily.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN pnl_daily.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN pnl_daily.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN pnl_daily.realized_pnl IS 'Profit less loss of closed positions and of the daily settlement, also by liquidation and deleveraging, before fees.';
COMMENT ON COLUMN pnl_daily.fees IS 'Trading and liquidation fees, negative if paid. Rebates are positive.';
COMMENT ON COLUMN pnl_daily.funding IS 'Funding, negative if paid.';
COMMENT ON COLUMN pnl_daily.insurance IS 'What the insurance fund paid to cover a negative balance.';
COMMENT ON COLUMN pnl_daily.net_pnl IS 'Sum of the four: the change of the balance without deposits and withdrawals.';
COMMENT ON COLUMN pnl_daily.entries IS 'Number of transactions.';
COMMENT ON COLUMN pnl_daily.sequence IS 'Sequence of the last record with one of them.';
COMMENT ON COLUMN pnl_daily.final IS 'Whether the day is over: no later record can change the row.';

CREATE VIEW transfers_daily AS
SELECT (t.updated AT TIME ZONE 'UTC')::date AS day, t.customer_code, t.broker, t.currency,
    COALESCE(sum(t.amount) FILTER (WHERE t.amount > 0), 0) AS deposits, COALESCE(sum(t.amount) FILTER (WHERE t.amount < 0), 0) AS withdrawals,
    sum(t.amount) AS net_transfers, count(*) AS entries, max(t.changed_sequence) AS sequence
FROM transactions t
WHERE t.reference_id IS NOT NULL AND t.status = 'completed'
GROUP BY 1, t.customer_code, t.broker, t.currency;
COMMENT ON VIEW transfers_daily IS 'Version 1. Completed deposits and withdrawals of customers by UTC day. Days without any are left out. Index: transactions_of_transfers, for a customer as well as for all.';
COMMENT ON COLUMN transfers_daily.day IS 'The day of the completion, UTC.';
COMMENT ON COLUMN transfers_daily.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN transfers_daily.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN transfers_daily.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN transfers_daily.deposits IS 'Sum of the deposits.';
COMMENT ON COLUMN transfers_daily.withdrawals IS 'Sum of the withdrawals, negative.';
COMMENT ON COLUMN transfers_daily.net_transfers IS 'Sum of both.';
COMMENT ON COLUMN transfers_daily.entries IS 'Number of deposits and withdrawals.';
COMMENT ON COLUMN transfers_daily.sequence IS 'Sequence of the last record that completed one of them.';

CREATE VIEW statement_lines AS
SELECT t.customer_code, t.broker, t.currency, t.updated AS time, t.type, t.symbol, t.amount, t.balance, t.reference_id, t.code, t.order_code,
    t.sequence, t.ordinal
FROM transactions t WHERE t.reference_id IS NULL
UNION ALL
SELECT t.customer_code, t.broker, t.currency, t.updated, t.type, t.symbol, t.amount, t.balance, t.reference_id, t.code, t.order_code,
    t.changed_sequence, CASE WHEN t.sequence = t.changed_sequence THEN t.ordinal ELSE 2147483647 END
FROM transactions t WHERE t.reference_id IS NOT NULL AND t.status = 'completed';
COMMENT ON VIEW statement_lines IS 'Version 1. Completed movements on the accounts of customers, by the record that completed them. In the order of sequence and ordinal each balance is the one before plus the amount. Indexes: the primary key of transactions and transactions_of_transfers; filter by customer and sequence.';
COMMENT ON COLUMN statement_lines.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN statement_lines.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN statement_lines.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN statement_lines.time IS 'When the movement was completed, UTC.';
COMMENT ON COLUMN statement_lines.type IS 'Kind of movement, such as deposit, withdrawal, trade, trade_fee or funding.';
COMMENT ON COLUMN statement_lines.symbol IS 'Instrument. NULL for deposits and withdrawals.';
COMMENT ON COLUMN statement_lines.amount IS 'Amount, negative if it leaves the account.';
COMMENT ON COLUMN statement_lines.balance IS 'Balance after the movement.';
COMMENT ON COLUMN statement_lines.reference_id IS 'Client''s own id of a deposit or withdrawal. NULL for other movements.';
COMMENT ON COLUMN statement_lines.code IS 'Id of the transaction. A trade and its fee share the trade''s.';
COMMENT ON COLUMN statement_lines.order_code IS 'Order that caused the movement. NULL without one.';
COMMENT ON COLUMN statement_lines.sequence IS 'Sequence of the record that completed the movement.';
COMMENT ON COLUMN statement_lines.ordinal IS 'Orders the movements of a record. A withdrawal that an earlier record requested comes last.';

CREATE VIEW funding_daily AS
SELECT d.day, t.customer_code, b.broker, t.symbol, t.currency, t.funding, t.received, t.paid, t.payments, t.sequence, d.final
FROM days d CROSS JOIN trading_brokers b CROSS JOIN LATERAL (
    SELECT t.customer_code, t.symbol, t.currency, sum(t.amount) AS funding,
        COALESCE(sum(t.amount) FILTER (WHERE t.amount > 0), 0) AS received, COALESCE(sum(t.amount) FILTER (WHERE t.amount < 0), 0) AS paid,
        count(*) AS payments, max(t.sequence) AS sequence
    FROM transactions t
    WHERE t.broker = b.broker AND t.sequence BETWEEN d.first_sequence AND d.last_sequence AND t.type = 'funding'
    GROUP BY t.customer_code, t.symbol, t.currency) t;
COMMENT ON VIEW funding_daily IS 'Version 1. Funding of customers by instrument and UTC day. Indexes: for a customer the primary key of transactions, else transactions_by_broker.';
COMMENT ON COLUMN funding_daily.day IS 'The day on which the funding was posted, UTC. It may be after the funding instant.';
COMMENT ON COLUMN funding_daily.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN funding_daily.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN funding_daily.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN funding_daily.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN funding_daily.funding IS 'Funding received less funding paid.';
COMMENT ON COLUMN funding_daily.received IS 'Funding received.';
COMMENT ON COLUMN funding_daily.paid IS 'Funding paid, negative.';
COMMENT ON COLUMN funding_daily.payments IS 'Number of payments, in either direction.';
COMMENT ON COLUMN funding_daily.sequence IS 'Sequence of the last record with one of them.';
COMMENT ON COLUMN funding_daily.final IS 'Whether the day is over: no later record can change the row.';

CREATE VIEW fees_daily AS
SELECT d.day, t.customer_code, b.broker, t.symbol, t.currency, t.maker_fees, t.taker_fees, t.liquidation_fees, t.fees,
    t.maker_turnover, t.taker_turnover, t.trades, t.sequence, d.final
FROM days d CROSS JOIN trading_brokers b CROSS JOIN LATERAL (
    SELECT t.customer_code, t.symbol, t.fee_currency AS currency,
        COALESCE(sum(t.fee) FILTER (WHERE t.role = 'maker'), 0) AS maker_fees,
        COALESCE(sum(t.fee) FILTER (WHERE t.role = 'taker' AND t.type <> 'liquidation'), 0) AS taker_fees,
        COALESCE(sum(t.fee) FILTER (WHERE t.role = 'taker' AND t.type = 'liquidation'), 0) AS liquidation_fees,
        sum(t.fee) AS fees,
        COALESCE(sum(t.notional) FILTER (WHERE t.role = 'maker'), 0) AS maker_turnover,
        COALESCE(sum(t.notional) FILTER (WHERE t.role = 'taker'), 0) AS taker_turnover,
        count(*) AS trades, max(t.sequence) AS sequence
    FROM trades t
    WHERE t.broker = b.broker AND t.sequence BETWEEN d.first_sequence AND d.last_sequence
    GROUP BY t.customer_code, t.symbol, t.fee_currency) t;
COMMENT ON VIEW fees_daily IS 'Version 1. Fees and turnover of customers by instrument and UTC day, also of the insurance fund, which pays no fees. Indexes: for a customer the primary key of trades, else trades_by_broker.';
COMMENT ON COLUMN fees_daily.day IS 'The day of the trades, UTC.';
COMMENT ON COLUMN fees_daily.customer_code IS 'Code of the customer, or insurance-fund.';
COMMENT ON COLUMN fees_daily.broker IS 'Broker to whom the customer belongs, or venue for the insurance fund.';
COMMENT ON COLUMN fees_daily.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN fees_daily.currency IS 'Currency of the fees.';
COMMENT ON COLUMN fees_daily.maker_fees IS 'Fees as maker. Negative if rebates outweigh them.';
COMMENT ON COLUMN fees_daily.taker_fees IS 'Fees as taker, without those of liquidations.';
COMMENT ON COLUMN fees_daily.liquidation_fees IS 'Fees of liquidations, which go to the insurance fund.';
COMMENT ON COLUMN fees_daily.fees IS 'Sum of the three. Positive if the customer paid, unlike in pnl_daily.';
COMMENT ON COLUMN fees_daily.maker_turnover IS 'Value of the trades as maker, in the quote currency.';
COMMENT ON COLUMN fees_daily.taker_turnover IS 'Value of the trades as taker, in the quote currency.';
COMMENT ON COLUMN fees_daily.trades IS 'Number of the customer''s sides of trades.';
COMMENT ON COLUMN fees_daily.sequence IS 'Sequence of the last record with one of them.';
COMMENT ON COLUMN fees_daily.final IS 'Whether the day is over: no later record can change the row.';

CREATE VIEW venue_daily AS
SELECT d.day, p.account, p.currency, p.type, p.amount, p.postings, p.sequence, d.final
FROM days d CROSS JOIN LATERAL (
    SELECT p.account, p.currency, p.type, sum(p.amount) AS amount, count(*) AS postings, max(p.sequence) AS sequence
    FROM venue_postings p
    WHERE p.sequence BETWEEN d.first_sequence AND d.last_sequence
    GROUP BY p.account, p.currency, p.type) p;
COMMENT ON VIEW venue_daily IS 'Version 1. Movements of the venue''s own accounts by UTC day. Index: the primary key of venue_postings.';
COMMENT ON COLUMN venue_daily.day IS 'The day of the postings, UTC.';
COMMENT ON COLUMN venue_daily.account IS 'Account of the venue: external, fees, insurance, funding, clearing or rounding.';
COMMENT ON COLUMN venue_daily.currency IS 'Currency of the amount.';
COMMENT ON COLUMN venue_daily.type IS 'Kind of movement.';
COMMENT ON COLUMN venue_daily.amount IS 'Sum of the postings, negative if they leave the account.';
COMMENT ON COLUMN venue_daily.postings IS 'Number of postings.';
COMMENT ON COLUMN venue_daily.sequence IS 'Sequence of the last record with one of them.';
COMMENT ON COLUMN venue_daily.final IS 'Whether the day is over: no later record can change the row.';

CREATE VIEW balances_daily AS
SELECT d.day, b.customer_code, b.broker, b.currency, COALESCE(h.balance, b.balance) AS balance, COALESCE(h.updated, b.updated) AS updated,
    COALESCE(h.since, b.sequence) AS sequence, d.last_sequence AS day_sequence, d.final
FROM days d CROSS JOIN balances b
    LEFT JOIN LATERAL (SELECT v.since, v.updated, v.balance FROM balance_history v
        WHERE v.customer_code = b.customer_code AND v.currency = b.currency AND v.until > d.last_sequence AND b.sequence > d.last_sequence
        ORDER BY v.until LIMIT 1) h ON true
WHERE d.history AND COALESCE(h.since, b.sequence) <= d.last_sequence;
COMMENT ON VIEW balances_daily IS 'Version 1. Balances of customers at the end of each UTC day that days.history names. Indexes: the primary keys of balances and balance_history.';
COMMENT ON COLUMN balances_daily.day IS 'The day, UTC.';
COMMENT ON COLUMN balances_daily.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN balances_daily.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN balances_daily.currency IS 'Currency of the balance.';
COMMENT ON COLUMN balances_daily.balance IS 'Sum of the customer''s completed transactions.';
COMMENT ON COLUMN balances_daily.updated IS 'When the balance was reached, UTC.';
COMMENT ON COLUMN balances_daily.sequence IS 'Sequence of the record that made the balance.';
COMMENT ON COLUMN balances_daily.day_sequence IS 'Sequence of the last record of the day.';
COMMENT ON COLUMN balances_daily.final IS 'Whether the day is over: no later record can change the row.';

CREATE VIEW positions_daily AS
SELECT p.*, m.mark_price, p.amount * i.contract_size * m.mark_price AS position_value,
    floor(p.amount * i.contract_size * m.mark_price * 100000000) * 0.00000001 - p.cost AS unrealized_pnl
FROM (
    SELECT d.day, p.customer_code, p.broker, p.symbol, CASE WHEN h.since IS NULL THEN p.amount ELSE h.amount END AS amount,
        CASE WHEN h.since IS NULL THEN p.cost ELSE h.cost END AS cost, CASE WHEN h.since IS NULL THEN p.entry_price ELSE h.entry_price END AS entry_price,
        COALESCE(h.updated, p.updated) AS updated, COALESCE(h.since, p.sequence) AS sequence, d.last_sequence AS day_sequence, d.final
    FROM days d CROSS JOIN positions p
        LEFT JOIN LATERAL (SELECT v.since, v.updated, v.amount, v.cost, v.entry_price FROM position_history v
            WHERE v.customer_code = p.customer_code AND v.symbol = p.symbol AND v.until > d.last_sequence AND p.sequence > d.last_sequence
            ORDER BY v.until LIMIT 1) h ON true
    WHERE d.history AND COALESCE(h.since, p.sequence) <= d.last_sequence AND CASE WHEN h.since IS NULL THEN p.amount ELSE h.amount END <> 0
) p
    JOIN instruments i ON i.symbol = p.symbol
    LEFT JOIN LATERAL (SELECT c.close AS mark_price FROM candles c WHERE c.symbol = p.symbol AND c.price = 'mark' AND c.seconds = 86400
        AND c.start <= p.day::timestamp AT TIME ZONE 'UTC' ORDER BY c.start DESC LIMIT 1) m ON true;
COMMENT ON VIEW positions_daily IS 'Version 1. Open positions at the end of each UTC day that days.history names, also of the insurance fund, valued at the last mark price of the day. Indexes: the primary keys of positions, position_history and candles.';
COMMENT ON COLUMN positions_daily.day IS 'The day, UTC.';
COMMENT ON COLUMN positions_daily.customer_code IS 'Code of the customer, or insurance-fund.';
COMMENT ON COLUMN positions_daily.broker IS 'Broker to whom the customer belongs, or venue for the insurance fund.';
COMMENT ON COLUMN positions_daily.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN positions_daily.amount IS 'Size in contracts, negative if short.';
COMMENT ON COLUMN positions_daily.cost IS 'What the position cost, in the settlement currency, negative if short.';
COMMENT ON COLUMN positions_daily.entry_price IS 'Average entry price.';
COMMENT ON COLUMN positions_daily.updated IS 'When the position was reached, UTC.';
COMMENT ON COLUMN positions_daily.sequence IS 'Sequence of the record that made the position.';
COMMENT ON COLUMN positions_daily.day_sequence IS 'Sequence of the last record of the day.';
COMMENT ON COLUMN positions_daily.final IS 'Whether the day is over: no later record can change the row.';
COMMENT ON COLUMN positions_daily.mark_price IS 'Last mark price of the day or before it. NULL before the first.';
COMMENT ON COLUMN positions_daily.position_value IS 'Value at the mark price, negative if short. The contract size is that of today.';
COMMENT ON COLUMN positions_daily.unrealized_pnl IS 'That value, rounded down to 8 decimals, less the cost. It leaves out charges that are fixed and not yet posted.';

CREATE VIEW order_fills AS
SELECT d.day, o.code, o.customer_code, o.broker, o.symbol, o.action, o.type, o.time_in_force, o.status, o.amount, o.filled_amount, o.average_fill_price,
    o.created, w.working_from, f.first_fill, CASE WHEN o.status = 'filled' THEN o.updated END AS filled,
    f.first_fill - w.working_from AS time_to_first_fill, CASE WHEN o.status = 'filled' THEN o.updated - w.working_from END AS time_to_fill,
    o.created_sequence, f.first_fill_sequence, o.sequence
FROM days d CROSS JOIN trading_brokers b CROSS JOIN bounds
    CROSS JOIN LATERAL (SELECT o.* FROM orders o
        WHERE o.broker = b.broker AND o.created_sequence BETWEEN d.first_sequence AND d.last_sequence GROUP BY o.code) o
    CROSS JOIN LATERAL (SELECT COALESCE(o.triggered, o.created) AS working_from) w
    LEFT JOIN LATERAL (
        SELECT v.updated, v.since FROM order_history v WHERE v.code = o.code AND v.filled_amount > 0
            AND o.filled_amount > 0 AND o.sequence > o.created_sequence ORDER BY v.until LIMIT 1) v ON true
    CROSS JOIN LATERAL (SELECT o.filled_amount > 0 AND (o.sequence = o.created_sequence OR o.created_sequence >= bounds.history_from) AS known) k
    CROSS JOIN LATERAL (SELECT CASE WHEN k.known THEN COALESCE(v.updated, o.updated) END AS first_fill,
        CASE WHEN k.known THEN COALESCE(v.since, o.sequence) END AS first_fill_sequence) f;
COMMENT ON VIEW order_fills IS 'Version 1. Orders with the time until they were filled. Indexes: for a customer orders_by_customer, else orders_by_broker; the primary key of order_history.';
COMMENT ON COLUMN order_fills.day IS 'The day on which the order was made, UTC.';
COMMENT ON COLUMN order_fills.code IS 'Id of the order.';
COMMENT ON COLUMN order_fills.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN order_fills.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN order_fills.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN order_fills.action IS 'buy or sell.';
COMMENT ON COLUMN order_fills.type IS 'Order type, such as limit or market.';
COMMENT ON COLUMN order_fills.time_in_force IS 'GTC, GTD, IOC or FOK.';
COMMENT ON COLUMN order_fills.status IS 'open, partially_filled, filled, canceled, expired or rejected.';
COMMENT ON COLUMN order_fills.amount IS 'Ordered amount in contracts.';
COMMENT ON COLUMN order_fills.filled_amount IS 'Filled amount in contracts.';
COMMENT ON COLUMN order_fills.average_fill_price IS 'Average price of the fills. NULL before the first.';
COMMENT ON COLUMN order_fills.created IS 'When the order was made, UTC.';
COMMENT ON COLUMN order_fills.working_from IS 'From when the order could trade, UTC: when the stop fired, or else when the order was made.';
COMMENT ON COLUMN order_fills.first_fill IS 'Time of the first fill, UTC. NULL without one, and if days.history does not cover the order.';
COMMENT ON COLUMN order_fills.filled IS 'Time of the last fill, UTC. NULL unless the order is filled.';
COMMENT ON COLUMN order_fills.time_to_first_fill IS 'From working_from to first_fill.';
COMMENT ON COLUMN order_fills.time_to_fill IS 'From working_from to filled.';
COMMENT ON COLUMN order_fills.created_sequence IS 'Sequence of the record that made the order.';
COMMENT ON COLUMN order_fills.first_fill_sequence IS 'Sequence of the record with the first fill. NULL as first_fill is.';
COMMENT ON COLUMN order_fills.sequence IS 'Sequence of the last record that changed the order.';

CREATE VIEW book_orders AS
SELECT o.symbol, CASE o.action WHEN 'buy' THEN 'bid' ELSE 'ask' END AS side, o.limit_price AS price, o.amount - o.filled_amount AS amount,
    o.code, o.customer_code, o.broker, o.updated AS since_time, o.sequence AS since, NULL::bigint AS until
FROM orders o
WHERE o.live AND o.limit_price IS NOT NULL AND (o.trigger_price_type IS NULL OR o.triggered IS NOT NULL)
UNION ALL
SELECT o.symbol, CASE o.action WHEN 'buy' THEN 'bid' ELSE 'ask' END, v.limit_price, v.amount - v.filled_amount,
    v.code, v.customer_code, o.broker, v.updated, v.since, v.until
FROM order_history v JOIN orders o ON o.code = v.code
WHERE v.live AND v.limit_price IS NOT NULL AND (o.trigger_price_type IS NULL OR v.triggered IS NOT NULL);
COMMENT ON VIEW book_orders IS 'Version 1. Orders that rested in the book, with each state that they had. The book as of record S is: since <= S AND (until > S OR until IS NULL), for S from bounds.history_from to bounds.sequence. Indexes: orders_live and the partitions of order_history by until; book_depth_hourly and book_at use order_history_live.';
COMMENT ON COLUMN book_orders.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN book_orders.side IS 'bid or ask.';
COMMENT ON COLUMN book_orders.price IS 'Limit price.';
COMMENT ON COLUMN book_orders.amount IS 'Amount in contracts that was not filled.';
COMMENT ON COLUMN book_orders.code IS 'Id of the order.';
COMMENT ON COLUMN book_orders.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN book_orders.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN book_orders.since_time IS 'Time of the record since, UTC.';
COMMENT ON COLUMN book_orders.since IS 'Sequence of the record that made this state.';
COMMENT ON COLUMN book_orders.until IS 'Sequence of the record that ended it. NULL for the state that the order has now.';

-- +goose StatementBegin
CREATE FUNCTION history_checked(sequence bigint) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    b record;
BEGIN
    SELECT * INTO b FROM bounds;
    IF NOT FOUND OR sequence > b.sequence THEN
        RAISE EXCEPTION 'the rows have not reached the record %', sequence;
    ELSIF sequence < b.history_from OR sequence < 0 THEN
        RAISE EXCEPTION 'the history begins at the record %, after %', greatest(b.history_from, 0), sequence;
    END IF;
    RETURN sequence;
END $$;
-- +goose StatementEnd
COMMENT ON FUNCTION history_checked(bigint) IS 'Version 1. Returns a sequence of the trading journal as of which the views answer. For any other it raises an error.';

-- Looks for the orders of each customer in the index order_history_live. OFFSET 0 keeps the parts from becoming joins, for which the
-- planner would rather read whole tables.
-- +goose StatementBegin
CREATE FUNCTION book_at(symbol text, sequence bigint) RETURNS TABLE (side text, price numeric, amount numeric, orders bigint)
LANGUAGE sql STABLE COST 100000 ROWS 100
BEGIN ATOMIC
    SELECT CASE o.action WHEN 'buy' THEN 'bid' ELSE 'ask' END, r.price, sum(r.amount), count(*)
    FROM (SELECT history_checked(book_at.sequence) AS position OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT o.code, o.triggered, o.limit_price AS price, o.amount - o.filled_amount AS amount
            FROM orders o WHERE o.live AND o.sequence <= s.position
            UNION ALL
            SELECT v.code, v.triggered, v.limit_price, v.amount - v.filled_amount
            FROM (SELECT customer_code FROM customers UNION ALL SELECT 'insurance-fund') c CROSS JOIN LATERAL (
                SELECT v.code, v.triggered, v.limit_price, v.amount, v.filled_amount
                FROM order_history v
                WHERE v.customer_code = c.customer_code AND v.live AND v.since <= s.position AND v.until > s.position
                    AND int8range(((hashtextextended(v.customer_code, 0) & 4194303) << 40) + v.since,
                        ((hashtextextended(v.customer_code, 0) & 4194303) << 40) + v.until)
                        @> (((hashtextextended(c.customer_code, 0) & 4194303) << 40) + s.position) OFFSET 0) v) r
        CROSS JOIN LATERAL (SELECT o.symbol, o.action, o.trigger_price_type FROM orders o WHERE o.code = r.code OFFSET 0) o
    WHERE o.symbol = book_at.symbol AND r.price IS NOT NULL AND (o.trigger_price_type IS NULL OR r.triggered IS NOT NULL)
    GROUP BY o.action, r.price
    ORDER BY 1, CASE o.action WHEN 'buy' THEN -r.price ELSE r.price END;
END;
-- +goose StatementEnd
COMMENT ON FUNCTION book_at(text, bigint) IS 'Version 1. Depth of the book of an instrument as of a record: side, price, amount in contracts and number of orders by price, asks ascending and bids descending. Raises an error for a record before bounds.history_from or after bounds.sequence.';

CREATE VIEW book_depth_hourly AS
SELECT h.hour, i.symbol, b.side, b.price, b.amount, b.orders, h.last_sequence AS sequence, h.final
FROM hours h CROSS JOIN instruments i CROSS JOIN LATERAL book_at(i.symbol, h.last_sequence) b
WHERE h.history AND i.listed_sequence <= h.last_sequence;
COMMENT ON VIEW book_depth_hourly IS 'Version 1. Depth of the books at the end of each hour that hours.history names. Filter it by hour: each hour and instrument looks at the open orders of all customers then, by order_history_live. For other moments call book_at.';
COMMENT ON COLUMN book_depth_hourly.hour IS 'Beginning of the hour, UTC.';
COMMENT ON COLUMN book_depth_hourly.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN book_depth_hourly.side IS 'bid or ask.';
COMMENT ON COLUMN book_depth_hourly.price IS 'Limit price.';
COMMENT ON COLUMN book_depth_hourly.amount IS 'Sum of the amounts in contracts that were not filled.';
COMMENT ON COLUMN book_depth_hourly.orders IS 'Number of orders.';
COMMENT ON COLUMN book_depth_hourly.sequence IS 'Sequence of the last record of the hour, as of which the book is.';
COMMENT ON COLUMN book_depth_hourly.final IS 'Whether the hour is over: no later record can change the row.';

CREATE VIEW trades_hourly AS
SELECT h.hour, i.symbol, c.open, c.high, c.low, c.close, t.turnover / NULLIF(t.volume * i.contract_size, 0) AS average_price, t.volume, t.turnover,
    t.bought, t.sold, t.liquidated, t.deleveraged, t.trades, t.sequence, h.final
FROM hours h CROSS JOIN instruments i
    CROSS JOIN LATERAL (
        SELECT sum(t.amount) AS volume, sum(t.notional) AS turnover,
            COALESCE(sum(t.amount) FILTER (WHERE t.action = 'buy'), 0) AS bought, COALESCE(sum(t.amount) FILTER (WHERE t.action = 'sell'), 0) AS sold,
            COALESCE(sum(t.amount) FILTER (WHERE t.type = 'liquidation'), 0) AS liquidated,
            COALESCE(sum(t.amount) FILTER (WHERE t.type = 'auto_deleveraging'), 0) AS deleveraged,
            count(*) AS trades, max(t.sequence) AS sequence
        FROM trades t
        WHERE t.symbol = i.symbol AND t.role = 'taker' AND t.sequence BETWEEN h.first_sequence AND h.last_sequence
        HAVING count(*) > 0) t
    LEFT JOIN candles c ON c.symbol = i.symbol AND c.price = 'trade' AND c.seconds = 3600 AND c.start = h.hour;
COMMENT ON VIEW trades_hourly IS 'Version 1. Trades by instrument and hour with open, high, low and close, each trade once. Hours without trades are left out. Indexes: trades_of_market_by_symbol and the primary key of candles.';
COMMENT ON COLUMN trades_hourly.hour IS 'Beginning of the hour, UTC.';
COMMENT ON COLUMN trades_hourly.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN trades_hourly.open IS 'First price of the hour. Prices of takeovers and deleveraging do not count. NULL if there were only such trades.';
COMMENT ON COLUMN trades_hourly.high IS 'Highest price of the hour. NULL as open is.';
COMMENT ON COLUMN trades_hourly.low IS 'Lowest price of the hour. NULL as open is.';
COMMENT ON COLUMN trades_hourly.close IS 'Last price of the hour. NULL as open is.';
COMMENT ON COLUMN trades_hourly.average_price IS 'Turnover divided by volume, per unit of the underlying.';
COMMENT ON COLUMN trades_hourly.volume IS 'Traded contracts, with takeovers and deleveraging.';
COMMENT ON COLUMN trades_hourly.turnover IS 'Traded value in the quote currency.';
COMMENT ON COLUMN trades_hourly.bought IS 'Contracts that takers bought.';
COMMENT ON COLUMN trades_hourly.sold IS 'Contracts that takers sold.';
COMMENT ON COLUMN trades_hourly.liquidated IS 'Contracts of liquidations, in the book or by takeover.';
COMMENT ON COLUMN trades_hourly.deleveraged IS 'Contracts of deleveraging.';
COMMENT ON COLUMN trades_hourly.trades IS 'Number of trades.';
COMMENT ON COLUMN trades_hourly.sequence IS 'Sequence of the last record with one of them.';
COMMENT ON COLUMN trades_hourly.final IS 'Whether the hour is over: no later record can change the row.';

CREATE VIEW liquidations AS
SELECT d.day, t.time, t.customer_code, t.broker, t.symbol, t.action, t.price, t.amount, t.notional, t.fee,
    (SELECT COALESCE(sum(p.amount), 0) FROM transactions p WHERE p.customer_code = t.customer_code AND p.sequence = t.sequence AND p.code = t.code
        AND p.type IN ('liquidation', 'auto_deleveraging')) AS realized_pnl,
    CASE WHEN t.type = 'liquidation' AND t.order_code IS NOT NULL THEN 'book' WHEN t.type = 'liquidation' THEN 'takeover'
        WHEN t.role = 'taker' THEN 'passed_on' ELSE 'deleveraged' END AS kind,
    t.code, t.order_code, t.sequence, t.ordinal
FROM days d CROSS JOIN trading_brokers b
    CROSS JOIN LATERAL (SELECT t.* FROM trades t
        WHERE t.broker = b.broker AND t.sequence BETWEEN d.first_sequence AND d.last_sequence AND t.type IN ('liquidation', 'auto_deleveraging')
        GROUP BY t.customer_code, t.sequence, t.ordinal) t;
COMMENT ON VIEW liquidations IS 'Version 1. Trades by which positions were liquidated or deleveraged, from the side that it happened to. Filter it by day or customer: without an index for them, it looks at all trades of these. Indexes: for a customer the primary key of trades, else trades_by_broker; the primary key of transactions.';
COMMENT ON COLUMN liquidations.day IS 'The day of the trade, UTC.';
COMMENT ON COLUMN liquidations.time IS 'Time of the trade, UTC.';
COMMENT ON COLUMN liquidations.customer_code IS 'Code of the customer whose position was reduced.';
COMMENT ON COLUMN liquidations.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN liquidations.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN liquidations.action IS 'What reduced the position: buy or sell.';
COMMENT ON COLUMN liquidations.price IS 'Price of the trade.';
COMMENT ON COLUMN liquidations.amount IS 'Amount in contracts.';
COMMENT ON COLUMN liquidations.notional IS 'Value of the trade in the quote currency.';
COMMENT ON COLUMN liquidations.fee IS 'Liquidation fee.';
COMMENT ON COLUMN liquidations.realized_pnl IS 'Profit or loss of the closed part, before the fee.';
COMMENT ON COLUMN liquidations.kind IS 'book: liquidated in the book. takeover: liquidated, and taken over by the insurance fund. passed_on: liquidated, and passed on to a holder of the other side. deleveraged: the position of that holder.';
COMMENT ON COLUMN liquidations.code IS 'Id of the trade.';
COMMENT ON COLUMN liquidations.order_code IS 'Order of the liquidation. NULL unless in the book.';
COMMENT ON COLUMN liquidations.sequence IS 'Sequence of the record that made the trade.';
COMMENT ON COLUMN liquidations.ordinal IS 'Twice the trade''s position in its record, plus 1 for the maker''s side.';

CREATE VIEW onboarding_cases AS
SELECT (t.created_at AT TIME ZONE 'UTC')::date AS day, t.id, t.entitlement_id, e.name AS entitlement, t.owner_id, t.owner_type, t.tenant,
    t.status, t.result, t.code, t.created_at, s.started_at, s.video_at, CASE WHEN t.result IS NOT NULL THEN s.moved_at END AS ended_at,
    s.blocks, s.requests, t.created_sequence, t.sequence
FROM triggers t LEFT JOIN entitlements e ON e.id = t.entitlement_id
    CROSS JOIN LATERAL (SELECT min(v.time) FILTER (WHERE v.status = 'ongoing') AS started_at, min(v.time) FILTER (WHERE v.outcome IS NOT NULL) AS video_at,
        max(v.time) FILTER (WHERE v.status IS NOT NULL) AS moved_at, count(*) FILTER (WHERE v.action = 'block') AS blocks,
        count(DISTINCT v.request_id) AS requests
        FROM trigger_events v WHERE v.trigger_id = t.id) s;
COMMENT ON VIEW onboarding_cases IS 'Version 1. Applications for entitlements with the times of their steps. No personal data. Indexes: triggers_by_owner, triggers_by_tenant and the primary key of trigger_events.';
COMMENT ON COLUMN onboarding_cases.day IS 'The day on which the trigger was created, UTC.';
COMMENT ON COLUMN onboarding_cases.id IS 'Id of the trigger.';
COMMENT ON COLUMN onboarding_cases.entitlement_id IS 'Entitlement that is applied for.';
COMMENT ON COLUMN onboarding_cases.entitlement IS 'Name of the entitlement now.';
COMMENT ON COLUMN onboarding_cases.owner_id IS 'Person or corporate that applies; owners.id.';
COMMENT ON COLUMN onboarding_cases.owner_type IS 'person or corporate.';
COMMENT ON COLUMN onboarding_cases.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN onboarding_cases.status IS 'pending, ongoing, blocked, finished, failed, canceled or terminated.';
COMMENT ON COLUMN onboarding_cases.result IS 'success or fail. NULL before the end.';
COMMENT ON COLUMN onboarding_cases.code IS 'Code of the reason of its end. NULL without one.';
COMMENT ON COLUMN onboarding_cases.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN onboarding_cases.started_at IS 'When it became ongoing for the first time, UTC. NULL before.';
COMMENT ON COLUMN onboarding_cases.video_at IS 'When a video identification had its first outcome, UTC. NULL before.';
COMMENT ON COLUMN onboarding_cases.ended_at IS 'When it ended, UTC. NULL before.';
COMMENT ON COLUMN onboarding_cases.blocks IS 'How often it was blocked.';
COMMENT ON COLUMN onboarding_cases.requests IS 'Number of requests for information.';
COMMENT ON COLUMN onboarding_cases.created_sequence IS 'Sequence of the record in the onboarding journal that created it.';
COMMENT ON COLUMN onboarding_cases.sequence IS 'Sequence of the last record in the onboarding journal that changed it.';

CREATE VIEW onboarding_funnel AS
SELECT c.day, c.tenant, c.entitlement_id, c.entitlement, c.owner_type, count(*) AS created, count(c.started_at) AS started,
    count(*) FILTER (WHERE c.requests > 0) AS asked_for_more, count(c.video_at) AS video, count(*) FILTER (WHERE c.result = 'success') AS succeeded,
    count(*) FILTER (WHERE c.status = 'failed') AS failed, count(*) FILTER (WHERE c.status = 'canceled') AS canceled,
    count(*) FILTER (WHERE c.status = 'terminated') AS terminated,
    count(*) FILTER (WHERE c.result IS NULL) AS open, avg(c.ended_at - c.created_at) FILTER (WHERE c.result = 'success') AS time_to_success,
    max(c.sequence) AS sequence
FROM onboarding_cases c
GROUP BY c.day, c.tenant, c.entitlement_id, c.entitlement, c.owner_type;
COMMENT ON VIEW onboarding_funnel IS 'Version 1. How far the applications of each UTC day have come by now, by tenant and entitlement. Indexes: triggers_by_tenant and the primary key of trigger_events.';
COMMENT ON COLUMN onboarding_funnel.day IS 'The day on which the triggers were created, UTC.';
COMMENT ON COLUMN onboarding_funnel.tenant IS 'Tenant, which is the broker that registered the owners.';
COMMENT ON COLUMN onboarding_funnel.entitlement_id IS 'Entitlement that is applied for.';
COMMENT ON COLUMN onboarding_funnel.entitlement IS 'Name of the entitlement now.';
COMMENT ON COLUMN onboarding_funnel.owner_type IS 'person or corporate.';
COMMENT ON COLUMN onboarding_funnel.created IS 'Number of triggers.';
COMMENT ON COLUMN onboarding_funnel.started IS 'Those that became ongoing.';
COMMENT ON COLUMN onboarding_funnel.asked_for_more IS 'Those with a request for information.';
COMMENT ON COLUMN onboarding_funnel.video IS 'Those with an outcome of a video identification.';
COMMENT ON COLUMN onboarding_funnel.succeeded IS 'Those that ended with success.';
COMMENT ON COLUMN onboarding_funnel.failed IS 'Those that failed.';
COMMENT ON COLUMN onboarding_funnel.canceled IS 'Those that were canceled.';
COMMENT ON COLUMN onboarding_funnel.terminated IS 'Those that were terminated.';
COMMENT ON COLUMN onboarding_funnel.open IS 'Those that have not ended.';
COMMENT ON COLUMN onboarding_funnel.time_to_success IS 'Average time from the creation to the end of those with success. NULL without any.';
COMMENT ON COLUMN onboarding_funnel.sequence IS 'Sequence of the last record in the onboarding journal that changed one of them.';

CREATE VIEW onboarding_daily AS
SELECT (x.time AT TIME ZONE 'UTC')::date AS day, x.tenant, x.owner_type, x.event, x.state, count(*) AS events, max(x.sequence) AS sequence
FROM (
    SELECT created_at AS time, tenant, type AS owner_type, 'registration' AS event, NULL AS state, created_sequence AS sequence FROM owners
    UNION ALL
    SELECT created_at, tenant, owner_type, 'response', NULL, sequence FROM responses
    UNION ALL
    SELECT v.time, t.tenant, t.owner_type, 'trigger', v.status, v.sequence
    FROM triggers t JOIN trigger_events v ON v.trigger_id = t.id WHERE v.status IS NOT NULL
) x
GROUP BY 1, x.tenant, x.owner_type, x.event, x.state;
COMMENT ON VIEW onboarding_daily IS 'Version 1. What happened in the onboarding by tenant and UTC day. No personal data. Indexes: owners_by_tenant, triggers_by_tenant and the primary key of trigger_events for a tenant; a day has none.';
COMMENT ON COLUMN onboarding_daily.day IS 'The day of the events, UTC.';
COMMENT ON COLUMN onboarding_daily.tenant IS 'Tenant, which is the broker that registered the owners.';
COMMENT ON COLUMN onboarding_daily.owner_type IS 'person or corporate.';
COMMENT ON COLUMN onboarding_daily.event IS 'registration of an owner, response to a questionnaire, or trigger for a change of a trigger''s status.';
COMMENT ON COLUMN onboarding_daily.state IS 'Status of the trigger after the event. NULL for the other events.';
COMMENT ON COLUMN onboarding_daily.events IS 'Number of events.';
COMMENT ON COLUMN onboarding_daily.sequence IS 'Sequence of the last record in the onboarding journal with one of them.';

CREATE VIEW contents AS
SELECT c.relname::text AS name, substring(d.text FROM '^Version (\d+)\. ')::integer AS version,
    CASE WHEN c.relname LIKE 'onboarding%' THEN 'onboarding' WHEN c.relname <> 'contents' THEN 'trading' END AS journal,
    substring(d.text FROM '^Version \d+\. (.*)$') AS description
FROM pg_class c CROSS JOIN LATERAL (SELECT obj_description(c.oid, 'pg_class') AS text) d
WHERE c.relkind = 'v' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'days'::regclass) AND d.text ~ '^Version \d+\. ';
COMMENT ON VIEW contents IS 'Version 1. The views for analysts with their versions. A version rises when a column is removed or means something else, not when one is added.';
COMMENT ON COLUMN contents.name IS 'Name of the view in the schema analytics.';
COMMENT ON COLUMN contents.version IS 'Version of the view.';
COMMENT ON COLUMN contents.journal IS 'Journal to which the sequences of the view belong. NULL without any.';
COMMENT ON COLUMN contents.description IS 'What the view has, and the indexes that it uses.';

-- +goose StatementBegin
DO $$
BEGIN
    IF COALESCE(current_setting('perpetua.scratch', true), '') <> 'on' THEN
        COMMENT ON SCHEMA analytics IS 'Views for analysts. The view contents lists them.';
    END IF;
    PERFORM set_config('search_path', current_setting('perpetua.home'), true);
END $$;
-- +goose StatementEnd
