#!/bin/sh
# tools/setup.sh [test|dev|bench]: sets up .venv with that extra, once; says nothing when it already is.
# .venv is whole only while .venv/ready exists. It is moved away before pip changes anything, so what an interrupted
# set-up leaves is never taken for a finished one: the next run starts afresh.
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
extra=${1:-test}
inputs=$(cksum pyproject.toml tools/setup.sh)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

version='import sys; print(sys.version)'
whole() { # complete, not moved, alive, and of the Python asked for
    [ "$(cat .venv/ready/place 2>/dev/null)" = "$(pwd -P)" ] &&
        .venv/bin/python -I -c 'import pip' 2>/dev/null &&
        { [ -z "${PYTHON-}" ] || [ "$("$PYTHON" -c "$version" 2>/dev/null)" = "$(.venv/bin/python -c "$version")" ]; }
}
current() { whole && [ "$(cat ".venv/ready/$extra" 2>/dev/null)" = "$inputs" ]; }

usable='import sys
if sys.version_info < (3, 10):
    print("is Python %d.%d, jitblas needs 3.10 or newer: run make with PYTHON=/path/to/a/newer/python" % sys.version_info[:2])
else:
    try: import ensurepip, venv
    except ImportError: print("has no venv module: apt install python%d.%d-venv" % sys.version_info[:2])'
find_python() { # sets $python
    why="no ${PYTHON:-python3} that runs: install Python 3.10 or newer, e.g. apt install python3 python3-venv"
    if [ "${PYTHON-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.10; fi
    for python; do
        problem=$("$python" -c "$usable" 2>/dev/null) || continue
        [ "$problem" ] || return 0
        why="$python $problem"
    done
    die "$why"
}

cxx_counts() { # does any compiler make a shared object of C++17?
    printf 'inline thread_local int n = 0;\nextern "C" int f() { if constexpr (sizeof n > 1) return ++n; else return 0; }\n' \
        >.venv/probe.cpp
    for cxx in "${JITBLAS_CXX-}" "${CXX-}" g++ clang++ c++; do # unquoted below: CXX="ccache g++" is a custom
        [ "$cxx" ] || continue
        if $cxx -std=c++17 -fPIC -shared -pthread .venv/probe.cpp -o .venv/probe.so >/dev/null 2>&1; then return 0; fi
    done
    return 1
}

install() { # pip's talk goes to a log; should it fail, what worked before is as it was
    log=.venv/pip.log
    PIP_USER=0 .venv/bin/python -m pip install --no-input -e ".[$1]" >$log 2>&1 </dev/null && return
    [ ! -f .venv/pending/place ] || mv .venv/pending .venv/ready
    die "'pip install -e .[$1]' failed, see $log; without a network, set HTTPS_PROXY or PIP_INDEX_URL and run make again"
}

if current; then exit 0; fi
find_python
say "setting up .venv for '$extra' (once)"
# One set-up at a time: the lock goes when this shell and its children end. A file system without locks: go on.
exec 9<tools/setup.sh
"$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' 2>/dev/null || :
if current; then exit 0; fi
trap 'exit 130' INT # dash and bash differ when pip catches the signal

if whole; then
    mv .venv/ready .venv/pending
else
    rm -rf .venv
    mkdir .venv .venv/pending
    "$python" -m venv .venv >.venv/venv.log 2>&1 ||
        die "'$python -m venv .venv' failed, see .venv/venv.log: $(tail -n 1 .venv/venv.log)"
fi
extras=$extra
if ! cxx_counts; then
    extras=$extra,compiler
    say "no C++17 compiler found (g++, clang++, \$CXX): installing the ziglang wheel to compile with"
fi
install "$extras"
pwd -P >.venv/pending/place
echo "$inputs" >".venv/pending/$extra"
mv .venv/pending .venv/ready
