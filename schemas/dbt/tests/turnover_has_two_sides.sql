-- The turnover of a market is that of its makers, and that of its takers.
SELECT day, symbol, t.turnover, f.maker, f.taker
FROM (
    SELECT (hour AT TIME ZONE 'UTC')::date AS day, symbol, sum(turnover) AS turnover FROM {{ source('analytics', 'trades_hourly') }} GROUP BY 1, 2
) t FULL JOIN (
    SELECT day, symbol, sum(maker_turnover) AS maker, sum(taker_turnover) AS taker FROM {{ source('analytics', 'fees_daily') }} GROUP BY day, symbol
) f USING (day, symbol)
WHERE t.turnover IS DISTINCT FROM f.maker OR t.turnover IS DISTINCT FROM f.taker
