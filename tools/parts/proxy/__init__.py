"""An HTTP proxy in front of an S3 server that breaks chosen requests on purpose.

A client cannot tell a request that took effect, but whose answer was lost, from one that never arrived. Only a proxy
between the client and a real server can cause this at will. Host and signed headers pass through unchanged, so that
signatures stay valid; a `StripHeaders` rule for a signed header breaks them, unless the server does not check (Moto).

    with FaultProxy("127.0.0.1", port) as proxy:
        lost = proxy.on(request_is("PUT", "/state.json$"), DropResponse(), times=1)
        ...                       # send requests to proxy.endpoint
        assert lost.hits == 1
"""

from tools.parts.proxy.fault_proxy import FaultProxy
from tools.parts.proxy.faults import (
    Action,
    Call,
    ChangeAnswer,
    Delay,
    DropResponse,
    Late,
    Logged,
    Predicate,
    Refuse,
    Request,
    Reset,
    Rule,
    Slow,
    Status,
    StripHeaders,
    Truncate,
    request_is,
)

__all__ = [
    "Action",
    "Call",
    "ChangeAnswer",
    "Delay",
    "DropResponse",
    "FaultProxy",
    "Late",
    "Logged",
    "Predicate",
    "Refuse",
    "Request",
    "Reset",
    "Rule",
    "Slow",
    "Status",
    "StripHeaders",
    "Truncate",
    "request_is",
]
