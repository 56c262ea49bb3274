#!/bin/sh
# Starts Valkey on 127.0.0.1, with the data that is there. It writes to disk only when it is told to.
# Environment: BINARIES, STORE_DATA, STORE_HOST, STORE_PORT, PASSWORD_FILE.
set -eu
umask 077
cd "$STORE_DATA"

# The password goes in by standard input: a command line is for everybody to read.
exec "$BINARIES"/linux-*/valkey-server - <<END
bind $STORE_HOST
port $STORE_PORT
dir $STORE_DATA
save ""
appendonly no
requirepass $(cat "$PASSWORD_FILE")
END
