INSERT INTO balances (customer_code, currency, broker, balance, updated, sequence)
SELECT n.customer_code, n.currency,
    COALESCE(n.broker, (SELECT c.broker FROM customers c WHERE c.customer_code = n.customer_code), ''),
    n.balance::numeric, n.updated, n.sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[], $6::text[])
    AS n (customer_code, currency, balance, updated, sequence, broker)
ON CONFLICT (customer_code, currency) DO UPDATE SET
    balance = excluded.balance, updated = excluded.updated, sequence = excluded.sequence
