"""Runs the operator for tests: as a process with a real API server and a fake node, or as a Helm release on a cluster.

The fake node marks pods as running and answers for their drivers. Everything else is real. Faults between the operator
and the API server are here, too.
"""

from tools.operator_harness.api_proxy import ApiProxy
from tools.operator_harness.api_server import ApiServer
from tools.operator_harness.fake_node import Answer, FakeNode, report
from tools.operator_harness.operator_process import Install, Operator, grant

__all__ = ["Answer", "ApiProxy", "ApiServer", "FakeNode", "Install", "Operator", "grant", "report"]
