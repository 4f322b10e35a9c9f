"""boto3's client of a scene's table, as a test uses it. Its calls are none of the product's, so no policy has to allow them."""

from typing import Any

import boto3

from processor.environment.settings.settings import Settings


def plain_client(settings: Settings) -> Any:
    return boto3.client("dynamodb", endpoint_url=settings.endpoint, region_name=settings.region)
