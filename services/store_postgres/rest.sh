#!/bin/sh
# Brings the server to rest: no vacuum, no statistics and no checkpoint is left to do for what was
# written so far. Environment: POSTGRES_BIN, PGHOST, PGPORT, PGUSER, PASSWORD_FILE.
set -eu
PGPASSWORD=$(cat "$PASSWORD_FILE")
export PGPASSWORD
"$POSTGRES_BIN/vacuumdb" --all --analyze --quiet --maintenance-db postgres
exec "$POSTGRES_BIN/psql" --dbname postgres --no-psqlrc --quiet --command CHECKPOINT
