#!/bin/sh
# Makes perpetua_venue, the owner of the database, which is not a superuser, and perpetua_reader. The Postgres image runs
# this when its volume is empty. Run it again to change the password, or to give perpetua_venue the tables that the venue has
# made as the administrator; see docker/README.md. It sets no shell options and does not exec: the image may source it.
: "${POSTGRES_VENUE_PASSWORD:?is needed: the password of perpetua_venue, letters and digits}"
PGOPTIONS="-c perpetua.password=$POSTGRES_VENUE_PASSWORD" psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --single-transaction \
  --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --file "${PERPETUA_SQL:-/perpetua-sql}/roles.sql" --file "${PERPETUA_SQL:-/perpetua-sql}/objects.sql" \
  --file "${PERPETUA_SQL:-/perpetua-sql}/ownership.sql"
