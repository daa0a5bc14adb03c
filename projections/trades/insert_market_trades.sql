INSERT INTO market_trades (sequence, ordinal, code, symbol, price, amount, action, type, time)
SELECT sequence, ordinal, code, symbol, price::numeric, amount::numeric, action, type, time
FROM unnest(
    $1::bigint[], $2::integer[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[]
) AS n (sequence, ordinal, code, symbol, price, amount, action, type, time)
