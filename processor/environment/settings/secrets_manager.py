"""AWS Secrets Manager: reads the text of a secret. Only this module sends requests to it.

Promises: a process reads each secret once, with at most 3 attempts. Does not: show the text in an error.
"""

import re
from functools import lru_cache

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from processor.errors import SettingError

_ARN = re.compile(r"arn:[a-z-]+:secretsmanager:([a-z0-9-]+):\d{12}:secret:[\w/+=.@!-]+")
_CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 3},
    connect_timeout=5,
    read_timeout=10,
    user_agent_extra="statestore",
)
_CURES = {
    "ResourceNotFoundException": "there is no such secret, or it has no value: correct the ARN",
    "AccessDeniedException": "allow secretsmanager:GetSecretValue on it, and kms:Decrypt on its own key if it has one",
    "UnrecognizedClientException": "give valid AWS credentials",
    "ExpiredTokenException": "renew the AWS credentials",
}


@lru_cache
def read_secret(arn: str) -> str:
    """The text of the secret, from the region of its ARN. Raises SettingError with the ARN and the cure."""
    found = _ARN.fullmatch(arn)
    if found is None:
        raise SettingError(f"{arn!r} is no ARN of a secret: give arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME")
    try:
        client = boto3.client("secretsmanager", region_name=found[1], config=_CONFIG)
        text = client.get_secret_value(SecretId=arn).get("SecretString")
    except ClientError as error:
        code = error.response["Error"].get("Code", "")
        raise SettingError(f"the secret {arn} cannot be read: {code}: {_CURES.get(code, error)}") from None
    except BotoCoreError as error:
        raise SettingError(f"the secret {arn} cannot be read: {error}") from None
    if text is None:
        raise SettingError(f"the secret {arn} holds bytes: store it as text")
    return str(text)
