DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perpetua_venue') THEN
        CREATE ROLE perpetua_venue LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perpetua_reader') THEN
        CREATE ROLE perpetua_reader NOLOGIN;
    END IF;
END $$;
ALTER ROLE perpetua_venue NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD '%s';
ALTER DATABASE perpetua OWNER TO perpetua_venue;
