INSERT INTO prices (symbol, last_price, last_time)
SELECT symbol, last_price::numeric, last_time
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS n (symbol, last_price, last_time)
ON CONFLICT (symbol) DO UPDATE SET last_price = excluded.last_price, last_time = excluded.last_time
