# Common to the two upper layers; sourced with the layer's root folder as first argument.
# Environment: PYTHON, a Python of the image's version.
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

root=$(realpath "$1")
home=$root/opt/s3sink
python=python$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
site=$home/lib/$python/site-packages
uv=$(tools/bootstrap.sh uv)

# On a read-only root Python cannot store compiled files, and would compile at every start. The files have their paths in
# the image, and are not compared with their sources, because a layer keeps no times.
compile_all() {
    "$PYTHON" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$root" -p / "$site"
}

finish() {
    compile_all
    chmod -R a+rX,go-w "$root"
}
