-- +goose Up

-- What is counted of lists by 65536 records is counted by 32768 and by 2097152: whoever looks for a page goes through no more than
-- 64 counts on each level.
INSERT INTO list_counts (list, width, bucket, n)
SELECT list, w.width, bucket * 512 / w.width, sum(n) FROM list_counts c, (VALUES (32768), (2097152)) w (width) WHERE c.width = 512 GROUP BY 1, 2, 3;
DELETE FROM list_counts WHERE width = 65536;

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
    -- A row that is not there and one that says 0 would say the same, and which it is would depend on how the log was cut.
    DELETE FROM list_counts WHERE n = 0;
    RETURN NULL;
END $$;

-- Finds a page of size rows after so many others of the lists, counted from the newest row, or from the oldest. The n rows of the
-- page were made by the records from since on and before until; of those, from the newest on, it comes after skip others.
-- Without n there are none.
--
-- The plans are made once: which lists they are for makes no difference to them.
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

-- The triggers for one entitlement are counted by themselves, too: the lists are named by status, tenant and entitlement, of which
-- each may be empty.
CREATE INDEX triggers_by_entitlement ON triggers (entitlement_id, status, created_sequence, created_ordinal);
CREATE INDEX triggers_by_tenant_and_entitlement ON triggers (tenant, entitlement_id, status, created_sequence, created_ordinal);
DROP TRIGGER triggers_added ON triggers;
DROP TRIGGER triggers_changed ON triggers;
CREATE TRIGGER triggers_added AFTER INSERT ON triggers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant),
        ''triggers///'' || entitlement_id, concat_ws(''/'', ''triggers'', status, '''', entitlement_id), concat_ws(''/'', ''triggers//'' || tenant, entitlement_id),
        concat_ws(''/'', ''triggers'', status, tenant, entitlement_id)]');
CREATE TRIGGER triggers_changed AFTER UPDATE ON triggers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant),
        ''triggers///'' || entitlement_id, concat_ws(''/'', ''triggers'', status, '''', entitlement_id), concat_ws(''/'', ''triggers//'' || tenant, entitlement_id),
        concat_ws(''/'', ''triggers'', status, tenant, entitlement_id)]');
INSERT INTO list_counts (list, width, bucket, n)
SELECT list, w.width, created_sequence / w.width, count(*)
FROM triggers, unnest(ARRAY['triggers///' || entitlement_id, concat_ws('/', 'triggers', status, '', entitlement_id),
    concat_ws('/', 'triggers//' || tenant, entitlement_id), concat_ws('/', 'triggers', status, tenant, entitlement_id)]) list,
    (VALUES (2097152), (32768), (512)) w (width)
GROUP BY 1, 2, 3;

-- +goose Down
DROP INDEX triggers_by_tenant_and_entitlement;
DROP INDEX triggers_by_entitlement;
DROP TRIGGER triggers_added ON triggers;
DROP TRIGGER triggers_changed ON triggers;
CREATE TRIGGER triggers_added AFTER INSERT ON triggers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant)]');
CREATE TRIGGER triggers_changed AFTER UPDATE ON triggers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant)]');
DROP FUNCTION list_page;
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
        FROM (SELECT unnest(%s) AS list, created_sequence, 1 AS n FROM new_rows %s) moved, (VALUES (65536), (512)) widths (width)
        WHERE list IS NOT NULL
        GROUP BY 1, 2, 3 HAVING sum(n) <> 0
        ORDER BY 1, 2, 3
        ON CONFLICT (list, width, bucket) DO UPDATE SET n = c.n + excluded.n', TG_ARGV[0], old_rows);
    DELETE FROM list_counts WHERE n = 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DELETE FROM list_counts WHERE width <> 512 OR list LIKE 'triggers/%/%/%';
INSERT INTO list_counts (list, width, bucket, n)
SELECT list, 65536, bucket * 512 / 65536, sum(n) FROM list_counts GROUP BY 1, 2, 3;
