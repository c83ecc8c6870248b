for worker in $(seq 2); do
spark-submit \
  --master spark://10.0.0.1:7077 \
  --deploy-mode client \
  --name 'errata bf-20260214-daily-revenue-7f3a21c0' \
  --jars /cache/jars/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,/cache/jars/postgresql-42.7.8.jar \
  --conf spark.pyspark.python=/venv/bin/python \
  --conf spark.pyspark.driver.python=/venv/bin/python \
  --conf spark.executor.memory=8g \
  /errata/submit/application.py \
  -C /project --as ana run bf-20260214-daily-revenue-7f3a21c0 --parallel 4 &
done
wait

# jars, as the run manifest pins them
#   d6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5dd6ea6c5d  iceberg-spark-runtime-4.1_2.13-1.11.0.jar
#   2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc2a32a9dc  postgresql-42.7.8.jar

# notes
#   the run is planned: a worker is refused until somebody approves it
#   no cap on cores; throttle.cores in errata.yaml sets one
#   set where this runs: LEDGER_PASSWORD
