INSERT INTO positions (customer_code, symbol, broker, amount, cost, entry_price, updated, sequence)
SELECT n.customer_code, n.symbol,
    COALESCE(n.broker, (SELECT c.broker FROM customers c WHERE c.customer_code = n.customer_code), ''),
    n.amount::numeric, n.cost::numeric, n.entry_price::numeric, n.updated, n.sequence
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::bigint[])
    AS n (customer_code, symbol, broker, amount, cost, entry_price, updated, sequence)
ON CONFLICT (customer_code, symbol) DO UPDATE SET
    amount = excluded.amount, cost = excluded.cost, entry_price = excluded.entry_price, updated = excluded.updated,
    sequence = excluded.sequence
