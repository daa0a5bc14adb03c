-- Of two equal prices the first stays, so that a candle is the same however its trades are cut into batches.
INSERT INTO candles AS c (seconds, start, symbol, open, high, low, close, volume, turnover, trades)
SELECT seconds, start, symbol, open::numeric, high::numeric, low::numeric, close::numeric, volume::numeric, turnover::numeric, trades
FROM unnest(
    $1::integer[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::bigint[]
) AS n (seconds, start, symbol, open, high, low, close, volume, turnover, trades)
ON CONFLICT (seconds, start, symbol) DO UPDATE SET
    high = CASE WHEN excluded.high > c.high THEN excluded.high ELSE c.high END,
    low = CASE WHEN excluded.low < c.low THEN excluded.low ELSE c.low END,
    close = excluded.close, volume = c.volume + excluded.volume, turnover = c.turnover + excluded.turnover,
    trades = c.trades + excluded.trades
