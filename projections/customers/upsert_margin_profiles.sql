INSERT INTO margin_profiles (customer_code, broker, leverage, initial_margin, maintenance_margin, sequence)
SELECT customer_code, broker, leverage, initial_margin::numeric, maintenance_margin::numeric, sequence
FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::bigint[])
    AS n (customer_code, broker, leverage, initial_margin, maintenance_margin, sequence)
ON CONFLICT (customer_code) DO UPDATE SET
    leverage = excluded.leverage, initial_margin = excluded.initial_margin,
    maintenance_margin = excluded.maintenance_margin, sequence = excluded.sequence
