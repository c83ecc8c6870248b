SELECT hour, count_if(views > 0) AS viewed, count_if(carts > 0) AS carted, count_if(checkouts > 0) AS checked_out,
       count_if(purchases > 0) AS bought
FROM sessions
GROUP BY hour
