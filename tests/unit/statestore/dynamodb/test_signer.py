"""The lean client's signatures are those of botocore."""

from datetime import UTC, datetime
from random import Random
from string import ascii_letters, digits

import pytest
from botocore import auth
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from statestore.dynamodb.client import Signer

REGIONS = ("us-east-1", "eu-west-1", "ap-southeast-2", "us-gov-west-1")
PATHS = ("/", "/dynamodb/local", "/a%20b/~c")
HOSTS = ("dynamodb.eu-west-1.amazonaws.com", "localhost:8000", "[::1]:4566")
OPERATIONS = ("UpdateItem", "DeleteItem", "BatchGetItem", "Query")


@pytest.mark.parametrize("seed", range(20))
def test_a_signature_is_that_of_botocore(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    host, path, region = random.choice(HOSTS), random.choice(PATHS), random.choice(REGIONS)
    signer = Signer(host=host, path=path, region=region)
    people = [_credentials(random) for _ in range(3)]
    for _ in range(50):
        at = datetime.fromtimestamp(random.randrange(1_400_000_000, 1_900_000_000), UTC)
        credentials, operation = random.choice(people), random.choice(OPERATIONS)
        body = random.randbytes(random.choice((0, 1, 200, 70_000)))
        ours = signer.headers(operation, body, credentials, at.strftime("%Y%m%dT%H%M%SZ"))

        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        request = AWSRequest("POST", f"https://{host}{path}", headers=headers, data=body)
        monkeypatch.setattr(auth, "get_current_datetime", lambda at=at: at)
        SigV4Auth(credentials, "dynamodb", region).add_auth(request)
        assert dict(line.split(": ", 1) for line in ours.splitlines()) == dict(request.headers)


def _credentials(random: Random) -> ReadOnlyCredentials:
    def text(length: int) -> str:
        return "".join(random.choices(ascii_letters + digits + "+/=", k=length))

    return ReadOnlyCredentials(text(20), text(40), random.choice((None, text(300))), None)
