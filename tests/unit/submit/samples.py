"""A project on PostgreSQL and S3 with one secret in a setting and one in the ledger's address, and its run."""

from __future__ import annotations

from typing import Any

from errata.model.partition import Grain
from errata.model.product import Catalog, Product, Project, Target, Transform
from errata.model.product.throttle import Throttle
from errata.submit.job import LocalMachine, SubmitOptions, WorkerJob, build_job

RUN = "bf-20260214-daily-revenue-7f3a21c0"
PASSWORD, KEY = "p$ss 'word\"", "s3cr3t-key"
HERE = LocalMachine(
    "/opt/errata/venv/bin/python",
    "/opt/errata/venv/lib/python3.12/site-packages/errata/submit/application.py",
    "/home/ana/.cache/errata/jars",
)
JARS = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0": "d6ea6c5d" * 8,
    "org.postgresql:postgresql:42.7.8": "2a32a9dc" * 8,
}
MANIFEST: dict[str, Any] = {
    "product": "fin.daily_revenue",
    "code": {"jars": JARS},
    "inputs": [{"kind": "files", "location": "s3://lake/raw/day={day}/*.parquet"}],
}
CONF = {
    "spark.executor.memory": "8g",
    "spark.executor.cores": "4",
    "spark.sql.shuffle.partitions": "64",
    "spark.executor.extraJavaOptions": "-XX:+UseG1GC -Dapp=errata",
    "spark.hadoop.fs.s3a.secret.key": KEY,
}
FILLED = {
    "emr-serverless": SubmitOptions(
        workers=3,
        at="s3://finsight-jobs/errata",
        region="eu-central-1",
        application_id="00f1abcdexample",
        role_arn="arn:aws:iam::111122223333:role/errata-worker",
    ),
    "emr": SubmitOptions(at="s3://finsight-jobs/errata", region="eu-central-1", cluster_id="j-2AXXXXXXEXAMPLE"),
    "kubernetes": SubmitOptions(
        workers=3,
        master="k8s://https://k8s.example.com:6443",
        image="registry.example.com/errata:0.1.0",
        namespace="backfill",
        service_account="errata",
    ),
    "yarn": SubmitOptions(workers=3, env="environment.tar.gz", project="project.tar.gz"),
    "standalone": SubmitOptions(workers=3, master="spark://spark.example.com:7077", env="environment.tar.gz"),
}
"""What the guides ask for, by target."""


def project(**given: Any) -> Project:
    product = Product(
        "fin.daily_revenue",
        "finance",
        Target("lake.fin.daily_revenue", "day", Grain.DAY),
        Transform("transforms.daily_revenue:build", "1.0.0"),
        (),
    )
    settings: dict[str, Any] = {
        "ledger": f"postgresql+psycopg://errata:{PASSWORD}@db.example.com/errata",
        "catalogs": {"lake": Catalog("lake", "rest", "https://catalog.example.com", "s3://lake/warehouse")},
        "products": {product.name: product},
        "spark_conf": CONF,
        "throttle": Throttle(cores=16),
        "secrets": {"LEDGER_PASSWORD": PASSWORD, "S3_SECRET_KEY": KEY},
    }
    return Project("finsight", "/srv/finsight", **(settings | given))


def job(**given: Any) -> WorkerJob:
    return build_job(project(**given), MANIFEST, RUN, "ana", HERE)
