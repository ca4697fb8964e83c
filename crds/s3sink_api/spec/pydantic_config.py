"""How pydantic reads the dataclasses of the resource."""

from __future__ import annotations

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

# Python code builds and replaces by attribute name; `parse` switches names off, so that a manifest
# has one spelling.
CONFIG = ConfigDict(extra="forbid", alias_generator=to_camel, validate_by_alias=True, validate_by_name=True)
LENIENT = ConfigDict(extra="ignore", alias_generator=to_camel, validate_by_alias=True, validate_by_name=True)
