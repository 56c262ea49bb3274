#!/bin/sh
# Makes .venv with the pinned dependencies. Nothing is done when the lock has not changed.
# PYTHON=... chooses the interpreter; it must be 3.11 or newer.
set -eu
cd "$(dirname -- "$0")/.."
venv=.venv
stamp=$venv/perflab-setup
log=$venv/setup.log
needed_mib=2500
say() { printf '%s\n' "setup: $*"; }
fail() { printf '%s\n' "setup: $*" >&2; exit 1; }

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 or newer"
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" > /dev/null && new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found; install one (Debian: apt-get install python3 python3-venv), or name it with PYTHON=..."
}

has_compiler() {
    for candidate in ${CXX:-c++ g++ clang++}; do
        if command -v "$candidate" > /dev/null; then return 0; fi
    done
    return 1
}

wanted=$(cat requirements.lock pyproject.toml | cksum; pwd; has_compiler || cat compiler.lock 2> /dev/null | cksum)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
    exit 0
fi

python=$(find_python) || exit 1
"$python" -c 'import venv, ensurepip' > /dev/null 2>&1 ||
    fail "$python cannot make virtual environments (Debian: apt-get install python3-venv)"
free_mib=$(df -Pm . | awk 'NR == 2 { print $4 }')
[ "$free_mib" -ge "$needed_mib" ] ||
    fail "$free_mib MiB are free here, the environment needs $needed_mib MiB: free some space"

say "making $venv with $("$python" --version)"
rm -f "$stamp"
if ! "$venv/bin/python" -c 'import pip' > /dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$venv cannot be made here (see above)"
fi
say "installing the pinned dependencies (less than a minute; log: $log)"
: > "$log"
# pip brings uv, of which the lock holds version and hashes too; uv brings the rest, and brings it
# several times faster.
if [ ! -x "$venv/bin/uv" ]; then
    awk '/^uv==/ { ours = 1 } ours { print } ours && !/\\$/ { exit }' requirements.lock > "$venv/uv.txt"
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --retries 2 \
        --require-hashes -r "$venv/uv.txt" >> "$log" 2>&1 || case $(tail -n 40 "$log") in
            *"No space left"*) fail "the disk is full; free some space and call this again" ;;
            *"Max retries"* | *"NewConnectionError"* | *"No matching distribution"*)
                fail "the package index cannot be reached, or lacks a pinned package; check network and proxy. See $log" ;;
            *) fail "pip cannot install uv; see $log" ;;
        esac
fi
with_uv() {
    why=$("$venv/bin/python" -I perflab/host/installer.py "$@" 2>&1 >> "$log") || fail "$why. See $log"
}
with_uv pip sync --python "$venv/bin/python" --require-hashes requirements.lock
with_uv pip install --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
if ! has_compiler; then
    say "no C++ compiler is here: installing the one in the package ziglang"
    # Only services that are compiled need it: without it all else works.
    why=$("$venv/bin/python" -I perflab/host/installer.py pip install \
        --python "$venv/bin/python" --require-hashes -r compiler.lock 2>&1 >> "$log") ||
        say "it cannot be installed ($why; see $log): services that are compiled need one, all else works"
fi
printf '%s\n' "$wanted" > "$stamp"
say "ready: $venv/bin/perflab"
