"""The CustomResourceDefinition, made from the dataclasses that the job parses with: `python -m s3sink_operator.crd`."""

from s3sink_operator.crd.definition import definition, to_yaml
from s3sink_operator.crd.status import STATUS

__all__ = ["STATUS", "definition", "to_yaml"]
