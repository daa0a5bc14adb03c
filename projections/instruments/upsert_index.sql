INSERT INTO prices (symbol, index_price, mark_price, index_time)
SELECT symbol, index_price::numeric, mark_price::numeric, index_time
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) AS n (symbol, index_price, mark_price, index_time)
ON CONFLICT (symbol) DO UPDATE SET
    index_price = excluded.index_price, mark_price = excluded.mark_price, index_time = excluded.index_time
