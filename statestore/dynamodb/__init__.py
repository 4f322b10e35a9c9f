"""The doorway to DynamoDB: the only room that imports boto3 and botocore. `requests` and `table` build the requests.

dynamo_store.py   the `Store`: reads and writes of items
dynamo_table.py   makes, checks and describes the table, always through boto3
table_probe.py    looks at the table, and at the way to it, for `statestore doctor`
boto_client.py    boto3: regions, endpoints, credentials, certificates, proxies; one of the two ways to send
lean_client.py    the other way: sends the four requests of live work itself, for a tenth of the CPU
request_threads.py the threads that send the requests of a turn side by side
retries.py        which failures another attempt may outlast, and after which pause
request_counts.py counts requests, retries, throttles and units
signer.py         signs a request (AWS Signature Version 4)
connections.py    connections that stay open; http_answer.py reads the answers on them
client_failures.py the errors of both ways -> `Transient` or `Terminal`
"""

from statestore.dynamodb.dynamo_store import DynamoStore
from statestore.dynamodb.retries import Patience

__all__ = ["DynamoStore", "Patience"]
