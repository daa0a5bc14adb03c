INSERT INTO trades (
    sequence, ordinal, code, order_code, customer_code, broker, symbol, action, price, amount, notional, fee,
    fee_currency, role, type, reference_id, time)
SELECT
    sequence, ordinal, code, order_code, customer_code, broker, symbol, action, price::numeric, amount::numeric,
    notional::numeric, fee::numeric, fee_currency, role, type, reference_id, time
FROM unnest(
    $1::bigint[], $2::integer[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::timestamptz[]
) AS n (sequence, ordinal, code, order_code, customer_code, broker, symbol, action, price, amount, notional, fee,
    fee_currency, role, type, reference_id, time)
