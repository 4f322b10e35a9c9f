"""Tokens of AWS_MSK_IAM for librdkafka: a signed address of AWS, by the optional package aws-msk-iam-sasl-signer-python."""

from collections.abc import Callable

from processor.errors import SettingError


def token_source(region: str) -> Callable[[str], tuple[str, float]]:
    """A function that makes a token by the AWS credentials of this machine, with its end in seconds since 1970; librdkafka calls
    it before the last token ends. Raises SettingError without the package."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise SettingError(
            "[kafka] sasl.mechanism AWS_MSK_IAM needs a package that is not installed: pip install 'statestore[msk]'"
        ) from None

    def make_token(_: str) -> tuple[str, float]:
        token, milliseconds = MSKAuthTokenProvider.generate_auth_token(region)
        return token, milliseconds / 1000

    return make_token
