UPDATE transactions t SET
    amount = n.amount::numeric, status = n.status, balance = n.balance::numeric, updated = n.updated,
    changed_sequence = n.changed_sequence
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[])
    AS n (code, amount, status, balance, updated, changed_sequence)
WHERE t.code = n.code AND t.reference_id IS NOT NULL
