INSERT INTO transactions (
    sequence, ordinal, code, customer_code, broker, type, currency, amount, status, balance, symbol, order_code,
    reference_id, created, updated, changed_sequence)
SELECT
    n.sequence, n.ordinal, n.code, n.customer_code,
    COALESCE(n.broker, (SELECT c.broker FROM customers c WHERE c.customer_code = n.customer_code), ''), n.type, n.currency,
    n.amount::numeric, n.status, n.balance::numeric, n.symbol, n.order_code, n.reference_id, n.created, n.updated,
    n.changed_sequence
FROM unnest(
    $1::bigint[], $2::integer[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::uuid[], $13::text[], $14::timestamptz[], $15::timestamptz[], $16::bigint[]
) AS n (sequence, ordinal, code, customer_code, broker, type, currency, amount, status, balance, symbol, order_code,
    reference_id, created, updated, changed_sequence)
