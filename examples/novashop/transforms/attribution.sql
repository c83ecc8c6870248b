SELECT CAST(hour AS DATE) AS day, sum(purchases) AS purchases,
       sum(CASE WHEN views > 0 THEN purchases ELSE 0 END) AS attributed
FROM sessions
GROUP BY CAST(hour AS DATE)
