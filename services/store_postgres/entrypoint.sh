#!/bin/sh
# Starts PostgreSQL on 127.0.0.1 with its own defaults, after making an empty database when there is
# none. It counts statements only while the lab asks for it. Environment: POSTGRES_BIN, PGDATA,
# PGPORT, PGUSER, PASSWORD_FILE.
set -eu
umask 077

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    "$POSTGRES_BIN/initdb" --pgdata "$PGDATA" --username "$PGUSER" --pwfile "$PASSWORD_FILE" \
        --auth scram-sha-256 --no-sync > /dev/null
    # Single-user mode opens no port; without exit_on_error a failure would pass unnoticed.
    echo "CREATE DATABASE perflab;" |
        "$POSTGRES_BIN/postgres" --single -c exit_on_error=on -D "$PGDATA" postgres > /dev/null
    # Not on the command line, which would overrule what the lab asks for.
    echo "pg_stat_statements.track = none" >> "$PGDATA/postgresql.conf"
fi

exec "$POSTGRES_BIN/postgres" -D "$PGDATA" \
    -c listen_addresses=127.0.0.1 -c port="$PGPORT" -c unix_socket_directories= \
    -c shared_preload_libraries=pg_stat_statements
