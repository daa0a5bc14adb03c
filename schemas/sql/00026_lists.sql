-- +goose Up

-- Numbers of rows, for lists that are read by numbered pages and may be long: for each list the rows that were made by the records
-- from bucket * width on, width many of them. So neither the length of a list nor a page takes longer the more rows there are. An
-- index on n would keep updates of a count from being done in place.
CREATE TABLE list_counts (
    list   text    NOT NULL,
    width  integer NOT NULL,
    bucket bigint  NOT NULL,
    n      bigint  NOT NULL,
    PRIMARY KEY (list, width, bucket)
) WITH (fillfactor = 50);
COMMENT ON TABLE list_counts IS 'Number of rows in long lists by ranges of records, from which numbered pages are found. Triggers of the counted tables keep it.';
COMMENT ON COLUMN list_counts.list IS 'Name of the list: the table and the values it is filtered by.';
COMMENT ON COLUMN list_counts.width IS 'Number of records in the range: 2097152, 32768 or 512.';
COMMENT ON COLUMN list_counts.bucket IS 'Number of the range: the sequence divided by the width.';
COMMENT ON COLUMN list_counts.n IS 'Rows of the list that records in the range made. Never 0.';

-- Counts the rows that a statement has made or changed. The first argument is an expression for the names of the lists that a row
-- is in, an array whose NULLs are none. The second, if there is one, has the columns that the names depend on: rows that have the
-- same ones, of the same records, are counted at once. What changes the counts is a change of a row, so they are right whichever
-- statement makes it.
-- +goose StatementBegin
CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Finds a page of size rows after so many others of the lists, counted from the newest row, or from the oldest. The n rows of the
-- page were made by the records from since on and before until; of those, from the newest on, it comes after skip others.
-- Without n there are none.
--
-- The plans are made once: which lists they are for makes no difference to them.
-- +goose StatementBegin
CREATE FUNCTION list_page(lists text[], size bigint, after bigint, oldest_first boolean, OUT since bigint, OUT until bigint, OUT skip bigint, OUT n bigint)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    total    bigint := (SELECT sum(c.n) FROM list_counts c WHERE c.list = ANY (lists) AND c.width = 2097152);
    first    bigint := CASE WHEN oldest_first THEN total - after - size ELSE after END;
    last     bigint := LEAST(first + size, total) - 1;
    wanted   bigint; -- the row that is looked for, 0 for the newest
    passed   bigint; -- rows that are newer than those of the bucket
    lowest   bigint;
    highest  bigint;
    level    integer;
    here     bigint; -- the bucket
    held     bigint; -- rows in it
BEGIN
    first := GREATEST(first, 0);
    IF total IS NULL OR last < first THEN
        RETURN;
    END IF;
    n := last - first + 1;
    FOREACH wanted IN ARRAY ARRAY[first, last] LOOP
        IF until IS NULL OR wanted >= passed + held THEN -- else the page ends in the block that it begins in
            passed := 0;
            lowest := 0;
            highest := 9223372036854775807;
            FOREACH level IN ARRAY ARRAY[2097152, 32768, 512] LOOP
                FOR here, held IN SELECT c.bucket, sum(c.n)::bigint FROM list_counts c
                    WHERE c.list = ANY (lists) AND c.width = level AND c.bucket BETWEEN lowest AND highest
                    GROUP BY c.bucket ORDER BY c.bucket DESC
                LOOP
                    EXIT WHEN wanted < passed + held;
                    passed := passed + held;
                END LOOP;
                lowest := here * 64;
                highest := lowest + 63;
            END LOOP;
        END IF;
        IF until IS NULL THEN
            until := (here + 1) * 512;
            skip := first - passed;
        END IF;
        since := here * 512;
    END LOOP;
END $$;
-- +goose StatementEnd

SELECT track_changes('list_counts');
