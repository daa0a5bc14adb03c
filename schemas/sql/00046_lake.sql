-- +goose Up

-- The schema lake is a DuckLake catalog in the form 1.0 (https://ducklake.select/docs/stable/specification): it names the Parquet
-- files of the ranges that are in the archive. Tables that begin with ducklake_ have the columns of the specification, because other
-- programs read them. Rows are not made from the log, so a rebuild leaves them. Only the role archive writes them.
--
-- A rebuild and an audit run the migrations in a schema of their own. They share this catalog.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'lake' AND NOT pg_has_role(nspowner, 'USAGE')) THEN
        RAISE EXCEPTION 'the schema lake belongs to another user'
            USING HINT = 'The venue keeps its DuckLake catalog there. Rename the schema, or give it to the user of the venue.';
    END IF;
    CREATE SCHEMA IF NOT EXISTS lake;
    COMMENT ON SCHEMA lake IS 'DuckLake catalog of the Parquet files of the archived ranges.';
END $$;
-- +goose StatementEnd

CREATE TABLE IF NOT EXISTS lake.ducklake_metadata (key varchar NOT NULL, value varchar NOT NULL, scope varchar, scope_id bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_snapshot (snapshot_id bigint PRIMARY KEY, snapshot_time timestamptz, schema_version bigint, next_catalog_id bigint, next_file_id bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_snapshot_changes (snapshot_id bigint PRIMARY KEY, changes_made varchar, author varchar, commit_message varchar, commit_extra_info varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_schema (schema_id bigint PRIMARY KEY, schema_uuid uuid, begin_snapshot bigint, end_snapshot bigint, schema_name varchar, path varchar, path_is_relative boolean);
CREATE TABLE IF NOT EXISTS lake.ducklake_schema_versions (begin_snapshot bigint, schema_version bigint, table_id bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_table (table_id bigint, table_uuid uuid, begin_snapshot bigint, end_snapshot bigint, schema_id bigint, table_name varchar, path varchar, path_is_relative boolean);
CREATE TABLE IF NOT EXISTS lake.ducklake_view (view_id bigint, view_uuid uuid, begin_snapshot bigint, end_snapshot bigint, schema_id bigint, view_name varchar, dialect varchar, sql varchar, column_aliases varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_column (column_id bigint, begin_snapshot bigint, end_snapshot bigint, table_id bigint, column_order bigint, column_name varchar, column_type varchar, initial_default varchar, default_value varchar, nulls_allowed boolean, parent_column bigint, default_value_type varchar, default_value_dialect varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_data_file (data_file_id bigint PRIMARY KEY, table_id bigint, begin_snapshot bigint, end_snapshot bigint, file_order bigint, path varchar, path_is_relative boolean, file_format varchar, record_count bigint, file_size_bytes bigint, footer_size bigint, row_id_start bigint, partition_id bigint, encryption_key varchar, mapping_id bigint, partial_max bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_delete_file (delete_file_id bigint PRIMARY KEY, table_id bigint, begin_snapshot bigint, end_snapshot bigint, data_file_id bigint, path varchar, path_is_relative boolean, format varchar, delete_count bigint, file_size_bytes bigint, footer_size bigint, encryption_key varchar, partial_max bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_files_scheduled_for_deletion (data_file_id bigint, path varchar, path_is_relative boolean, schedule_start timestamptz);
CREATE TABLE IF NOT EXISTS lake.ducklake_inlined_data_tables (table_id bigint, table_name varchar, schema_version bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_table_stats (table_id bigint, record_count bigint, next_row_id bigint, file_size_bytes bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_table_column_stats (table_id bigint, column_id bigint, contains_null boolean, contains_nan boolean, min_value varchar, max_value varchar, extra_stats varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_file_column_stats (data_file_id bigint, table_id bigint, column_id bigint, column_size_bytes bigint, value_count bigint, null_count bigint, min_value varchar, max_value varchar, contains_nan boolean, extra_stats varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_file_variant_stats (data_file_id bigint, table_id bigint, column_id bigint, variant_path varchar, shredded_type varchar, column_size_bytes bigint, value_count bigint, null_count bigint, min_value varchar, max_value varchar, contains_nan boolean, extra_stats varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_partition_info (partition_id bigint, table_id bigint, begin_snapshot bigint, end_snapshot bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_partition_column (partition_id bigint, table_id bigint, partition_key_index bigint, column_id bigint, transform varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_file_partition_value (data_file_id bigint, table_id bigint, partition_key_index bigint, partition_value varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_sort_info (sort_id bigint, table_id bigint, begin_snapshot bigint, end_snapshot bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_sort_expression (sort_id bigint, table_id bigint, sort_key_index bigint, expression varchar, dialect varchar, sort_direction varchar, null_order varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_column_mapping (mapping_id bigint, table_id bigint, type varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_name_mapping (mapping_id bigint, column_id bigint, source_name varchar, target_field_id bigint, parent_column bigint, is_partition boolean);
CREATE TABLE IF NOT EXISTS lake.ducklake_tag (object_id bigint, begin_snapshot bigint, end_snapshot bigint, key varchar, value varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_column_tag (table_id bigint, column_id bigint, begin_snapshot bigint, end_snapshot bigint, key varchar, value varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_macro (schema_id bigint, macro_id bigint, macro_name varchar, begin_snapshot bigint, end_snapshot bigint);
CREATE TABLE IF NOT EXISTS lake.ducklake_macro_impl (macro_id bigint, impl_id bigint, dialect varchar, sql varchar, type varchar);
CREATE TABLE IF NOT EXISTS lake.ducklake_macro_parameters (macro_id bigint, impl_id bigint, column_id bigint, parameter_name varchar, parameter_type varchar, default_value varchar, default_value_type varchar);

-- The position of the catalog in each journal. A row is written in the transaction that adds the files of its range.
CREATE TABLE IF NOT EXISTS lake.ranges (
    journal     text   NOT NULL,
    partition   integer NOT NULL,
    range       bigint NOT NULL CHECK (range >= 0),
    sequence    bigint NOT NULL CHECK (sequence > 0),
    hash        bytea  NOT NULL CHECK (length(hash) = 32),
    manifest    text   NOT NULL CHECK (length(manifest) = 64),
    snapshot_id bigint NOT NULL,
    added       timestamptz(6) NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (journal, partition, range)
);
COMMENT ON TABLE lake.ranges IS 'The archived ranges whose rows are in the files of the catalog.';
COMMENT ON COLUMN lake.ranges.journal IS 'Journal: trading or onboarding.';
COMMENT ON COLUMN lake.ranges.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN lake.ranges.range IS 'Number of the range, from 0. It is also that of its manifest in the archive.';
COMMENT ON COLUMN lake.ranges.sequence IS 'Sequence of the first record after the range.';
COMMENT ON COLUMN lake.ranges.hash IS 'SHA-256 of the last record of the range.';
COMMENT ON COLUMN lake.ranges.manifest IS 'SHA-256 of the range''s manifest in the archive, in hex.';
COMMENT ON COLUMN lake.ranges.snapshot_id IS 'Snapshot of the catalog that added the range.';
COMMENT ON COLUMN lake.ranges.added IS 'When the range was added.';

-- More views for analysts. Without a catalog they have all rows.
-- +goose StatementBegin
DO $$
DECLARE
    home    text := quote_ident(current_schema());
    scratch boolean := COALESCE(current_setting('perpetua.scratch', true), '') = 'on';
    made    text := CASE WHEN scratch THEN quote_ident(current_schema() || '_analytics') ELSE 'analytics' END;
BEGIN
    PERFORM set_config('perpetua.home', home, true), set_config('search_path', made || ', ' || home, true);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION recent_from(journal text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT COALESCE(max(r.sequence), 0) FROM lake.ranges r
    WHERE r.journal = recent_from.journal AND r.partition = 0 AND r.added < now() - interval '10 minutes';
END;
-- +goose StatementEnd
COMMENT ON FUNCTION recent_from(text) IS 'Version 1. Sequence of the first record of a journal that was not in the files of the DuckLake catalog ten minutes ago. 0 without files.';

-- The numbers have the type of the files. Without one, DuckDB would read them as floating point.
CREATE VIEW recent_trades AS
SELECT t.sequence, t.ordinal::bigint AS ordinal, t.time, t.code, t.order_code, t.customer_code, t.broker, t.symbol, t.action, t.price::numeric(38,18) AS price,
    t.amount::numeric(38,18) AS amount, t.notional::numeric(38,18) AS notional, t.fee::numeric(38,18) AS fee, t.fee_currency, t.role, t.type
FROM (SELECT recent_from('trading') AS start OFFSET 0) f CROSS JOIN trading_brokers b
    CROSS JOIN LATERAL (SELECT t.* FROM trades t WHERE t.broker = b.broker AND t.sequence >= f.start OFFSET 0) t;
COMMENT ON VIEW recent_trades IS 'Version 1. Rows for the table trades of the files that are newer than the files. Index: trades_by_broker.';
COMMENT ON COLUMN recent_trades.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_trades.ordinal IS 'Place of the row among the rows of the record, as in the files.';
COMMENT ON COLUMN recent_trades.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_trades.code IS 'Id of the trade.';
COMMENT ON COLUMN recent_trades.order_code IS 'Order of this side. NULL without one.';
COMMENT ON COLUMN recent_trades.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN recent_trades.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN recent_trades.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN recent_trades.action IS 'buy or sell.';
COMMENT ON COLUMN recent_trades.price IS 'Price of the trade.';
COMMENT ON COLUMN recent_trades.amount IS 'Amount in contracts.';
COMMENT ON COLUMN recent_trades.notional IS 'Value in the quote currency.';
COMMENT ON COLUMN recent_trades.fee IS 'Fee, negative for a rebate.';
COMMENT ON COLUMN recent_trades.fee_currency IS 'Currency of the fee.';
COMMENT ON COLUMN recent_trades.role IS 'taker or maker.';
COMMENT ON COLUMN recent_trades.type IS 'Kind of trade.';

CREATE VIEW recent_liquidations AS
SELECT t.sequence, t.ordinal::bigint AS ordinal, t.time, t.code, t.order_code, t.customer_code, t.broker, t.symbol, t.action, t.price::numeric(38,18) AS price,
    t.amount::numeric(38,18) AS amount, t.notional::numeric(38,18) AS notional, t.fee::numeric(38,18) AS fee, t.fee_currency, t.role, t.type,
    (SELECT COALESCE(sum(p.amount), 0) FROM transactions p WHERE p.customer_code = t.customer_code AND p.sequence = t.sequence AND p.code = t.code
        AND p.type IN ('liquidation', 'auto_deleveraging'))::numeric(38,18) AS realized_pnl
FROM (SELECT recent_from('trading') AS start OFFSET 0) f CROSS JOIN trading_brokers b
    CROSS JOIN LATERAL (SELECT t.* FROM trades t WHERE t.broker = b.broker AND t.sequence >= f.start OFFSET 0) t
WHERE t.type <> 'trade';
COMMENT ON VIEW recent_liquidations IS 'Version 1. Rows for the table liquidations of the files that are newer than the files. Indexes: trades_by_broker and the primary key of transactions.';
COMMENT ON COLUMN recent_liquidations.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_liquidations.ordinal IS 'Place of the row among the rows of the record, as in the files.';
COMMENT ON COLUMN recent_liquidations.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_liquidations.code IS 'Id of the trade.';
COMMENT ON COLUMN recent_liquidations.order_code IS 'Order of this side. NULL without one.';
COMMENT ON COLUMN recent_liquidations.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN recent_liquidations.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN recent_liquidations.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN recent_liquidations.action IS 'buy or sell.';
COMMENT ON COLUMN recent_liquidations.price IS 'Price of the trade.';
COMMENT ON COLUMN recent_liquidations.amount IS 'Amount in contracts.';
COMMENT ON COLUMN recent_liquidations.notional IS 'Value in the quote currency.';
COMMENT ON COLUMN recent_liquidations.fee IS 'Fee, negative for a rebate.';
COMMENT ON COLUMN recent_liquidations.fee_currency IS 'Currency of the fee.';
COMMENT ON COLUMN recent_liquidations.role IS 'taker or maker.';
COMMENT ON COLUMN recent_liquidations.type IS 'Kind of trade.';
COMMENT ON COLUMN recent_liquidations.realized_pnl IS 'Profit or loss of the closed part, before the fee.';

CREATE VIEW recent_postings AS
SELECT x.sequence, x.time, x.code, x.account, x.customer_code, x.broker, x.type, x.currency, x.amount::numeric(38,18) AS amount, x.balance::numeric(38,18) AS balance,
    x.symbol, x.order_code
FROM (SELECT recent_from('trading') AS start OFFSET 0) f CROSS JOIN LATERAL (
    SELECT t.sequence, t.updated AS time, t.code, NULL::text AS account, t.customer_code, t.broker, t.type, t.currency, t.amount, t.balance, t.symbol,
        t.order_code
    FROM trading_brokers b CROSS JOIN LATERAL (SELECT t.* FROM transactions t WHERE t.broker = b.broker AND t.sequence >= f.start OFFSET 0) t
    WHERE t.reference_id IS NULL
    UNION ALL
    SELECT t.changed_sequence, t.updated, t.code, NULL, t.customer_code, t.broker, t.type, t.currency, t.amount, t.balance, t.symbol, t.order_code
    FROM transactions t WHERE t.reference_id IS NOT NULL AND t.status = 'completed' AND t.changed_sequence >= f.start
    UNION ALL
    SELECT p.sequence, p.time, NULL, p.account, NULL, NULL, p.type, p.currency, p.amount, p.balance, p.symbol, p.order_code
    FROM venue_postings p WHERE p.sequence >= f.start) x;
COMMENT ON VIEW recent_postings IS 'Version 1. Rows for the table postings of the files that are newer than the files. They have no ordinal. Indexes: transactions_by_broker, transactions_of_transfers, and the primary key of venue_postings.';
COMMENT ON COLUMN recent_postings.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_postings.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_postings.code IS 'Id of the transaction. NULL for an account of the venue.';
COMMENT ON COLUMN recent_postings.account IS 'Account of the venue. NULL for a customer.';
COMMENT ON COLUMN recent_postings.customer_code IS 'Code of the customer. NULL for an account of the venue.';
COMMENT ON COLUMN recent_postings.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN recent_postings.type IS 'Kind of movement.';
COMMENT ON COLUMN recent_postings.currency IS 'Currency of the amount.';
COMMENT ON COLUMN recent_postings.amount IS 'Amount, negative if it leaves the account.';
COMMENT ON COLUMN recent_postings.balance IS 'Balance after the posting.';
COMMENT ON COLUMN recent_postings.symbol IS 'Instrument. NULL for deposits and withdrawals.';
COMMENT ON COLUMN recent_postings.order_code IS 'Order that caused the posting. NULL without one.';

CREATE VIEW recent_funding AS
SELECT t.sequence, t.updated AS time, t.code, t.customer_code, t.broker, t.symbol, t.currency, t.amount::numeric(38,18) AS amount,
    t.funding_rate::numeric(38,18) AS funding_rate, t.position_amount::numeric(38,18) AS position_amount, t.mark_price::numeric(38,18) AS mark_price
FROM (SELECT recent_from('trading') AS start OFFSET 0) f CROSS JOIN trading_brokers b
    CROSS JOIN LATERAL (SELECT t.* FROM transactions t WHERE t.broker = b.broker AND t.sequence >= f.start OFFSET 0) t
WHERE t.type = 'funding';
COMMENT ON VIEW recent_funding IS 'Version 1. Rows for the table funding of the files that are newer than the files. They have no ordinal. Index: transactions_by_broker.';
COMMENT ON COLUMN recent_funding.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_funding.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_funding.code IS 'Id of the payment.';
COMMENT ON COLUMN recent_funding.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN recent_funding.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN recent_funding.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN recent_funding.currency IS 'Currency of the amount.';
COMMENT ON COLUMN recent_funding.amount IS 'Amount, negative if the customer paid.';
COMMENT ON COLUMN recent_funding.funding_rate IS 'Rate of the payment.';
COMMENT ON COLUMN recent_funding.position_amount IS 'Size of the position in contracts, negative if short.';
COMMENT ON COLUMN recent_funding.mark_price IS 'Mark price of the funding time.';

CREATE VIEW recent_funding_rates AS
SELECT r.sequence, r.ordinal::bigint AS ordinal, c.time, r.symbol, r.time AS instant, r.funding_rate::numeric(38,18) AS funding_rate,
    r.index_price::numeric(38,18) AS index_price, r.mark_price::numeric(38,18) AS mark_price, r.interval_seconds::bigint AS interval_seconds, r.missed
FROM (SELECT recent_from('trading') AS start OFFSET 0) f JOIN funding_rates r ON r.sequence >= f.start
    JOIN records c ON c.journal = 'trading' AND c.sequence = r.sequence;
COMMENT ON VIEW recent_funding_rates IS 'Version 1. Rows for the table funding_rates of the files that are newer than the files. Indexes: the primary keys of funding_rates and records.';
COMMENT ON COLUMN recent_funding_rates.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_funding_rates.ordinal IS 'Place of the row among the rows of the record, as in the files.';
COMMENT ON COLUMN recent_funding_rates.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_funding_rates.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN recent_funding_rates.instant IS 'Funding time, UTC.';
COMMENT ON COLUMN recent_funding_rates.funding_rate IS 'Rate of the payment.';
COMMENT ON COLUMN recent_funding_rates.index_price IS 'Index price of the funding time.';
COMMENT ON COLUMN recent_funding_rates.mark_price IS 'Mark price of the funding time.';
COMMENT ON COLUMN recent_funding_rates.interval_seconds IS 'Time since the funding time before.';
COMMENT ON COLUMN recent_funding_rates.missed IS 'Whether no rate was fixed in time.';

CREATE VIEW recent_orders AS
SELECT v.sequence, v.updated AS time, o.code, o.customer_code, o.broker, o.symbol, o.action, o.type, v.status, v.amount::numeric(38,18) AS amount,
    v.filled_amount::numeric(38,18) AS filled_amount, o.cash_amount::numeric(38,18) AS cash_amount, v.filled_quote::numeric(38,18) AS filled_quote, v.limit_price::numeric(38,18) AS limit_price,
    v.trigger_price::numeric(38,18) AS trigger_price, v.stop_loss_price::numeric(38,18) AS stop_loss_price, v.take_profit_price::numeric(38,18) AS take_profit_price,
    o.trigger_price_type, v.triggered, v.average_fill_price::numeric(38,18) AS average_fill_price, o.time_in_force, v.expire_time, o.post_only,
    o.reduce_only, v.reason, o.created
FROM (SELECT recent_from('trading') AS start OFFSET 0) f
    CROSS JOIN LATERAL (
        SELECT h.code FROM order_history h WHERE h.until >= f.start
        UNION
        SELECT n.code FROM trading_brokers b CROSS JOIN LATERAL (
            SELECT n.code FROM orders n WHERE n.broker = b.broker AND n.created_sequence >= f.start OFFSET 0) n) c
    JOIN orders o ON o.code = c.code
    CROSS JOIN LATERAL (
        SELECT o.sequence, o.updated, o.status, o.amount, o.filled_amount, o.filled_quote, o.limit_price, o.trigger_price, o.stop_loss_price,
            o.take_profit_price, o.triggered, o.average_fill_price, o.expire_time, o.reason
        UNION ALL
        SELECT h.since, h.updated, h.status, h.amount, h.filled_amount, h.filled_quote, h.limit_price, h.trigger_price, h.stop_loss_price,
            h.take_profit_price, h.triggered, h.average_fill_price, h.expire_time, h.reason
        FROM order_history h WHERE h.code = o.code AND h.until > f.start) v
WHERE v.sequence >= f.start;
COMMENT ON VIEW recent_orders IS 'Version 1. Rows for the table orders of the files that are newer than the files. An order has one row for each record that changed it, without ordinal and event. Indexes: orders_by_broker, the primary key of orders, and the partitions of order_history by until.';
COMMENT ON COLUMN recent_orders.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_orders.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_orders.code IS 'Id of the order.';
COMMENT ON COLUMN recent_orders.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN recent_orders.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN recent_orders.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN recent_orders.action IS 'buy or sell.';
COMMENT ON COLUMN recent_orders.type IS 'Order type, such as limit or market.';
COMMENT ON COLUMN recent_orders.status IS 'open, partially_filled, filled, canceled, expired or rejected.';
COMMENT ON COLUMN recent_orders.amount IS 'Ordered amount in contracts.';
COMMENT ON COLUMN recent_orders.filled_amount IS 'Filled amount in contracts.';
COMMENT ON COLUMN recent_orders.cash_amount IS 'Ordered value, for an order by value.';
COMMENT ON COLUMN recent_orders.filled_quote IS 'Value of the fills.';
COMMENT ON COLUMN recent_orders.limit_price IS 'Limit price.';
COMMENT ON COLUMN recent_orders.trigger_price IS 'Price at which a stop fires.';
COMMENT ON COLUMN recent_orders.stop_loss_price IS 'Price of the attached stop loss.';
COMMENT ON COLUMN recent_orders.take_profit_price IS 'Price of the attached take profit.';
COMMENT ON COLUMN recent_orders.trigger_price_type IS 'Price that a stop watches.';
COMMENT ON COLUMN recent_orders.triggered IS 'When the stop fired, UTC.';
COMMENT ON COLUMN recent_orders.average_fill_price IS 'Average price of the fills.';
COMMENT ON COLUMN recent_orders.time_in_force IS 'GTC, GTD, IOC or FOK.';
COMMENT ON COLUMN recent_orders.expire_time IS 'When a GTD order expires, UTC.';
COMMENT ON COLUMN recent_orders.post_only IS 'Whether the order may only make.';
COMMENT ON COLUMN recent_orders.reduce_only IS 'Whether the order may only reduce a position.';
COMMENT ON COLUMN recent_orders.reason IS 'Why the order was rejected or ended.';
COMMENT ON COLUMN recent_orders.created IS 'When the order was made, UTC.';

CREATE VIEW recent_positions AS
SELECT v.sequence, v.updated AS time, p.customer_code, p.broker, p.symbol, v.amount::numeric(38,18) AS amount, v.cost::numeric(38,18) AS cost, v.entry_price::numeric(38,18) AS entry_price
FROM (SELECT recent_from('trading') AS start OFFSET 0) f CROSS JOIN positions p
    CROSS JOIN LATERAL (
        SELECT p.sequence, p.updated, p.amount, p.cost, p.entry_price
        UNION ALL
        SELECT h.since, h.updated, h.amount, h.cost, h.entry_price FROM position_history h
        WHERE h.customer_code = p.customer_code AND h.symbol = p.symbol AND h.until > f.start) v
WHERE v.sequence >= f.start AND p.sequence >= f.start;
COMMENT ON VIEW recent_positions IS 'Version 1. Rows for the table positions of the files that are newer than the files. A position has one row for each record that changed it, without ordinal. Indexes: the primary key of position_history; all rows of positions are read.';
COMMENT ON COLUMN recent_positions.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN recent_positions.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN recent_positions.customer_code IS 'Code of the customer, or insurance-fund.';
COMMENT ON COLUMN recent_positions.broker IS 'Broker to whom the customer belongs, or venue for the insurance fund.';
COMMENT ON COLUMN recent_positions.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN recent_positions.amount IS 'Size in contracts, negative if short.';
COMMENT ON COLUMN recent_positions.cost IS 'What the position cost, negative if short.';
COMMENT ON COLUMN recent_positions.entry_price IS 'Average entry price. NULL for a closed position.';

CREATE VIEW onboarding_recent_triggers AS
SELECT v.sequence, v.ordinal::bigint AS ordinal, v.time, v.trigger_id, CASE WHEN n.first THEN t.entitlement_id END AS entitlement_id,
    t.owner_id, t.owner_type, CASE WHEN n.first THEN t.tenant END AS tenant, v.action, v.status, v.result, v.actor_kind, v.request_id, v.outcome
FROM (SELECT recent_from('onboarding') AS start OFFSET 0) f JOIN trigger_events v ON v.sequence >= f.start JOIN triggers t ON t.id = v.trigger_id
    CROSS JOIN LATERAL (SELECT t.created_sequence = v.sequence AND t.created_ordinal = v.ordinal AS first) n
WHERE v.status IS NOT NULL;
COMMENT ON VIEW onboarding_recent_triggers IS 'Version 1. Rows for the table triggers of the files that are newer than the files. No personal data. All rows of trigger_events are read.';
COMMENT ON COLUMN onboarding_recent_triggers.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN onboarding_recent_triggers.ordinal IS 'Place of the row among the rows of the record, as in the files.';
COMMENT ON COLUMN onboarding_recent_triggers.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN onboarding_recent_triggers.trigger_id IS 'Id of the application.';
COMMENT ON COLUMN onboarding_recent_triggers.entitlement_id IS 'Entitlement that is applied for, in the first row.';
COMMENT ON COLUMN onboarding_recent_triggers.owner_id IS 'Person or corporate.';
COMMENT ON COLUMN onboarding_recent_triggers.owner_type IS 'person or corporate.';
COMMENT ON COLUMN onboarding_recent_triggers.tenant IS 'Tenant, in the first row.';
COMMENT ON COLUMN onboarding_recent_triggers.action IS 'What changed the status. NULL in the first row.';
COMMENT ON COLUMN onboarding_recent_triggers.status IS 'Status after the change.';
COMMENT ON COLUMN onboarding_recent_triggers.result IS 'Result at the end.';
COMMENT ON COLUMN onboarding_recent_triggers.actor_kind IS 'Who changed it.';
COMMENT ON COLUMN onboarding_recent_triggers.request_id IS 'Request for information.';
COMMENT ON COLUMN onboarding_recent_triggers.outcome IS 'Outcome of a video identification.';

CREATE VIEW onboarding_recent_responses AS
SELECT r.sequence, r.ordinal::bigint AS ordinal, r.created_at AS time, r.id, r.questionnaire_id, r.questionnaire_version_id,
    r.version_number::bigint AS version_number, r.owner_id, r.owner_type, r.tenant
FROM (SELECT recent_from('onboarding') AS start OFFSET 0) f JOIN responses r ON r.sequence >= f.start;
COMMENT ON VIEW onboarding_recent_responses IS 'Version 1. Rows for the table responses of the files that are newer than the files. No personal data. All rows of responses are read.';
COMMENT ON COLUMN onboarding_recent_responses.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN onboarding_recent_responses.ordinal IS 'Place of the row among the rows of the record, as in the files.';
COMMENT ON COLUMN onboarding_recent_responses.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN onboarding_recent_responses.id IS 'Id of the response.';
COMMENT ON COLUMN onboarding_recent_responses.questionnaire_id IS 'Questionnaire.';
COMMENT ON COLUMN onboarding_recent_responses.questionnaire_version_id IS 'Version of the questionnaire.';
COMMENT ON COLUMN onboarding_recent_responses.version_number IS 'Number of that version.';
COMMENT ON COLUMN onboarding_recent_responses.owner_id IS 'Person or corporate.';
COMMENT ON COLUMN onboarding_recent_responses.owner_type IS 'person or corporate.';
COMMENT ON COLUMN onboarding_recent_responses.tenant IS 'Tenant, which is the broker that registered the owner.';

-- +goose StatementBegin
DO $$
BEGIN
    IF COALESCE(current_setting('perpetua.scratch', true), '') = 'on' THEN
        EXECUTE format('DROP SCHEMA %I CASCADE', current_schema());
    END IF;
    PERFORM set_config('search_path', current_setting('perpetua.home'), true);
END $$;
-- +goose StatementEnd
