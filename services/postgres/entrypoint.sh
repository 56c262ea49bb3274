#!/bin/sh
# Starts PostgreSQL on 127.0.0.1, after making its cluster and schema when there is none.
# Environment: POSTGRES_BIN, PGDATA, PGPORT, DATABASE_PASSWORD_FILE, MAX_CONNECTIONS, PRELOADED,
# FLUSH_US (slow_flush.cpp has it; here it becomes a setting that the lab can read).
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
umask 077

# Single-user mode opens no port and takes one statement per line; without exit_on_error a failed
# statement would pass unnoticed.
run_alone() {
    "$POSTGRES_BIN/postgres" --single -c exit_on_error=on -D "$making" "$1" > /dev/null
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # Made under another name and moved when complete: an interrupted start is simply begun again.
    making=$PGDATA.making
    rm -rf "$making"
    "$POSTGRES_BIN/initdb" --pgdata "$making" --username perflab \
        --pwfile "$DATABASE_PASSWORD_FILE" \
        --auth scram-sha-256 --encoding UTF8 --locale C --no-sync > /dev/null
    # From here on the cluster knows it. Its folder may be another user's, so it is emptied.
    : > "$DATABASE_PASSWORD_FILE"
    echo "CREATE DATABASE perflab;" | run_alone postgres
    tr '\n' ' ' < "$here/schema.sql" | run_alone perflab
    echo "pg_stat_statements.track = none" >> "$making/postgresql.conf"
    if [ -d "$PGDATA" ]; then rmdir "$PGDATA"; fi
    mv "$making" "$PGDATA"
fi

# A checkpoint or autovacuum inside a trial of a second would be noise that hits one treatment and
# not the other; the lab checkpoints between trials instead. fsync stays on: it is what is measured.
# Settings that are changed by reload are not given here: the command line would win over them.
exec "$POSTGRES_BIN/postgres" -D "$PGDATA" -c shared_preload_libraries="$PRELOADED" \
    -c listen_addresses=127.0.0.1 -c port="$PGPORT" -c unix_socket_directories= \
    -c max_connections="$MAX_CONNECTIONS" -c shared_buffers=128MB \
    -c fsync=on -c full_page_writes=on -c autovacuum=off -c jit=off \
    -c perflab.flush_us="$FLUSH_US" \
    -c checkpoint_timeout=1h -c max_wal_size=4GB -c log_checkpoints=off
