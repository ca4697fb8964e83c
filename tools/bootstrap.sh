#!/usr/bin/env bash
# Prepares a machine: uv, Java, the Python environment. Each step checks first, and does nothing twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

versions=sinkjob/s3sink_job/versions.toml
cache="${XDG_CACHE_HOME:-$HOME/.cache}/s3sink"
stamp=.venv/.s3sink-installed

say() { printf '• %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
version_of() { sed -n "/^\[$1\]/,/^\[/s/^$2 *= *\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "$versions"; }

# apt_install <what for> <package>...
apt_install() {
    local purpose=$1; shift
    local command="apt-get update && apt-get install -y --no-install-recommends $*"
    if ! command -v apt-get >/dev/null; then
        fail "$purpose is missing; install it with your package manager (on Debian: $command)"
    elif [ "$(id -u)" -ne 0 ]; then
        fail "$purpose is missing; run as root: $command"
    fi
    say "installing $purpose: $*"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } ||
        fail "could not install $purpose; try: $command"
}

java_version() {
    local java=java
    [ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
    "$java" -version 2>&1 | sed -n 's/^[a-z]* version "\([0-9]*\).*/\1/p' || true
}

ensure_java() {
    local minimum found
    minimum=$(version_of java minimum)
    found=$(java_version)
    if [ -z "$found" ] && [ -z "${JAVA_HOME:-}" ]; then
        apt_install "Java $minimum" "openjdk-$minimum-jre-headless"
        found=$(java_version)
    fi
    [ -n "$found" ] || fail "no working Java at ${JAVA_HOME:+JAVA_HOME=}${JAVA_HOME:-PATH}"
    [ "$found" -ge "$minimum" ] ||
        fail "Java $found is too old, Spark needs $minimum or 21; set JAVA_HOME, or run: apt-get install -y openjdk-$minimum-jre-headless"
}

python_program() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is missing; run as root: apt-get update && apt-get install -y python3 python3-venv"
}

ensure_uv() {
    uv=$(command -v uv || true)
    # A version manager's shim may exist without a uv behind it.
    if [ -n "$uv" ] && "$uv" --version >/dev/null 2>&1; then return; fi
    local wanted home python
    wanted=$(version_of uv version)
    home="$cache/uv-$wanted"
    uv="$home/bin/uv"
    [ ! -x "$uv" ] || return 0
    python=$(python_program)
    "$python" -c 'import ensurepip' 2>/dev/null ||
        apt_install "Python's venv module" python3-venv
    say "installing uv $wanted into the cache"
    local staging="$home.$$"
    mkdir -p "$cache"
    trap 'rm -rf "$staging"' EXIT
    "$python" -m venv "$staging"
    "$staging/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$wanted"
    # uv is a single program and can be moved; the rest of the environment is not needed.
    mkdir -p "$home/bin"
    mv "$staging/bin/uv" "$home/bin/.uv.$$" && mv "$home/bin/.uv.$$" "$uv"
    rm -rf "$staging"
    trap - EXIT
}

ensure_environment() {
    local wanted
    wanted=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)
    if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    ensure_uv
    [ -x .venv/bin/python ] || "$uv" venv --quiet --python "$(python_program)" .venv
    say "installing Python packages from requirements.lock (about a minute the first time)"
    VIRTUAL_ENV="$PWD/.venv" "$uv" pip install --quiet --require-hashes -r requirements.lock
    VIRTUAL_ENV="$PWD/.venv" "$uv" pip install --quiet --no-deps --no-build-isolation -e .
    echo "$wanted" >"$stamp"
}

case "${1:-all}" in
    uv) ensure_uv && echo "$uv" ;;
    all) ensure_java && ensure_environment ;;
    *) fail "usage: tools/bootstrap.sh [all|uv]" ;;
esac
