from __future__ import annotations

from errata.engines.s3 import is_s3, to_hadoop_settings, to_iceberg_properties, to_pyarrow_arguments, to_s3a
from errata.model.product import S3

STORE = S3("http://minio:9000", "eu-west-1", True, "key", "canary-secret")  # noqa: FBT003


def test_one_store_reaches_every_reader_under_its_own_names():
    """Endpoint, region, addressing and credentials are said once."""
    iceberg, hadoop = to_iceberg_properties(STORE), to_hadoop_settings(STORE)
    assert {iceberg["s3.region"], iceberg["client.region"], hadoop["fs.s3a.endpoint.region"]} == {"eu-west-1"}
    assert (iceberg["s3.endpoint"], hadoop["fs.s3a.endpoint"]) == ("http://minio:9000", "http://minio:9000")
    assert (iceberg["s3.path-style-access"], iceberg["s3.force-virtual-addressing"]) == ("true", "false")
    assert hadoop["fs.s3a.path.style.access"] == "true"
    assert hadoop["fs.s3a.connection.ssl.enabled"] == "false"
    assert to_pyarrow_arguments(STORE) == {
        "access_key": "key",
        "secret_key": "canary-secret",
        "region": "eu-west-1",
        "endpoint_override": "minio:9000",
        "scheme": "http",
        "force_virtual_addressing": False,
    }


def test_what_is_not_said_is_left_to_aws():
    """No endpoint, no keys: role, profile or environment decide, for all three readers."""
    for nothing in (None, S3()):
        assert (to_iceberg_properties(nothing), to_hadoop_settings(nothing), to_pyarrow_arguments(nothing)) == (
            {},
            {},
            {},
        )
    assert to_hadoop_settings(S3(region="eu-west-1")) == {"fs.s3a.endpoint.region": "eu-west-1"}


def test_temporary_credentials_bring_their_token():
    """A session token needs another provider of s3a than a plain pair of keys."""
    provider = "fs.s3a.aws.credentials.provider"
    assert to_hadoop_settings(STORE)[provider].endswith(".SimpleAWSCredentialsProvider")
    temporary = S3(access_key_id="key", secret_access_key="canary-secret", session_token="canary-token")
    assert to_hadoop_settings(temporary)[provider].endswith(".TemporaryAWSCredentialsProvider")
    assert to_hadoop_settings(temporary)["fs.s3a.session.token"] == "canary-token"


def test_credentials_are_in_no_representation():
    """A value that is printed by accident shows none."""
    assert "canary" not in repr(STORE)


def test_every_spelling_of_s3_is_read_by_spark_through_s3a():
    """Hadoop knows one file system for S3; other places stay as they are."""
    assert {to_s3a(f"{scheme}://b/k") for scheme in ("s3", "s3a", "s3n")} == {"s3a://b/k"}
    assert (to_s3a("file:///b/k"), is_s3("file:///b"), is_s3(None)) == ("file:///b/k", False, False)
