-- +goose Up

-- An update of a count is one in place where no index is on what it changes. This one was.
DROP INDEX list_counts_empty;
-- Nobody looks for the open deliveries about an owner any more: the sender has them from the log.
DROP INDEX deliveries_open;

-- Counts the rows that a statement has made or changed. The first argument is an expression for the names of the lists that a row
-- is in, an array whose NULLs are none. The second, if there is one, has the columns that the names depend on: rows that have the
-- same ones, of the same records, are counted at once. What changes the counts is a change of a row, so they are right whichever
-- statement makes it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed text := 'SELECT *, 1 AS n FROM new_rows';
    lists   text[]; -- with widths and buckets: the counts that are 0 now
    widths  integer[];
    buckets bigint[];
BEGIN
    IF TG_OP = 'UPDATE' THEN
        changed := changed || ' UNION ALL SELECT *, -1 FROM old_rows';
    END IF;
    IF TG_NARGS = 1 THEN
        changed := format('SELECT *, created_sequence / 512 AS block FROM (%s) r', changed);
    ELSE
        changed := format('SELECT %s, created_sequence / 512 AS block, sum(n) AS n FROM (%s) r GROUP BY %1$s, block HAVING sum(n) <> 0',
            TG_ARGV[1], changed);
    END IF;
    EXECUTE format('WITH counted AS (
            INSERT INTO list_counts AS c (list, width, bucket, n)
            SELECT list, width, block / (width / 512), sum(n)
            FROM (SELECT unnest(%s) AS list, block, n FROM (%s) changed) moved, (VALUES (2097152), (32768), (512)) widths (width)
            WHERE list IS NOT NULL
            GROUP BY 1, 2, 3 HAVING sum(n) <> 0
            ORDER BY 1, 2, 3
            ON CONFLICT (list, width, bucket) DO UPDATE SET n = c.n + excluded.n
            RETURNING c.*)
        SELECT array_agg(list), array_agg(width), array_agg(bucket) FROM counted WHERE n = 0', TG_ARGV[0], changed)
        INTO lists, widths, buckets;
    -- A row that is not there and one that says 0 would say the same, and which it is would depend on how the log was cut.
    IF lists IS NOT NULL THEN
        DELETE FROM list_counts c USING unnest(lists, widths, buckets) e (list, width, bucket)
        WHERE c.list = e.list AND c.width = e.width AND c.bucket = e.bucket;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

DROP TRIGGER deliveries_added ON deliveries;
DROP TRIGGER deliveries_changed ON deliveries;
CREATE TRIGGER deliveries_added AFTER INSERT ON deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]',
        'status, webhook_id');
CREATE TRIGGER deliveries_changed AFTER UPDATE ON deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]',
        'status, webhook_id');

-- +goose Down
DROP TRIGGER deliveries_added ON deliveries;
DROP TRIGGER deliveries_changed ON deliveries;
CREATE TRIGGER deliveries_added AFTER INSERT ON deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]');
CREATE TRIGGER deliveries_changed AFTER UPDATE ON deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]');
CREATE INDEX deliveries_open ON deliveries (webhook_id, owner_id, created_sequence, created_ordinal) WHERE status IN ('pending', 'retrying');
CREATE INDEX list_counts_empty ON list_counts (list) WHERE n = 0;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    old_rows text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        old_rows := format('UNION ALL SELECT unnest(%s), created_sequence, -1 FROM old_rows', TG_ARGV[0]);
    END IF;
    EXECUTE format('INSERT INTO list_counts AS c (list, width, bucket, n)
        SELECT list, width, created_sequence / width, sum(n)
        FROM (SELECT unnest(%s) AS list, created_sequence, 1 AS n FROM new_rows %s) moved, (VALUES (2097152), (32768), (512)) widths (width)
        WHERE list IS NOT NULL
        GROUP BY 1, 2, 3 HAVING sum(n) <> 0
        ORDER BY 1, 2, 3
        ON CONFLICT (list, width, bucket) DO UPDATE SET n = c.n + excluded.n', TG_ARGV[0], old_rows);
    DELETE FROM list_counts WHERE n = 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
