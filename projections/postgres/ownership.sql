-- REASSIGN OWNED refuses the superuser that initdb made, since that owns the system catalogs too.
DO $$
DECLARE
    statement text;
    me        oid := (SELECT oid FROM pg_roles WHERE rolname = current_user);
BEGIN
    FOR statement IN
        WITH places AS (
            SELECT oid, nspname, nspowner FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
        ), depending AS ( -- what belongs to an extension or, a sequence, to a column has its owner from there
            SELECT classid, objid FROM pg_depend WHERE deptype IN ('e', 'a', 'i') AND refobjid <> 0
                AND (deptype = 'e' OR refclassid = 'pg_class'::regclass AND refobjsubid > 0)
        )
        SELECT format('ALTER SCHEMA %I OWNER TO perpetua_venue', nspname) FROM places WHERE nspowner = me
        UNION ALL
        SELECT format('ALTER %s %I.%I OWNER TO perpetua_venue', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, n.nspname, c.relname)
        FROM pg_class c JOIN places n ON n.oid = c.relnamespace
        WHERE c.relowner = me AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
            AND NOT EXISTS (SELECT FROM depending d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid)
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO perpetua_venue', p.oid::regprocedure)
        FROM pg_proc p JOIN places n ON n.oid = p.pronamespace
        WHERE p.proowner = me AND NOT EXISTS (SELECT FROM depending d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid)
        UNION ALL
        SELECT format('ALTER TYPE %I.%I OWNER TO perpetua_venue', n.nspname, t.typname)
        FROM pg_type t JOIN places n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
        WHERE t.typowner = me AND (t.typtype IN ('e', 'd', 'r') OR t.typtype = 'c' AND c.relkind = 'c')
            AND NOT EXISTS (SELECT FROM depending d WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid)
        UNION ALL
        -- Default privileges are those of tables that a role makes, which is the venue's from now on.
        SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE perpetua_venue%s GRANT %s ON %s TO %s%s',
            CASE WHEN d.defaclnamespace = 0 THEN '' ELSE format(' IN SCHEMA %I', n.nspname) END, a.privilege_type,
            CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' WHEN 'T' THEN 'TYPES' ELSE 'SCHEMAS' END,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace, aclexplode(d.defaclacl) a
        WHERE d.defaclrole = me AND a.grantee <> me
            AND NOT EXISTS (SELECT FROM pg_default_acl o WHERE o.defaclrole = 'perpetua_venue'::regrole
                AND o.defaclnamespace = d.defaclnamespace AND o.defaclobjtype = d.defaclobjtype)
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
