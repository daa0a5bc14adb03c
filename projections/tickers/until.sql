-- What was traded from $1 on, a whole minute, until before $4, another one: in the whole hours from $2 until before $3, and in the
-- minutes before and after.
SELECT i.symbol, f.open::text, f.high::text, f.low::text, f.close::text, f.volume::text, f.turnover::text
FROM instruments i, LATERAL (
    SELECT (array_agg(p.open ORDER BY p.start))[1] AS open, max(p.high) AS high, min(p.low) AS low,
           (array_agg(p.close ORDER BY p.start DESC))[1] AS close, sum(p.volume) AS volume, trim_scale(sum(p.turnover)) AS turnover
    FROM (
        SELECT * FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 3600 AND start >= $2 AND start < $3
        UNION ALL
        SELECT * FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 60 AND start >= $1 AND start < $2
        UNION ALL
        SELECT * FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 60 AND start >= $3 AND start < $4
    ) p
) f
WHERE f.open IS NOT NULL
