-- The last seven days of every day; the look-back gives a chunk the six days before it, which are not its output.
WITH daily AS (
  SELECT event_date, sum(orders) AS orders, sum(margin) AS margin
  FROM days
  GROUP BY event_date
),
weekly AS (
  SELECT
    event_date,
    sum(orders) OVER last_seven AS orders,
    CAST(sum(margin) OVER last_seven AS DECIMAL(18, 2)) AS margin
  FROM daily
  WINDOW last_seven AS (ORDER BY event_date RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW)
)
SELECT event_date, orders, margin
FROM weekly
WHERE array_contains(:partitions, CAST(event_date AS STRING))
