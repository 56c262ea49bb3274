#!/bin/sh
# Fetch a release of Go as the module golang.org/toolchain:  toolchain.sh VERSION INTO
set -eu
case $(uname -m) in
    x86_64) machine=amd64 ;;
    aarch64) machine=arm64 ;;
    *) echo "toolchain.sh: no Go for $(uname -m) is known here" >&2; exit 1 ;;
esac
module=golang.org/toolchain@v0.0.1-go$1.linux-$machine
# Modules hold no modes: what is a program is told by its place.
go mod download "$module"
cp -r "$(go env GOMODCACHE)/$module" "$2"
chmod -R u+w "$2"
chmod +x "$2"/bin/* "$2"/pkg/tool/linux_"$machine"/*
