"""What a person is told about a PostgreSQL that cannot be reached."""

from __future__ import annotations

import pytest

from errata.engines.copies.postgres_copies import PostgresCopies
from errata.engines.copies.postgres_session import translate_error
from errata.errors import EngineError
from support.postgres import free_port

psycopg = pytest.importorskip("psycopg", reason='a driver is missing (pip install "errata[postgres-copy]")')


def test_an_address_where_nothing_listens_is_told_without_the_address():
    """The reason is there, the host and the password are not."""
    copies = PostgresCopies({"pg": f"postgresql://errata:s3cret@127.0.0.1:{free_port()}/bi"})
    with pytest.raises(EngineError, match=r"^pg cannot be reached: nothing listens at its address$") as refused:
        copies.describe("pg", "fin.daily_revenue")
    assert refused.value.hint == "errata doctor"


@pytest.mark.parametrize(
    "said, told",
    [
        ('FATAL:  password authentication failed for user "errata"', "the password was refused"),
        ('FATAL:  database "bi" does not exist', "there is no such database"),
        ('FATAL:  role "errata" does not exist', "there is no such role"),
        (
            'could not translate host name "db.example" to address: Name or service not known',
            "its host name is not known",
        ),
        ("server closed the connection unexpectedly", "OperationalError"),
    ],
)
def test_the_reason_is_in_words_that_quote_nothing(said: str, told: str):
    """What libpq says becomes a reason without names and addresses; what is not known stays a kind of error."""
    error = psycopg.OperationalError(f'connection to server at "10.0.0.7", port 5432 failed: {said}')
    assert translate_error("pg", error).message == f"pg cannot be reached: {told}"
