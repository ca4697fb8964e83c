-- A new nonce. spec.reset.to, the offsets to start from, does not change.
local os = require("os")
obj.spec.reset = obj.spec.reset or {}
obj.spec.reset.nonce = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
