"""The doorway to DynamoDB: the only room that imports boto3 and botocore.

store.py        the `Store`: reads and writes of items
table.py        makes, checks and describes the table, always through boto3; looks at the way to it for `statestore doctor`
load.py         fills an empty table by an import of files
requests.py     builds the requests
boto.py         boto3: regions, endpoints, credentials, certificates, proxies; one of the two ways to send
client.py       the other way: signs and sends the requests of live work itself, for a tenth of the CPU
connections.py  its connections, which stay open, and the answers on them
retries.py      counts requests; which failures another attempt may outlast, and the errors of the others
"""
