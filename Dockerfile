# The one image of operator, driver and executors.
# `python -m e2e.image build` makes the same image without Docker. It reads this file: the suite of Debian's, the Python,
# what each step is given to see, and all settings of the last stage. Change them here only.

FROM debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251 AS base
COPY e2e/image/packages.txt e2e/image/steps/base.sh /tmp/
# Java's package links man pages into a folder that slim images lack.
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && xargs -a /tmp/packages.txt apt-get install -y --no-install-recommends \
 && /tmp/base.sh / \
 && rm /tmp/packages.txt /tmp/base.sh

FROM base AS build
WORKDIR /src
ENV PYTHON=/usr/bin/python3.11 XDG_CACHE_HOME=/tmp/cache PYTHONPATH=/src:/src/sinkjob
RUN mkdir -p /out/packages /out/product
COPY pyproject.toml requirements.lock ./
COPY sinkjob/s3sink_job/__init__.py sinkjob/s3sink_job/versions.toml sinkjob/s3sink_job/
COPY e2e/__init__.py e2e/bootstrap.sh e2e/
COPY e2e/parts/__init__.py e2e/parts/cache.py e2e/parts/jars.py e2e/parts/versions.py e2e/parts/
COPY e2e/image/steps e2e/image/steps
# The connector's jars are fetched by PySpark's Ivy.
RUN uv=$(e2e/bootstrap.sh uv) \
 && "$uv" venv --quiet --python "$PYTHON" /tmp/ivy \
 && "$uv" pip install --quiet --python /tmp/ivy/bin/python --constraint requirements.lock pyspark \
 && JARS=$(/tmp/ivy/bin/python -c 'from e2e.parts.jars import connector_dir; print(connector_dir())') \
    e2e/image/steps/packages.sh /out/packages
COPY README.md LICENSE ./
COPY sinkjob sinkjob
COPY operator operator
COPY e2e/image/bin e2e/image/bin
RUN e2e/image/steps/product.sh /out/product

FROM base
COPY --from=build /out/packages /
COPY --from=build /out/product /
ENV PATH=/opt/s3sink/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    JAVA_HOME=/usr/lib/jvm/java-17 \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SPARK_HOME=/opt/s3sink/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/s3sink/bin/python \
    S3SINK_JARS=/opt/jars \
    S3SINK_LISTEN=0.0.0.0:8080
LABEL org.opencontainers.image.title="s3sink" \
      org.opencontainers.image.description="Copies Kafka topics into S3 objects, exactly once: a Kubernetes operator and its Spark job" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0"
EXPOSE 8080
USER 185:185
# The one folder that is writable where the root is read-only: executors keep here what drivers send them.
WORKDIR /tmp
ENTRYPOINT ["/opt/s3sink/bin/entrypoint"]
