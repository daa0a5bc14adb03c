-- +goose Up

-- How many rows lists have, for lists that are read by numbered pages and may be long: of each list the rows that were made
-- by the records from bucket * width on, width many of them. So neither the length of a list nor the way to one of its
-- pages takes longer the more rows it has.
CREATE TABLE list_counts (
    list   text    NOT NULL,
    width  integer NOT NULL, -- 65536, and in these 512
    bucket bigint  NOT NULL,
    n      bigint  NOT NULL, -- never 0
    PRIMARY KEY (list, width, bucket)
) WITH (fillfactor = 50);
CREATE INDEX list_counts_empty ON list_counts (list) WHERE n = 0;

-- Counts the rows that a statement has made or changed. The argument is an expression for the names of the lists that a row
-- is in, an array whose NULLs are none. What changes them is a change of the row, so they are right whichever statement makes it.
-- +goose StatementBegin
CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
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
    -- A row that is not there and one that says 0 would say the same, and which it is would depend on how the log was cut.
    DELETE FROM list_counts WHERE n = 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION count_rows;
DROP TABLE list_counts;
