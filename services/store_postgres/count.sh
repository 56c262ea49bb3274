#!/bin/sh
# Prints the number of rows of each table; of one that would take long, as the statistics have it.
# Environment: POSTGRES_BIN, PGHOST, PGPORT, PGUSER, PASSWORD_FILE.
set -eu
PGPASSWORD=$(cat "$PASSWORD_FILE")
export PGPASSWORD
exec "$POSTGRES_BIN/psql" --dbname perflab --no-psqlrc --quiet --tuples-only --no-align <<'END'
SELECT CASE WHEN c.reltuples < 1e7 THEN format('SELECT count(*) FROM %s', c.oid::regclass)
            ELSE format('SELECT %s', pg_stat_get_live_tuples(c.oid)) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') \gexec
END
