SELECT date_trunc('HOUR', ts) AS hour, user_id,
       count_if(action = 'product_view') AS views,
       count_if(action = 'add_to_cart') AS carts,
       count_if(action = 'checkout_start') AS checkouts,
       count_if(action = 'purchase') AS purchases
FROM events
GROUP BY date_trunc('HOUR', ts), user_id
