"""Checks that a text may be a JSON Schema. The job reads the schema with a library and refuses the rest."""

from __future__ import annotations

import json

from s3sink_api.spec.json_schema_columns import NotASchema


def check_json_schema(text: str) -> None:
    try:
        schema = json.loads(text)
    except RecursionError:
        raise NotASchema("is too deeply nested") from None
    except ValueError as error:
        raise NotASchema(f"is not JSON: {error}") from None
    if not isinstance(schema, dict) and schema is not True:
        raise NotASchema('must be a JSON Schema, such as {"type": "object", "properties": {…}}')
