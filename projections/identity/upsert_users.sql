INSERT INTO users (
    username, broker, customer_code, scopes, is_active, is_verified, rate_per_second, rate_burst, created, updated,
    created_sequence, sequence)
SELECT
    username, broker, customer_code, string_to_array(scopes, ' '), is_active, is_verified, NULLIF(rate_per_second, 0),
    NULLIF(rate_burst, 0), created, updated, created_sequence, sequence
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::boolean[], $7::bigint[], $8::bigint[],
    $9::timestamptz[], $10::timestamptz[], $11::bigint[], $12::bigint[]
) AS n (username, broker, customer_code, scopes, is_active, is_verified, rate_per_second, rate_burst, created, updated,
    created_sequence, sequence)
ON CONFLICT (username) DO UPDATE SET
    broker = excluded.broker, customer_code = excluded.customer_code, scopes = excluded.scopes,
    is_active = excluded.is_active, is_verified = excluded.is_verified, rate_per_second = excluded.rate_per_second,
    rate_burst = excluded.rate_burst, updated = excluded.updated, sequence = excluded.sequence
