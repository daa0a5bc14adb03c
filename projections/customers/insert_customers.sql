INSERT INTO customers (customer_code, broker, name, created, sequence, ordinal)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[], $6::integer[])
