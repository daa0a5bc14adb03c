INSERT INTO leverages (customer_code, symbol, broker, leverage, sequence)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::bigint[])
ON CONFLICT (customer_code, symbol) DO UPDATE SET leverage = excluded.leverage, sequence = excluded.sequence
