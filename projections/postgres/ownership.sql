-- Converts a database whose migrations the current user has run: perpetua_venue gets what objects.sql names, and nothing else
-- that the user owns. Once the table checkpoints is another user's, as after a conversion, this changes nothing.
DO $$
DECLARE
    statement text;
    me        oid := (SELECT oid FROM pg_roles WHERE rolname = current_user);
    home      oid := COALESCE((SELECT relnamespace FROM pg_class WHERE oid = to_regclass('checkpoints')),
        (SELECT oid FROM pg_namespace WHERE nspname = current_schema()));
BEGIN
    IF EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('checkpoints') AND relowner <> me) THEN
        RETURN;
    END IF;
    FOR statement IN
        WITH objects AS (
            SELECT kind, CASE WHEN name ~ '^\w+\.' THEN name ELSE home::regnamespace::text || '.' || name END AS name
            FROM unnest(ARRAY['readable', 'withheld', 'routines', 'types']) kind,
                regexp_split_to_table(btrim(current_setting('perpetua.' || kind), E' \n'), '\s+') name
        )
        SELECT format('ALTER SCHEMA %I OWNER TO perpetua_venue', n.nspname) FROM pg_namespace n
        WHERE n.nspowner = me AND (n.oid = home OR n.nspname = ANY (string_to_array(current_setting('perpetua.schemas'), ' '))
            AND EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid
                AND c.relname IN ('schema_versions', 'river_migration', 'pnl_daily', 'ducklake_snapshot')))
        UNION ALL
        SELECT format('ALTER TABLE %s OWNER TO perpetua_venue', c.oid::regclass) -- ALTER TABLE takes views too
        FROM objects o JOIN pg_class c ON c.oid = to_regclass(o.name)
        WHERE o.kind IN ('readable', 'withheld') AND c.relowner = me AND c.relkind IN ('r', 'v', 'p')
        UNION ALL
        SELECT format('ALTER TABLE %s OWNER TO perpetua_venue', c.oid::regclass)
        FROM objects o JOIN pg_inherits i ON i.inhparent = to_regclass(o.name) JOIN pg_class c ON c.oid = i.inhrelid
        WHERE o.kind IN ('readable', 'withheld') AND c.relowner = me AND c.relispartition AND c.relkind = 'r'
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO perpetua_venue', p.oid::regprocedure)
        FROM pg_proc p JOIN objects o ON o.kind = 'routines' -- to_regprocedure fails where the schema of a parameter is missing
            AND o.name = format('%s.%I(%s)', p.pronamespace::regnamespace, p.proname,
                replace(replace(oidvectortypes(p.proargtypes), ', ', ','), 'timestamp with time zone', 'timestamptz'))
        WHERE p.proowner = me
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO perpetua_venue', t.oid::regtype)
        FROM objects o JOIN pg_type t ON t.oid = to_regtype(o.name)
        WHERE o.kind = 'types' AND t.typowner = me
        UNION ALL
        -- Default privileges are those of tables that a role makes, which is the venue's from now on.
        SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE perpetua_venue%s GRANT %s ON %s TO %s%s',
            CASE WHEN d.defaclnamespace = 0 THEN '' ELSE format(' IN SCHEMA %I', n.nspname) END, a.privilege_type,
            CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' WHEN 'T' THEN 'TYPES'
                ELSE 'SCHEMAS' END,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace, aclexplode(d.defaclacl) a
        WHERE d.defaclrole = me AND a.grantee <> me
            AND NOT EXISTS (SELECT FROM pg_default_acl o WHERE o.defaclrole = 'perpetua_venue'::regrole
                AND o.defaclnamespace = d.defaclnamespace AND o.defaclobjtype = d.defaclobjtype)
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
