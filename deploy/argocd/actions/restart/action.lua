-- The operator restarts the driver when an annotation of the sink that begins with s3sink.dev/ changes.
local os = require("os")
obj.metadata.annotations = obj.metadata.annotations or {}
obj.metadata.annotations["s3sink.dev/restarted-at"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
