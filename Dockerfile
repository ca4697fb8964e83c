# The image of operator, driver and executors: docs/image.md.
# `python -m tools.image build` makes the same image without Docker. It reads this file for Debian's suite, the Python
# version, the files that each step sees, and all settings of the last stage. Change them here only.

FROM debian:bookworm-20260918-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251 AS base
COPY tools/image/packages.txt tools/image/steps/base.sh /tmp/
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
COPY tools/__init__.py tools/bootstrap.sh tools/
COPY tools/parts/__init__.py tools/parts/cache.py tools/parts/jars.py tools/parts/versions.py tools/parts/
COPY tools/image/steps tools/image/steps
# The connector's jars are fetched by PySpark's Ivy.
RUN uv=$(tools/bootstrap.sh uv) \
 && "$uv" venv --quiet --python "$PYTHON" /tmp/ivy \
 && "$uv" pip install --quiet --python /tmp/ivy/bin/python --constraint requirements.lock pyspark \
 && JARS=$(/tmp/ivy/bin/python -c 'from tools.parts.jars import connector_dir; print(connector_dir())') \
    tools/image/steps/packages.sh /out/packages
COPY README.md LICENSE ./
COPY crds crds
COPY sinkjob sinkjob
COPY operator operator
COPY tools/image/bin tools/image/bin
RUN tools/image/steps/product.sh /out/product

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
# The only writable folder with a read-only root: executors keep files from drivers here.
WORKDIR /tmp
ENTRYPOINT ["/opt/s3sink/bin/entrypoint"]
