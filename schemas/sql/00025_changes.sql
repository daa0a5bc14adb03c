-- +goose Up

-- A rebuild compares whole tables while the projector writes, and has to know afterwards which rows were written meanwhile.
-- Unlogged tables are in no publication, and empty after a crash, which ends the rebuild too.
CREATE UNLOGGED TABLE changed_rows (
    table_name text   NOT NULL,
    key        text[] NOT NULL
);
COMMENT ON TABLE changed_rows IS 'Keys of the rows that are written during a run of perpetua rebuild, which deletes them.';
COMMENT ON COLUMN changed_rows.table_name IS 'Table of the row.';
COMMENT ON COLUMN changed_rows.key IS 'Primary key of the row: each of its columns as text, in the order of the key.';

-- Records the keys of the rows that a statement has inserted, updated or deleted. Whoever may write to the table may have a
-- change recorded, so the function runs as its owner. Nobody else may make a trigger with it.
-- +goose StatementBegin
CREATE FUNCTION record_changes() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' AS $$
DECLARE
    keys text := (SELECT format('SELECT ARRAY[%s] FROM ', string_agg(quote_ident(a.attname) || '::text', ', '
            ORDER BY array_position(i.indkey::smallint[], a.attnum)))
        FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = TG_RELID AND i.indisprimary);
BEGIN
    EXECUTE format('INSERT INTO %I.changed_rows (table_name, key) SELECT %L, changed.key FROM (%s) changed (key)',
        TG_TABLE_SCHEMA, TG_TABLE_NAME,
        CASE TG_OP WHEN 'INSERT' THEN keys || 'new_rows' WHEN 'DELETE' THEN keys || 'old_rows'
            ELSE keys || 'old_rows UNION ' || keys || 'new_rows' END);
    RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION record_changes() FROM PUBLIC;

-- Makes the triggers that record the changes of a table. A migration that creates a table calls it.
--
-- The triggers are always enabled: to enable them would take a lock for which writers wait, and to drop them one for which
-- readers wait. A rebuild holds the advisory lock while it needs the keys. As long as nobody holds it, a trigger gets the lock
-- for its transaction and records nothing. A rebuild that gets the lock therefore knows that every transaction that was not
-- recorded has ended. The lock of a rebuild that was killed is gone with its session.
--
-- The rebuild's own writes are not recorded, because it holds the lock itself, except those to the table that the setting
-- perpetua.recorded names.
-- +goose StatementBegin
CREATE FUNCTION track_changes(tracked text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t record;
BEGIN
    FOR t IN VALUES ('inserted', 'INSERT', 'NEW TABLE AS new_rows'), ('deleted', 'DELETE', 'OLD TABLE AS old_rows'),
        ('updated', 'UPDATE', 'OLD TABLE AS old_rows NEW TABLE AS new_rows')
    LOOP
        EXECUTE format('CREATE TRIGGER changes_%s AFTER %s ON %I REFERENCING %s FOR EACH STATEMENT
            WHEN (NOT pg_try_advisory_xact_lock_shared(hashtextextended(''perpetua merge'', 0))
                OR current_setting(''perpetua.recorded'', true) = %L)
            EXECUTE FUNCTION record_changes()', t.column1, t.column2, tracked, t.column3, tracked);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER changes_%s', tracked, t.column1);
    END LOOP;
END $$;
-- +goose StatementEnd
