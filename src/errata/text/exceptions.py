"""Short messages of errors, for people. Pure."""

from __future__ import annotations


def first_line(error: BaseException) -> str:
    r"""First line of an error's message, or its type name when the message is empty. Java's own text for Java's errors.

    >>> first_line(ValueError("\nno such day\nat line 3")), first_line(TimeoutError())
    ('no such day', 'TimeoutError')
    """
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)
