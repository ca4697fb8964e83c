"""The scripts of deploy/argocd in a real Lua 5.1, with no more around them than Argo CD leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lupa.lua51 import LuaRuntime

from tools.argocd.program import Health

FOLDER = Path(__file__).parents[2] / "deploy" / "argocd"
_LEFT = """
local time, date = os.time, os.date
getmetatable("").__index = nil
for _, name in ipairs({"string", "math", "io", "os", "debug", "coroutine"}) do
  _G[name] = nil
  package.loaded[name] = nil
end
package.preload.os = function() return {time = time, date = date} end
"""


def run(script: str, obj: Mapping[str, Any]) -> Any:
    """What a script of this name makes of an object."""
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.execute(_LEFT)
    lua.globals().obj = _table(lua, obj)
    return _plain(lua.execute((FOLDER / script).read_text()))


def health(obj: Mapping[str, Any]) -> Health:
    return Health(**run("health.lua", obj))


def _table(lua: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return lua.table_from({key: _table(lua, held) for key, held in value.items()})
    if isinstance(value, list):
        return lua.table_from([_table(lua, held) for held in value])
    return value


def _plain(value: Any) -> Any:
    """An empty table reads as a list: Lua does not tell."""
    if not hasattr(value, "items"):
        return value
    keys = list(value.keys())
    if keys == list(range(1, len(keys) + 1)):
        return [_plain(value[key]) for key in keys]
    return {key: _plain(held) for key, held in value.items()}
