-- Long and short positions of an instrument have the same size, now and at the end of every day.
SELECT 'now' AS day, symbol, sum(amount) AS total FROM {{ source('tables', 'positions') }} GROUP BY symbol HAVING sum(amount) <> 0
UNION ALL
SELECT day::text, symbol, sum(amount) FROM {{ source('analytics', 'positions_daily') }} GROUP BY day, symbol HAVING sum(amount) <> 0
