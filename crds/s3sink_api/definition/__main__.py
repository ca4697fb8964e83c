"""`python -m s3sink_api.definition > crds/s3sinks.s3sink.dev.yaml`."""

import sys

from s3sink_api.definition import definition, to_yaml

if __name__ == "__main__":
    sys.stdout.write(to_yaml(definition()))
