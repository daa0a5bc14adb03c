-- The window of a page of candles of $1 (symbol), $2 (price) and $3 (seconds). It begins at $4, or where the candles begin if that
-- is later; without $4 it ends as late as it may. It ends before $5, if that is given, and holds $6 candles at most and none that
-- has not begun. The time is that of the log, or $7 if that is later and the rows hold the record $8 or later ones.
WITH clock AS (
    SELECT CASE WHEN c.sequence >= $8::bigint THEN GREATEST(c.time, $7::timestamptz) ELSE c.time END AS now
    FROM checkpoints c WHERE c.journal = 'trading' ORDER BY c.partition LIMIT 1
), step AS (
    SELECT $3::integer * interval '1 second' AS length
), latest AS (
    SELECT date_bin(length, now, 'epoch') AS opened, LEAST($5::timestamptz, date_bin(length, now, 'epoch') + length) AS last, length
    FROM clock, step
), begun AS (
    SELECT opened, last, length, CASE WHEN $4::timestamptz IS NULL THEN last - $6::integer * length
        ELSE GREATEST($4, (SELECT n.start FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 ORDER BY n.start LIMIT 1)) END AS first
    FROM latest
), span AS (
    SELECT opened, first, LEAST(last, first + $6::integer * length) AS last FROM begun
)
