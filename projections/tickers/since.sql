-- What was traded from $1 on: in the whole hours from $3 on, in the whole minutes from $2 up to there, and, trade by trade,
-- before $2. half finds the first record at or after $1 and $2: see projections.Span.
WITH RECURSIVE half (at, low, high) AS (
    SELECT t.at, -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = 'trading')
    FROM (VALUES ($1::timestamptz), ($2)) AS t (at)
    UNION ALL
    SELECT at, CASE WHEN r.time < at THEN r.sequence ELSE low END, CASE WHEN r.time < at THEN high ELSE r.sequence END
    FROM half, LATERAL (
        SELECT r.sequence, r.time FROM records r WHERE r.journal = 'trading' AND r.sequence = (low + high) / 2 OFFSET 0) r
    WHERE high - low > 1
)
SELECT p.symbol,
       (array_agg(p.open ORDER BY p.start, p.sequence, p.ordinal))[1]::text,
       max(p.high)::text,
       min(p.low)::text,
       (array_agg(p.close ORDER BY p.start DESC, p.sequence DESC, p.ordinal DESC))[1]::text,
       sum(p.volume)::text,
       trim_scale(sum(p.turnover))::text
FROM (
    SELECT symbol, start, 0 AS sequence, 0 AS ordinal, open, high, low, close, volume, turnover
    FROM candles WHERE seconds = 3600 AND start >= $3
    UNION ALL
    SELECT symbol, start, 0, 0, open, high, low, close, volume, turnover
    FROM candles WHERE seconds = 60 AND start >= $2 AND start < $3
    UNION ALL
    SELECT symbol, time, sequence, ordinal, price, price, price, price, amount, notional
    FROM trades WHERE role = 'taker' AND type <> 'auto_deleveraging'
        AND sequence >= (SELECT min(high) FROM half WHERE at = $1) AND sequence < (SELECT min(high) FROM half WHERE at = $2)
) p
GROUP BY p.symbol
