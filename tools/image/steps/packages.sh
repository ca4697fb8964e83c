#!/usr/bin/env bash
# The second layer: Python packages of job and operator, and the Kafka connector's jars. packages.sh <root folder>
# Environment: PYTHON, and JARS, the folder with the connector's jars.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$uv" venv --quiet --python "$PYTHON" "$home"
# The lock file as constraints: only the packages of job and operator, in the locked versions, with checked hashes.
"$uv" pip install --quiet --python "$home/bin/python" --link-mode copy \
    --constraint requirements.lock --requirement pyproject.toml --extra job --extra operator
find "$site" -depth -type d \( -name tests -o -name __pycache__ \) -not -path '*/pyspark/*' -exec rm -rf {} +
rm -rf "$site"/pyspark/{examples,data,sbin} "$site"/pyarrow/{include,src} "$site"/numpy/_core/include
# A second client that nothing imports, sources of compiled code, a backend for other Pythons.
rm -r "$site"/kubernetes/aio
rm "$site"/simdjson/{simdjson.h,simdjson.cpp} "$site"/zstandard/{_cffi.*,backend_cffi.py}
# Arrow's Flight and S3 client: only their own modules load these libraries.
rm "$site"/pyarrow/{flight.py,_flight.*,libarrow_flight.*,libarrow_python_flight.*,_s3fs.*,libarrow_s3.*}
# A third of Spark's jars by size: streaming state, machine learning, Hive's tables, the Connect server and its shell.
for jar in rocksdbjni spark-mllib breeze spire algebra cats-kernel spark-hive hive-exec hive-metastore hive-cli \
    hive-beeline hive-jdbc derby datanucleus spark-connect; do
    rm "$site/pyspark/jars/$jar"[-_]*.jar
done
rm -r "$site"/pyspark/jars/connect-repl
# Programs of packages refer to the build machine's Python; the image has its own, and two programs of ours.
rm -rf "$home"/bin/* "$home"/{.gitignore,.lock,CACHEDIR.TAG,lib64}
sed -i '\#^\(\.\./\)*bin/#d' "$site"/*.dist-info/RECORD
ln -s "/usr/bin/$python" "$home/bin/python"
ln -s python "$home/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$home/pyvenv.cfg"
mkdir -p "$root/opt/jars"
cp "$JARS"/*.jar "$root/opt/jars/"
finish
