# What the two upper layers have in common; sourced with the layer's root folder as first argument.
# Environment: PYTHON, a Python of the image's version.
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

root=$(realpath "$1")
home=$root/opt/s3sink
python=python$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
site=$home/lib/$python/site-packages
uv=$(e2e/bootstrap.sh uv)

# Python would compile at every start what it cannot write to a read-only root. Files are named as they will be in
# the image, and never compared with their sources, whose times a layer does not keep.
compile_all() {
    "$PYTHON" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$root" -p / "$site"
}

finish() {
    compile_all
    chmod -R a+rX,go-w "$root"
}
