INSERT INTO venue_postings (sequence, ordinal, account, type, currency, amount, balance, symbol, order_code, time)
SELECT sequence, ordinal, account, type, currency, amount::numeric, balance::numeric, symbol, order_code, time
FROM unnest(
    $1::bigint[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::uuid[],
    $10::timestamptz[]
) AS n (sequence, ordinal, account, type, currency, amount, balance, symbol, order_code, time)
