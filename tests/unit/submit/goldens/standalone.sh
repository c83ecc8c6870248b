spark-submit \
  --master '<spark://host:7077>' \
  --deploy-mode client \
  --name 'errata bf-20260214-daily-revenue-7f3a21c0' \
  --jars /home/ana/.cache/errata/jars/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,/home/ana/.cache/errata/jars/postgresql-42.7.8.jar \
  --conf spark.pyspark.python=/opt/errata/venv/bin/python \
  --conf spark.pyspark.driver.python=/opt/errata/venv/bin/python \
  --conf spark.executor.memory=8g \
  --conf spark.executor.cores=4 \
  --conf spark.sql.shuffle.partitions=64 \
  --conf 'spark.executor.extraJavaOptions=-XX:+UseG1GC -Dapp=errata' \
  --conf spark.cores.max=16 \
  /opt/errata/venv/lib/python3.12/site-packages/errata/submit/application.py \
  -C /srv/finsight --as ana run bf-20260214-daily-revenue-7f3a21c0 --parallel 2

# fill in
#   <spark://host:7077>  the standalone master (--master)

# jars, as the run manifest pins them
#   d6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5d  iceberg-spark-runtime-4.1_2.13-1.11.0.jar
#   2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc  postgresql-42.7.8.jar

# notes
#   a worker holds at most 16 executor cores (throttle.cores)
#   set where this runs: LEDGER_PASSWORD, S3_SECRET_KEY
#   left to errata.yaml, because it comes from the environment: spark.hadoop.fs.s3a.secret.key=${S3_SECRET_KEY}
