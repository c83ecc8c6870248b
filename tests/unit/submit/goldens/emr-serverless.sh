aws emr-serverless start-job-run \
  --region '<region>' \
  --application-id '<application-id>' \
  --execution-role-arn '<role-arn>' \
  --name 'errata bf-20260214-daily-revenue-7f3a21c0' \
  --tags errata-run=bf-20260214-daily-revenue-7f3a21c0,errata-project=finsight \
  --execution-timeout-minutes 0 \
  --retry-policy maxAttempts=3 \
  --job-driver '{
  "sparkSubmit": {
    "entryPoint": "<s3://bucket/errata>/application.py",
    "entryPointArguments": [
      "-C",
      "./project",
      "--as",
      "ana",
      "run",
      "bf-20260214-daily-revenue-7f3a21c0",
      "--parallel",
      "2"
    ],
    "sparkSubmitParameters": "--conf spark.archives=<s3://bucket/errata>/environment.tar.gz#environment,<s3://bucket/errata>/project.tar.gz#project --conf spark.jars=<s3://bucket/errata>/jars/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,<s3://bucket/errata>/jars/postgresql-42.7.8.jar --conf spark.emr-serverless.driverEnv.PYSPARK_PYTHON=./environment/bin/python --conf spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON=./environment/bin/python --conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python"
  }
}' \
  --configuration-overrides '{
  "applicationConfiguration": [
    {
      "classification": "spark-defaults",
      "properties": {
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": "./environment/bin/python",
        "spark.executor.cores": "4",
        "spark.executor.memory": "8g",
        "spark.sql.shuffle.partitions": "64",
        "spark.executor.extraJavaOptions": "-XX:+UseG1GC -Dapp=errata",
        "spark.dynamicAllocation.maxExecutors": "4",
        "spark.executor.instances": "4",
        "spark.emr-serverless.driverEnv.LEDGER_PASSWORD": "EMR.secret@<secret-LEDGER_PASSWORD>",
        "spark.emr-serverless.driverEnv.S3_SECRET_KEY": "EMR.secret@<secret-S3_SECRET_KEY>"
      }
    }
  ]
}'

# fill in
#   <s3://bucket/errata>      where application.py, the archives and jars/ are (--at)
#   <secret-LEDGER_PASSWORD>  the Secrets Manager secret whose text is LEDGER_PASSWORD
#   <secret-S3_SECRET_KEY>    the Secrets Manager secret whose text is S3_SECRET_KEY
#   <application-id>          the EMR Serverless application
#   <role-arn>                the execution role (--role-arn)
#   <region>                  the AWS region (--region)

# jars, as the run manifest pins them
#   d6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5d  iceberg-spark-runtime-4.1_2.13-1.11.0.jar
#   2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc  postgresql-42.7.8.jar

# notes
#   a worker holds at most 16 executor cores (throttle.cores)
#   left to errata.yaml, because it comes from the environment: spark.hadoop.fs.s3a.secret.key=${S3_SECRET_KEY}
#   the release of the application must have Spark 4.1
