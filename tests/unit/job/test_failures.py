"""Every failure has one line for the operator."""

from processor.job.failures import error_line


class JvmError(Exception):
    """As py4j's: its text comes from the JVM."""

    def __str__(self) -> str:
        raise ConnectionRefusedError("no JVM")


def test_a_failure_whose_jvm_has_ended_has_a_line_too() -> None:
    assert error_line(JvmError()) == "the JVM of Spark has ended"


def test_the_line_is_the_error_of_the_python_worker() -> None:
    text = (
        "Job aborted\nTraceback (most recent call last):\n  File x, line 1, in y\n    z()\n"
        "processor.errors.ConfigError: entity user: no key\n"
    )
    assert error_line(RuntimeError(text)) == "entity user: no key"


def test_the_line_is_the_error_of_java_without_its_frames() -> None:
    text = "An error occurred while calling o59.create.\n: java.io.IOException: no folder /x\n\tat a.b.C.d(E.java:1)\n"
    assert error_line(RuntimeError(text)) == "java.io.IOException: no folder /x"


def test_a_failure_without_a_text_is_named_by_its_type() -> None:
    assert error_line(RuntimeError()) == "RuntimeError"


def test_the_line_is_the_last_error_of_a_chain() -> None:
    chain = (
        "Traceback (most recent call last):\n  File x\nbotocore.exceptions.ClientError: broke\n\nThe cause of ...\n\n"
    )
    text = f"{chain}Traceback (most recent call last):\n  File y\nstatestore.errors.Transient: table t: try again\n"
    assert error_line(RuntimeError(text)) == "table t: try again"
