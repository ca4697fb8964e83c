"""The contract of operator and job: the resource, its status, and every name that both use."""

from s3sink_api.formats import FORMATS, INPUT_FORMATS

__all__ = ["FORMATS", "INPUT_FORMATS"]
