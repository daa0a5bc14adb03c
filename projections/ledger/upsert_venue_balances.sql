INSERT INTO venue_balances (account, currency, balance, updated, sequence)
SELECT account, currency, balance::numeric, updated, sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[])
    AS n (account, currency, balance, updated, sequence)
ON CONFLICT (account, currency) DO UPDATE SET
    balance = excluded.balance, updated = excluded.updated, sequence = excluded.sequence
