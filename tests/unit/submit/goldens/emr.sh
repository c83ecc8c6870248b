aws emr add-steps \
  --region '<region>' \
  --cluster-id '<j-CLUSTER>' \
  --steps '[
  {
    "Name": "errata bf-20260214-daily-revenue-7f3a21c0",
    "Type": "CUSTOM_JAR",
    "Jar": "command-runner.jar",
    "ActionOnFailure": "CONTINUE",
    "Args": [
      "spark-submit",
      "--master",
      "yarn",
      "--deploy-mode",
      "cluster",
      "--name",
      "errata bf-20260214-daily-revenue-7f3a21c0",
      "--archives",
      "<s3://bucket/errata>/environment.tar.gz#environment,<s3://bucket/errata>/project.tar.gz#project",
      "--jars",
      "<s3://bucket/errata>/jars/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,<s3://bucket/errata>/jars/postgresql-42.7.8.jar",
      "--conf",
      "spark.pyspark.python=./environment/bin/python",
      "--conf",
      "spark.pyspark.driver.python=./environment/bin/python",
      "--conf",
      "spark.executor.memory=8g",
      "--conf",
      "spark.executor.cores=4",
      "--conf",
      "spark.sql.shuffle.partitions=64",
      "--conf",
      "spark.executor.extraJavaOptions=-XX:+UseG1GC -Dapp=errata",
      "--conf",
      "spark.dynamicAllocation.maxExecutors=4",
      "--conf",
      "spark.executor.instances=4",
      "--conf",
      "spark.yarn.tags=errata,bf-20260214-daily-revenue-7f3a21c0",
      "--conf",
      "spark.yarn.appMasterEnv.LEDGER_PASSWORD='"${LEDGER_PASSWORD}"'",
      "--conf",
      "spark.yarn.appMasterEnv.S3_SECRET_KEY='"${S3_SECRET_KEY}"'",
      "--conf",
      "spark.redaction.regex=(?i)secret|password|token|access[.]?key|appMasterEnv",
      "<s3://bucket/errata>/application.py",
      "-C",
      "./project",
      "--as",
      "ana",
      "run",
      "bf-20260214-daily-revenue-7f3a21c0",
      "--parallel",
      "2"
    ]
  }
]'

# fill in
#   <s3://bucket/errata>  where application.py, the archives and jars/ are (--at)
#   <j-CLUSTER>           the EMR cluster (--cluster-id)
#   <region>              the AWS region (--region)

# jars, as the run manifest pins them
#   d6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5d  iceberg-spark-runtime-4.1_2.13-1.11.0.jar
#   2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc  postgresql-42.7.8.jar

# notes
#   a worker holds at most 16 executor cores (throttle.cores)
#   the shell fills in LEDGER_PASSWORD, S3_SECRET_KEY; anyone who may see the application's settings can read them
#   left to errata.yaml, because it comes from the environment: spark.hadoop.fs.s3a.secret.key=${S3_SECRET_KEY}
#   the release of the cluster must have Spark 4.1
#   steps run one after the other unless the cluster's step concurrency is as high as the workers
