#!/bin/sh
# Provides the image debian:bookworm-slim: present, else pulled, else made with debootstrap from
# this machine's own package mirror (as root). Used by the docker backend; can be run by hand.
set -eu
image=debian:bookworm-slim
fail() { printf '%s\n' "base-image: $*" >&2; exit 1; }

command -v docker > /dev/null || fail "no docker client; install docker.io"
docker info > /dev/null 2>&1 || fail "no Docker engine answers; start it (dockerd)"
docker image inspect "$image" > /dev/null 2>&1 && exit 0
timeout 60 docker pull --quiet "$image" > /dev/null 2>&1 && exit 0

[ "$(id -u)" = 0 ] || fail "$image cannot be pulled, and making it needs root: run this as root once"
command -v debootstrap > /dev/null ||
    fail "$image cannot be pulled; to make it: apt-get install --no-install-recommends debootstrap"
# The mirror this machine already uses; debootstrap's own default where none is configured.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v security | head -n 1)
root=$(mktemp -d /var/tmp/perflab-base.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 143' INT TERM
# shellcheck disable=SC2086  # an unset mirror must be no argument at all
debootstrap --variant=minbase bookworm "$root/tree" $mirror > "$root/log" 2>&1 ||
    fail "debootstrap failed: $(tail -n 5 "$root/log")"
rm -rf "$root/tree/var/cache/apt/archives/"*.deb "$root/tree/var/lib/apt/lists/"*
tar -C "$root/tree" -c . |
    docker import --change 'LABEL perflab.base=debootstrap' - "$image" > /dev/null ||
    fail "docker import failed"
