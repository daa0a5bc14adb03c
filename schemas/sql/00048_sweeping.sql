-- +goose Up

-- An order that trades more than fits one record is not in the book between its records. The rows did not say so.
--
-- Projectors change checkpoints first. The lock stops them, so that they cannot lock the tables below in another order. Questions as
-- of a record lock the tables of history first.
LOCK TABLE checkpoints IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE order_history ADD COLUMN sweeping boolean NOT NULL DEFAULT false;
ALTER TABLE orders ADD COLUMN sweeping boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN orders.sweeping IS 'Whether the order continues to trade in a later record. Until then it is live, but not in the book.';
-- +goose StatementBegin
DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN SELECT relid FROM pg_partition_tree('order_history') LOOP
        EXECUTE format('COMMENT ON COLUMN %s.sweeping IS %L', name,
            'Whether the order continued to trade in a later record. Until then it was live, but not in the book.');
    END LOOP;
END $$;
-- +goose StatementEnd

-- The versions so far do not say it, so history begins again after the last record. A rebuild makes them from the log.
UPDATE history_bounds SET built = greatest(built, written) WHERE journal = 'trading';

-- As before, and for builds that write the column. A build without it calls the function without sweeps. Its versions do not count, as
-- if it wrote none.
DROP FUNCTION history_written(text, bigint, bigint);
-- +goose StatementBegin
CREATE FUNCTION history_written(of text, first bigint, last bigint, sweeps boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tables text[] := CASE of WHEN 'trading' THEN ARRAY['order_history', 'balance_history', 'position_history']
        ELSE ARRAY['owner_history', 'document_history', 'trigger_history'] END;
    name   text;
    before bigint;
BEGIN
    IF of = 'trading' AND NOT sweeps THEN
        RETURN;
    END IF;
    UPDATE history_bounds SET written = last WHERE journal = of AND written = first - 1;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT written INTO before FROM history_bounds WHERE journal = of;
    UPDATE history_bounds SET built = first - 1, written = last WHERE journal = of;
    IF of = 'trading' THEN
        PERFORM history_partitions(first);
        -- An earlier build has changed these rows, and left the column as it was.
        UPDATE orders SET sweeping = false WHERE live AND sweeping AND sequence > before AND sequence < first;
    END IF;
    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('DELETE FROM %I WHERE until >= $1', name) USING first;
    END LOOP;
END $$;
-- +goose StatementEnd

-- The views of the book, without such orders. In a schema beside the live one the migration of the last views has dropped them.
-- +goose StatementBegin
DO $migration$
DECLARE
    home text := quote_ident(current_schema());
BEGIN
    IF COALESCE(current_setting('perpetua.scratch', true), '') = 'on' THEN
        RETURN;
    END IF;
    PERFORM set_config('search_path', 'analytics, ' || home, true);

    CREATE OR REPLACE VIEW book_orders AS
    SELECT o.symbol, CASE o.action WHEN 'buy' THEN 'bid' ELSE 'ask' END AS side, o.limit_price AS price, o.amount - o.filled_amount AS amount,
        o.code, o.customer_code, o.broker, o.updated AS since_time, o.sequence AS since, NULL::bigint AS until
    FROM orders o
    WHERE o.live AND NOT o.sweeping AND o.limit_price IS NOT NULL AND (o.trigger_price_type IS NULL OR o.triggered IS NOT NULL)
    UNION ALL
    SELECT o.symbol, CASE o.action WHEN 'buy' THEN 'bid' ELSE 'ask' END, v.limit_price, v.amount - v.filled_amount,
        v.code, v.customer_code, o.broker, v.updated, v.since, v.until
    FROM order_history v JOIN orders o ON o.code = v.code
    WHERE v.live AND NOT v.sweeping AND v.limit_price IS NOT NULL AND (o.trigger_price_type IS NULL OR v.triggered IS NOT NULL);
    COMMENT ON VIEW book_orders IS 'Version 1. Orders that rested in the book, with each state that they had. The book as of record S is: since <= S AND (until > S OR until IS NULL), for S from bounds.history_from to bounds.sequence. An order that trades in several records is not in the book between them. Indexes: orders_live and the partitions of order_history by until; book_depth_hourly and book_at use order_history_live.';

    -- As text, because the first releases of Postgres 14 would end the statement at the first semicolon.
    EXECUTE $sql$
    CREATE OR REPLACE FUNCTION book_at(symbol text, sequence bigint) RETURNS TABLE (side text, price numeric, amount numeric, orders bigint)
    LANGUAGE sql STABLE COST 100000 ROWS 100
    BEGIN ATOMIC
        SELECT CASE o.action WHEN 'buy' THEN 'bid' ELSE 'ask' END, r.price, sum(r.amount), count(*)
        FROM (SELECT history_checked(book_at.sequence) AS position OFFSET 0) s
            CROSS JOIN LATERAL (
                SELECT o.code, o.triggered, o.limit_price AS price, o.amount - o.filled_amount AS amount
                FROM orders o WHERE o.live AND NOT o.sweeping AND o.sequence <= s.position
                UNION ALL
                SELECT v.code, v.triggered, v.limit_price, v.amount - v.filled_amount
                FROM (SELECT customer_code FROM customers UNION ALL SELECT 'insurance-fund') c CROSS JOIN LATERAL (
                    SELECT v.code, v.triggered, v.limit_price, v.amount, v.filled_amount
                    FROM order_history v
                    WHERE v.customer_code = c.customer_code AND v.live AND NOT v.sweeping AND v.since <= s.position AND v.until > s.position
                        AND int8range(((hashtextextended(v.customer_code, 0) & 4194303) << 40) + v.since,
                            ((hashtextextended(v.customer_code, 0) & 4194303) << 40) + v.until)
                            @> (((hashtextextended(c.customer_code, 0) & 4194303) << 40) + s.position) OFFSET 0) v) r
            CROSS JOIN LATERAL (SELECT o.symbol, o.action, o.trigger_price_type FROM orders o WHERE o.code = r.code OFFSET 0) o
        WHERE o.symbol = book_at.symbol AND r.price IS NOT NULL AND (o.trigger_price_type IS NULL OR r.triggered IS NOT NULL)
        GROUP BY o.action, r.price
        ORDER BY 1, CASE o.action WHEN 'buy' THEN -r.price ELSE r.price END;
    END
    $sql$;
    COMMENT ON FUNCTION book_at(text, bigint) IS 'Version 1. Depth of the book of an instrument as of a record: side, price, amount in contracts and number of orders by price, asks ascending and bids descending. An order that trades in several records is not in the book between them. Raises an error for a record before bounds.history_from or after bounds.sequence.';

    PERFORM set_config('search_path', home, true);
END $migration$;
-- +goose StatementEnd
