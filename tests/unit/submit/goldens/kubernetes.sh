spark-submit \
  --master '<k8s://https://host:6443>' \
  --deploy-mode cluster \
  --name 'errata bf-20260214-daily-revenue-7f3a21c0' \
  --jars local:///opt/errata/jars/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,local:///opt/errata/jars/postgresql-42.7.8.jar \
  --conf spark.pyspark.python=/opt/errata/environment/bin/python \
  --conf spark.pyspark.driver.python=/opt/errata/environment/bin/python \
  --conf spark.executor.memory=8g \
  --conf spark.executor.cores=4 \
  --conf spark.sql.shuffle.partitions=64 \
  --conf 'spark.executor.extraJavaOptions=-XX:+UseG1GC -Dapp=errata' \
  --conf spark.dynamicAllocation.maxExecutors=4 \
  --conf spark.executor.instances=4 \
  --conf 'spark.kubernetes.container.image=<image>' \
  --conf 'spark.kubernetes.namespace=<namespace>' \
  --conf spark.kubernetes.driver.label.errata-run=bf-20260214-daily-revenue-7f3a21c0 \
  --conf spark.kubernetes.executor.label.errata-run=bf-20260214-daily-revenue-7f3a21c0 \
  --conf 'spark.kubernetes.authenticate.driver.serviceAccountName=<service-account>' \
  --conf spark.kubernetes.driver.secretKeyRef.LEDGER_PASSWORD=errata:LEDGER_PASSWORD \
  --conf spark.kubernetes.driver.secretKeyRef.S3_SECRET_KEY=errata:S3_SECRET_KEY \
  local:///opt/errata/application.py \
  -C /opt/errata/project --as ana run bf-20260214-daily-revenue-7f3a21c0 --parallel 2

# fill in
#   <k8s://https://host:6443>  the API server (--master)
#   <image>                    the container image (--image)
#   <namespace>                where the pods go (--namespace)
#   <service-account>          one that may make pods (--service-account)

# jars, as the run manifest pins them
#   d6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5d  iceberg-spark-runtime-4.1_2.13-1.11.0.jar
#   2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc  postgresql-42.7.8.jar

# notes
#   a worker holds at most 16 executor cores (throttle.cores)
#   the Kubernetes secret `errata` has the keys LEDGER_PASSWORD, S3_SECRET_KEY
#   left to errata.yaml, because it comes from the environment: spark.hadoop.fs.s3a.secret.key=${S3_SECRET_KEY}
