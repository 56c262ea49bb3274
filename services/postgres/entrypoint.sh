#!/bin/sh
# Starts PostgreSQL on 127.0.0.1, after making its cluster and schema when there is none.
# Environment: POSTGRES_BIN, PGDATA, PGPORT, DATABASE_PASSWORD, MAX_CONNECTIONS, SHARED_BUFFERS_MB.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
# The dynamic linker finds a relocated wheel's libraries beside its programs.
umask 077

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    passwords=$(mktemp "$(dirname "$PGDATA")/password.XXXXXX")
    trap 'rm -f "$passwords"' EXIT
    printf '%s' "$DATABASE_PASSWORD" > "$passwords"
    "$POSTGRES_BIN/initdb" --pgdata "$PGDATA" --username perflab --pwfile "$passwords" \
        --auth scram-sha-256 --encoding UTF8 --locale C --no-sync > /dev/null
    rm -f "$passwords"
    trap - EXIT
    # Single-user mode takes one statement per line and opens no port.
    echo "CREATE DATABASE perflab;" |
        "$POSTGRES_BIN/postgres" --single -D "$PGDATA" postgres > /dev/null
    tr '\n' ' ' < "$here/schema.sql" |
        "$POSTGRES_BIN/postgres" --single -D "$PGDATA" perflab > /dev/null
fi
unset DATABASE_PASSWORD

# A checkpoint or autovacuum inside a trial of a second would be noise that hits one treatment and
# not the other; the lab checkpoints between trials instead. fsync stays on: it is what is measured.
exec "$POSTGRES_BIN/postgres" -D "$PGDATA" \
    -c listen_addresses=127.0.0.1 -c port="$PGPORT" -c unix_socket_directories= \
    -c max_connections="$MAX_CONNECTIONS" -c shared_buffers="${SHARED_BUFFERS_MB}MB" \
    -c fsync=on -c full_page_writes=on -c autovacuum=off -c jit=off \
    -c checkpoint_timeout=1h -c max_wal_size=4GB -c log_checkpoints=off
