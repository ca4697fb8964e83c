"""`helm test` runs this in the image: does the API server serve S3Sink, and is the operator at host:port ready?"""

import http.client
import sys

from s3sink_operator.observe.api_client import ApiClient


def main(address: str) -> str:
    if ApiClient().read("/apis/s3sink.dev/v1alpha1") is None:
        return "the API server does not serve S3Sink: its CustomResourceDefinition is missing"
    if not address:
        return ""
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    return "" if answer.status == 200 else f"the operator is not ready: {answer.read().decode()}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) or None)
