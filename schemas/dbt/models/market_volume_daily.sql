SELECT (hour AT TIME ZONE 'UTC')::date AS day, symbol, sum(volume) AS volume, sum(turnover) AS turnover, sum(bought - sold) AS net_bought,
    sum(liquidated) AS liquidated, sum(deleveraged) AS deleveraged, sum(trades) AS trades, max(high) AS high, min(low) AS low,
    (array_agg(open ORDER BY hour) FILTER (WHERE open IS NOT NULL))[1] AS open,
    (array_agg(close ORDER BY hour DESC) FILTER (WHERE close IS NOT NULL))[1] AS close,
    max(sequence) AS sequence, bool_and(final) AS final
FROM {{ source('analytics', 'trades_hourly') }}
GROUP BY 1, 2
