"""Looks at a table, and at the way to it, for a person who checks a set-up. Writes nothing."""

from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException

from botocore.exceptions import BotoCoreError, ClientError

from statestore.dynamodb.boto_client import BotoClient
from statestore.dynamodb.client_failures import failure
from statestore.dynamodb.endpoint import Endpoint, connect, tls_context, without_password
from statestore.table import TableState, table_state


class TableProbe:
    """Looks at a table through the client of its store. `endpoint`: its URL; `proxy`: the one on the way, if any."""

    def __init__(self, boto3: BotoClient, table: str) -> None:
        self._boto3, self._table = boto3, table
        self._endpoint: Endpoint = boto3.endpoint
        self.endpoint = self._endpoint.url
        self.proxy = without_password(self._endpoint.proxy) if self._endpoint.proxy else None

    def server_time(self, seconds: float) -> datetime | None:
        """Connects as the job does, without credentials, and returns the time of the answer's header `Date`. None where the
        server answers with no time. Raises OSError where there is no connection."""
        tls = tls_context(self._endpoint.certificates) if self.endpoint.startswith("https:") else None
        connection = connect(self._endpoint, tls, seconds)
        try:
            asks_proxy = self._endpoint.proxy is not None and tls is None
            connection.request("GET", self.endpoint if asks_proxy else self._endpoint.path)
            return parsedate_to_datetime(connection.getresponse().headers["Date"])
        except (HTTPException, TypeError, ValueError):
            return None
        finally:
            connection.close()

    def credentials_source(self) -> str:
        """Where the credentials come from, in botocore's words: `env`, `shared-credentials-file`, `iam-role` and others. Raises
        Terminal, Transient where there are none."""
        try:
            return self._boto3.credentials.source()
        except BotoCoreError as error:
            raise failure(f"table {self._table}: credentials", error) from error

    def state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises Terminal, Transient."""
        api = self._boto3.api
        try:
            description = api.describe_table(TableName=self._table)["Table"]
            ttl = api.describe_time_to_live(TableName=self._table)["TimeToLiveDescription"]
        except api.exceptions.ResourceNotFoundException:
            return None
        except (ClientError, BotoCoreError) as error:
            raise failure(f"table {self._table}: describing", error) from error
        backups = None
        with suppress(ClientError, BotoCoreError):  # DynamoDB Local has none, and the role of a job need not see them
            backups = api.describe_continuous_backups(TableName=self._table)["ContinuousBackupsDescription"]
        return table_state(description, ttl, backups)
