INSERT INTO records (
    journal, sequence, "offset", hash, time, outcome, command_id, command_type, sub, broker, customer_code, system)
SELECT $1, n.* FROM unnest(
    $2::bigint[], $3::bigint[], $4::bytea[], $5::timestamptz[], $6::text[], $7::uuid[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[]
) AS n
