# The one image of operator, driver and executors.
# `python -m e2e.image build` makes the same image without Docker, from the same scripts and from the ENV, USER,
# WORKDIR, EXPOSE, ENTRYPOINT and CMD of the last stage below: change them here only.

FROM debian:bookworm-slim AS base
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
COPY e2e e2e
# The connector's jars are fetched by PySpark's Ivy.
RUN uv=$(e2e/bootstrap.sh uv) \
 && "$uv" venv --quiet --python "$PYTHON" /tmp/ivy \
 && "$uv" pip install --quiet --python /tmp/ivy/bin/python --constraint requirements.lock pyspark \
 && JARS=$(/tmp/ivy/bin/python -c 'from e2e.parts.jars import connector_dir; print(connector_dir())') \
    e2e/image/steps/packages.sh /out/packages
COPY README.md LICENSE ./
COPY sinkjob sinkjob
COPY operator operator
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
EXPOSE 8080
USER 185:185
# The one folder that is writable where the root is read-only: executors keep here what drivers send them.
WORKDIR /tmp
ENTRYPOINT ["/opt/s3sink/bin/entrypoint"]
