# The image of driver and operator. Two stages: the second holds no compiler, no cache and no test packages.

FROM python:3.11-slim-bookworm AS base
# Java's package links man pages into a folder that slim images lack.
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/*

FROM base AS build
WORKDIR /src
COPY sinkjob/s3sink_job/versions.toml sinkjob/s3sink_job/versions.toml
RUN python -c "import tomllib; print('uv==' + tomllib.load(open('sinkjob/s3sink_job/versions.toml', 'rb'))['uv']['version'])" \
      > /tmp/uv.txt \
 && pip install --no-cache-dir --disable-pip-version-check -r /tmp/uv.txt \
 && uv venv /opt/s3sink
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY sinkjob sinkjob
COPY operator operator
COPY e2e e2e
# The lock file as constraints: only what job and operator need, in the locked versions, each with its hash checked.
RUN uv build --quiet --wheel --out-dir /tmp/wheel --build-constraint requirements.lock \
 && VIRTUAL_ENV=/opt/s3sink uv pip install --no-cache --constraint requirements.lock \
      "s3sink[job,operator] @ file://$(ls /tmp/wheel/*.whl)"
# The Kafka connector, so that a pod fetches nothing at start.
RUN XDG_CACHE_HOME=/tmp/cache /opt/s3sink/bin/python -c \
      "import shutil; from e2e.parts.jars import connector_dir; shutil.copytree(connector_dir(), '/opt/jars')"

FROM base
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin s3sink
COPY --from=build /opt/s3sink /opt/s3sink
COPY --from=build /opt/jars /opt/jars
ENV PATH=/opt/s3sink/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    S3SINK_JARS=/opt/jars \
    S3SINK_LISTEN=0.0.0.0:8080
EXPOSE 8080
USER 10001:10001
WORKDIR /home/s3sink
ENTRYPOINT ["s3sink"]
