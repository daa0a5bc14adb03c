INSERT INTO fee_profiles (customer_code, symbol, broker, maker_fee, taker_fee, sequence)
SELECT customer_code, symbol, broker, maker_fee::numeric, taker_fee::numeric, sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
    AS n (customer_code, symbol, broker, maker_fee, taker_fee, sequence)
ON CONFLICT (customer_code, symbol) DO UPDATE SET
    maker_fee = excluded.maker_fee, taker_fee = excluded.taker_fee, sequence = excluded.sequence
