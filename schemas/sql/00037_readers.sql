-- +goose Up

-- Grants the role perpetua_reader the right to read the named tables and views of this schema, without the columns that hold
-- sealed data or identify persons. A column of bytes is one of these unless it is named here, so a column that a later
-- migration adds is not readable by accident. Whoever migrates calls it, since the role may be made later than the tables.
-- +goose StatementBegin
CREATE FUNCTION grant_readers(readable text[]) RETURNS void LANGUAGE plpgsql AS $$
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
                AND attname NOT IN ('hash', 'sha256', 'public_key', 'next_public_key') AS sealed
                FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a ON true
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'v') AND c.relname = ANY (readable)
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
