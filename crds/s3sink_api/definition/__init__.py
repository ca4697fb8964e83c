"""The CustomResourceDefinition, generated from the dataclasses of the spec: `python -m s3sink_api.definition`."""

from s3sink_api.definition.definition import definition, to_yaml
from s3sink_api.definition.status import STATUS

__all__ = ["STATUS", "definition", "to_yaml"]
