-- A nonce that the sink has not seen yet. Where to begin, spec.reset.to, stays as it is.
local os = require("os")
obj.spec.reset = obj.spec.reset or {}
obj.spec.reset.nonce = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
