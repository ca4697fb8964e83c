#!/usr/bin/env bash
# The last layer: our own packages and programs. product.sh <root folder>
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"$uv" build --wheel --python "$PYTHON" --out-dir "$wheels" --build-constraint requirements.lock
mkdir -p "$site" "$home/bin"
# Unpacked, not installed: an installer would record the time and the folder.
"$PYTHON" -m zipfile -e "$wheels"/*.whl "$site"
cp tools/image/bin/* "$home/bin/"
finish
