#!/usr/bin/env bash
# The last layer: our own packages and programs. product.sh <root folder>
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"$uv" build --quiet --wheel --python "$PYTHON" --out-dir "$wheels" --build-constraint requirements.lock
mkdir -p "$site" "$home/bin"
"$uv" pip install --quiet --python "$PYTHON" --no-deps --target "$site" "$wheels"/*.whl
rm -rf "$site"/{bin,.lock}
cp e2e/image/bin/* "$home/bin/"
finish
