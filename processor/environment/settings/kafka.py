"""The table [kafka] of the settings file: its names, its secrets, and what the clients call them. And the table [secrets].

An operator writes each setting once. Two clients of Kafka read it: librdkafka, which sends messages and looks after topics, and
the Java client of Spark's connector, which reads the topics of entities. The file holds no secret: its value is a reference. Each
setting that is a secret takes the same references, which the driver resolves (`resolve.py`). Its tasks carry the values: workers
need none of their places.

    env:NAME             the value of the variable
    file:/path           the text of the file, without its last line end
    secret:ARN           the text of the secret in AWS Secrets Manager
    secret:ARN#field     the field of this name, where the secret's text is a JSON object, as Aurora writes it

The table [secrets] has the references of the secrets that definitions name: `mask` of `hmac_sha256(x, :mask)`. Tasks carry their
values, too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from processor.errors import SettingError

REFERENCES = ("env:", "file:", "secret:")
EXAMPLES = (
    'write "env:NAME" for the value of a variable, "file:/path" for the text of a file, or "secret:ARN" or '
    '"secret:ARN#field" for AWS Secrets Manager'
)


class Secret(str):
    """The value of a reference, which its representation hides."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def is_reference(text: str) -> bool:
    """Whether a setting's text names the place of its value."""
    return text.startswith(REFERENCES)


SECRET_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def read_secrets(table: Any, path: str | None) -> tuple[tuple[str, str], ...]:
    """The name of each secret of [secrets], with its reference. Raises SettingError, which names the wrong line."""
    lines = table if isinstance(table, dict) else {"": table}
    for name, value in lines.items():
        if not SECRET_NAME.fullmatch(name):
            raise SettingError(
                f'{path}: [secrets] {name!r}: a line has the form mask = "env:NAME", with a-z, 0-9 and _'
            )
        if not isinstance(value, str) or not is_reference(value):
            raise SettingError(f"{path}: [secrets] {name} holds no reference: {EXAMPLES}")
    return tuple(sorted(lines.items()))


PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MSK = "AWS_MSK_IAM"
OAUTH = "sasl.oauthbearer."
LIBRDKAFKA, JAVA = "librdkafka.", "java."
"""Begin the names of the tables [kafka.librdkafka] and [kafka.java]: one client gets such a setting as it is."""
SAME = ("client.id", "client.rack", "isolation.level")
"""Names that both clients have, with one meaning."""
PEM = {
    "ssl.ca.pem": ("CERTIFICATE",),
    "ssl.certificate.pem": ("CERTIFICATE",),
    "ssl.key.pem": ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"),
}
"""The settings that are PEM text, and the kinds of block that they begin with."""
_CONFIDENTIAL = re.compile(r"password|secret|jaas|[.]pem$|keystore[.]key$")
"""In the name of a setting whose value the file may not hold."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_MODULES = "org.apache.kafka.common.security"


class Mechanism(NamedTuple):
    """A SASL mechanism: its settings, and how Java's client calls them."""

    needs: tuple[str, ...]
    login: str
    options: Mapping[str, str]
    handler: Mapping[str, str] = {}
    allows: tuple[str, ...] = ()


_USER = {"username": "sasl.username", "password": "sasl.password"}
_CLIENT = {"clientId": f"{OAUTH}client.id", "clientSecret": f"{OAUTH}client.secret", "scope": f"{OAUTH}scope"}
_SCRAM = Mechanism(tuple(_USER.values()), f"{_MODULES}.scram.ScramLoginModule", _USER)
MECHANISMS = {
    "PLAIN": _SCRAM._replace(login=f"{_MODULES}.plain.PlainLoginModule"),
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": Mechanism(
        needs=(f"{OAUTH}token.endpoint.url", f"{OAUTH}client.id", f"{OAUTH}client.secret"),
        login=f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
        options=_CLIENT,
        handler={"sasl.login.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"},
        allows=(f"{OAUTH}scope",),
    ),
    MSK: Mechanism(
        needs=("aws.region",),
        login="software.amazon.msk.auth.iam.IAMLoginModule",
        options={},
        handler={"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"},
    ),
}
SASL = {name: None for m in MECHANISMS.values() for name in (*m.needs, *m.allows)}
TLS = (*PEM, "ssl.key.password")
NAMES = ("security.protocol", "sasl.mechanism", *TLS, *SASL, *SAME)


SPARK_REDACTION = {
    **dict.fromkeys(
        ("spark.redaction.regex", "spark.sql.redaction.options.regex"),
        "(?i)secret|password|token|access[.]?key|jaas|keystore|truststore",
    ),
    # the plan of a stream repeats the options in a part that these names do not reach
    "spark.sql.redaction.string.regex": r"(?s)StreamingRelation DataSource\(.*?,None\), kafka",
}
"""Settings of Spark: it hides options of these names, among them those of `for_java`, in plans, logs and events."""


def read_kafka(table: Any, path: str | None) -> tuple[tuple[str, str], ...]:
    """The settings of the table [kafka], with references as they are. Raises SettingError, which names the wrong setting."""
    try:
        found = {name: setting_text(name, value) for name, value in flat_settings(table)}
        for name in found:
            if name not in NAMES and not name.startswith((LIBRDKAFKA, JAVA)):
                raise SettingError(
                    f"there is no `{name}`; the names are {', '.join(NAMES)}; what only one client knows belongs in "
                    "[kafka.librdkafka] or [kafka.java]"
                )
        _check_security(found)
    except SettingError as error:
        raise SettingError(f"{path}: [kafka] {error}") from None
    return tuple(sorted(found.items()))


def for_librdkafka(kafka: Mapping[str, str]) -> dict[str, str]:
    """Resolved settings in librdkafka's names. The caller gives the tokens of AWS_MSK_IAM."""
    mechanism = kafka.get("sasl.mechanism")
    own = {name: value for name, value in kafka.items() if name in NAMES and name != "aws.region"}
    if mechanism == "OAUTHBEARER":
        own["sasl.oauthbearer.method"] = "oidc"
    if mechanism == MSK:
        own["sasl.mechanism"] = "OAUTHBEARER"
    return own | _of_client(LIBRDKAFKA, kafka)


def for_java(kafka: Mapping[str, str]) -> dict[str, str]:
    """Resolved settings in the names of Kafka's Java client."""
    same = ("security.protocol", "sasl.mechanism", "ssl.key.password", f"{OAUTH}token.endpoint.url", *SAME)
    own = {name: kafka[name] for name in same if name in kafka}
    if "ssl.ca.pem" in kafka:
        own |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": kafka["ssl.ca.pem"]}
    if "ssl.key.pem" in kafka:
        own |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": kafka["ssl.certificate.pem"],
            "ssl.keystore.key": kafka["ssl.key.pem"],
        }
    if "sasl.mechanism" in kafka:
        mechanism = MECHANISMS[kafka["sasl.mechanism"]]
        options = "".join(
            f" {java}={_quoted(kafka[ours])}" for java, ours in mechanism.options.items() if ours in kafka
        )
        own |= {"sasl.jaas.config": f"{mechanism.login} required{options};", **mechanism.handler}
    return own | _of_client(JAVA, kafka)


def credentials(kafka: Mapping[str, str]) -> str:
    """The names of the settings that authenticate the client."""
    mechanism = MECHANISMS.get(kafka.get("sasl.mechanism", ""))
    return ", ".join(mechanism.needs) if mechanism else "ssl.certificate.pem"


def flat_settings(table: Any) -> Iterator[tuple[str, Any]]:
    """The settings of a table and of the tables in it: `a.b` without quotes is a table in TOML."""
    waiting = [("", table)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}" if name else key, one) for key, one in value.items()]
        else:
            yield name, value


def setting_text(name: str, value: Any) -> str:
    """The text of a setting in a table. Raises SettingError for a secret that is no reference."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str | int) or not name or _CONTROL.search(name):
        raise SettingError(f'{name!r}: the value is not text; a line has the form "client.id" = "text"')
    if _CONFIDENTIAL.search(name) and not is_reference(text):
        raise SettingError(f"{name} holds its value: {EXAMPLES}")
    if _CONTROL.search(text):
        raise SettingError(f"{name}: the value is not text in one line")
    return text


def _check_security(found: Mapping[str, str]) -> None:
    """Raises SettingError where the protocol and its mechanism do not fit to the names."""
    protocol = found.get("security.protocol", "PLAINTEXT")
    _check_choice("security.protocol", protocol, PROTOCOLS)
    allowed: set[str] = set()
    needed: list[tuple[str, str]] = []
    if protocol.startswith("SASL"):
        mechanism = found.get("sasl.mechanism", "")
        _check_choice("sasl.mechanism", mechanism, tuple(MECHANISMS))
        allowed = {"sasl.mechanism", *MECHANISMS[mechanism].needs, *MECHANISMS[mechanism].allows}
        needed = [(name, mechanism) for name in MECHANISMS[mechanism].needs]
    if protocol.endswith("SSL"):
        allowed |= set(TLS)
        pairs = (
            ("ssl.key.pem", "ssl.certificate.pem"),
            ("ssl.certificate.pem", "ssl.key.pem"),
            ("ssl.key.pem", "ssl.key.password"),
        )
        needed += [pair for pair in pairs if pair[1] in found]
    for name, by in needed:
        if name not in found:
            raise SettingError(f"{name} is missing, and {by} needs it")
    for name in NAMES:
        if name in found and name in (*TLS, *SASL, "sasl.mechanism") and name not in allowed:
            why = f"security.protocol {protocol}" + (
                f" and sasl.mechanism {found['sasl.mechanism']}" if "sasl.mechanism" in allowed else ""
            )
            raise SettingError(
                f"{name} has no effect with {why}: correct security.protocol or sasl.mechanism, or remove it"
            )


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        problem = f"{name}: there is no {value!r}" if value else f"{name} is missing"
        raise SettingError(f"{problem}; use {', '.join(choices)}")


def _of_client(table: str, kafka: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(table): value for name, value in kafka.items() if name.startswith(table)}


def _quoted(text: str) -> str:
    """Text in Java's JAAS syntax."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
