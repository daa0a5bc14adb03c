-- Makes the role perpetua_venue, which owns the database, and perpetua_reader, whose members may read the read models. The
-- setting perpetua.password is the password of perpetua_venue. Run by the embedded Postgres and by docker/postgres/roles.sh,
-- together with objects.sql and ownership.sql: by a superuser, or by the owner of the database if that user may make roles and
-- databases.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perpetua_venue') THEN
        CREATE ROLE perpetua_venue LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perpetua_reader') THEN
        CREATE ROLE perpetua_reader NOLOGIN;
    END IF;
    -- A query as a reader ends after a minute unless an administrator has set another time. Postgres does not pass this to
    -- the members of a role, so `perpetua admin reader` sets it for each of them too.
    IF NOT EXISTS (SELECT FROM pg_roles, unnest(rolconfig) AS setting
            WHERE rolname = 'perpetua_reader' AND setting LIKE 'statement_timeout=%') THEN
        BEGIN
            ALTER ROLE perpetua_reader SET statement_timeout = '1min';
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING 'the role perpetua_reader of another administrator has no statement_timeout';
        END;
    END IF;
    -- Only a superuser may name these attributes, even to remove them.
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'perpetua_venue'
            AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)) THEN
        ALTER ROLE perpetua_venue NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    END IF;
    EXECUTE format('ALTER ROLE perpetua_venue PASSWORD %L', current_setting('perpetua.password'));
    -- A superuser may give objects to any role, other users only to a role of which they are members.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        GRANT perpetua_venue TO CURRENT_USER;
    END IF;
    EXECUTE format('ALTER DATABASE %I OWNER TO perpetua_venue', current_database());
END $$;
