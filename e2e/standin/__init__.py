"""What stands in where a control plane has no node: pods that run nothing, and a driver that reports for all of them.

Everything else is real: the API server, its controllers, the operator as a process of its own. What can go wrong
between these is here too.
"""

from e2e.standin.between import BetweenApi
from e2e.standin.node import Answer, StandInNode, report
from e2e.standin.operator import Install, Operator, grant
from e2e.standin.outage import ApiServer

__all__ = ["Answer", "ApiServer", "BetweenApi", "Install", "Operator", "StandInNode", "grant", "report"]
