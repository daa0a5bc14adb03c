-- What was traded from $1 on, a whole minute, until the record $5, which is in the minute that begins at $4: in the whole hours from $2
-- until before $3, in the minutes before and after, and in that last minute. No record before $6 is in it.
SELECT i.symbol, f.open::text, f.high::text, f.low::text, f.close::text, f.volume::text, f.turnover::text
FROM instruments i, LATERAL (
    SELECT (array_agg(p.open ORDER BY p.start))[1] AS open, max(p.high) AS high, min(p.low) AS low,
           (array_agg(p.close ORDER BY p.start DESC))[1] AS close, sum(p.volume) AS volume, trim_scale(sum(p.turnover)) AS turnover
    FROM (
        SELECT start, open, high, low, close, volume, turnover FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 3600 AND start >= $2 AND start < $3
        UNION ALL
        SELECT start, open, high, low, close, volume, turnover FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 60 AND start >= $1 AND start < $2
        UNION ALL
        SELECT start, open, high, low, close, volume, turnover FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 60 AND start >= $3 AND start < $4
        UNION ALL
        SELECT $4, (array_agg(t.price ORDER BY t.sequence, t.ordinal))[1], max(t.price), min(t.price),
               (array_agg(t.price ORDER BY t.sequence DESC, t.ordinal DESC))[1], sum(t.amount), sum(t.notional)
        FROM trades t WHERE t.symbol = i.symbol AND t.role = 'taker' AND t.sequence >= $6 AND t.sequence <= $5 AND t.time >= $4
            AND (t.type = 'trade' OR t.type = 'liquidation' AND t.order_code IS NOT NULL) -- as TradeExecuted.MovesLastPrice
        HAVING count(*) > 0
    ) p
) f
WHERE f.open IS NOT NULL
