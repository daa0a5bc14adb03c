INSERT INTO brokers (broker, name, created, sequence)
SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[])
