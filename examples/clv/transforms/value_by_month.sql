-- The value of a month: one row, from the daily value of every customer.
SELECT
  date_format(event_date, 'yyyy-MM') AS event_month,
  count(DISTINCT customer_id) AS customers,
  sum(orders) AS orders,
  CAST(sum(revenue) AS DECIMAL(18, 2)) AS revenue,
  CAST(sum(margin) AS DECIMAL(18, 2)) AS margin
FROM days
GROUP BY date_format(event_date, 'yyyy-MM')
