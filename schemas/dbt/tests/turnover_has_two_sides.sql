-- The turnover of a market is that of its makers, and that of its takers.
SELECT day, symbol, v.turnover, f.maker, f.taker
FROM {{ ref('market_volume_daily') }} v FULL JOIN (
    SELECT day, symbol, sum(maker_turnover) AS maker, sum(taker_turnover) AS taker FROM {{ source('analytics', 'fees_daily') }} GROUP BY day, symbol
) f USING (day, symbol)
WHERE v.turnover IS DISTINCT FROM f.maker OR v.turnover IS DISTINCT FROM f.taker
