-- Every row that this returns names something that must not be. It uses nothing but the rows themselves.
SELECT 'records' AS what, format('%s of %s are missing', max(sequence) + 1 - count(*), journal) AS found
FROM records GROUP BY journal HAVING count(*) <> max(sequence) + 1
UNION ALL
SELECT 'checkpoint', format('%s stands at %s, its records end at %s', c.journal, c.sequence, r.last)
FROM checkpoints c LEFT JOIN (SELECT journal, max(sequence) AS last FROM records GROUP BY journal) r USING (journal)
WHERE c.sequence IS DISTINCT FROM r.last
UNION ALL
SELECT 'balance', format('%s %s is %s, the completed transactions sum to %s', customer_code, currency, b.balance, t.total)
FROM balances b FULL JOIN (
    SELECT customer_code, currency, sum(amount) AS total FROM transactions WHERE status = 'completed' GROUP BY 1, 2
) t USING (customer_code, currency)
WHERE b.balance IS DISTINCT FROM t.total
UNION ALL
SELECT 'venue balance', format('%s %s is %s, its postings sum to %s', account, currency, b.balance, p.total)
FROM venue_balances b FULL JOIN (
    SELECT account, currency, sum(amount) AS total FROM venue_postings GROUP BY 1, 2
) p USING (account, currency)
WHERE b.balance IS DISTINCT FROM p.total
UNION ALL
SELECT 'record', format('the postings of sequence %s sum to %s %s', sequence, sum(amount), currency)
FROM (
    SELECT CASE WHEN reference_id IS NULL THEN sequence ELSE changed_sequence END AS sequence, currency, amount
    FROM transactions WHERE status = 'completed'
    UNION ALL
    SELECT sequence, currency, amount FROM venue_postings
) p GROUP BY sequence, currency HAVING sum(amount) <> 0
UNION ALL
SELECT 'positions', format('the sizes in %s sum to %s', symbol, sum(amount))
FROM positions GROUP BY symbol HAVING sum(amount) <> 0
UNION ALL
SELECT 'clearing', format('costs sum to %s, clearing has %s', p.cost, b.balance)
FROM (SELECT COALESCE(sum(cost), 0) AS cost FROM positions) p,
    (SELECT COALESCE(sum(balance), 0) AS balance FROM venue_balances WHERE account = 'clearing') b
WHERE p.cost + b.balance <> 0
UNION ALL
SELECT 'order', format('%s has filled %s for %s, its trades %s for %s', o.code, o.filled_amount, o.filled_quote, t.amount, t.notional)
FROM orders o FULL JOIN (
    SELECT order_code AS code, sum(amount) AS amount, sum(notional) AS notional FROM trades WHERE order_code IS NOT NULL GROUP BY 1
) t USING (code)
WHERE o.code IS NULL OR o.filled_amount <> COALESCE(t.amount, 0) OR o.filled_quote <> COALESCE(t.notional, 0)
UNION ALL
SELECT 'trade', format('%s has %s sides', code, count(*))
FROM trades GROUP BY code HAVING count(*) <> 2
UNION ALL
SELECT 'transaction', format('%s %s %s is there %s times', code, type, customer_code, count(*))
FROM transactions GROUP BY code, type, customer_code HAVING count(*) <> 1
LIMIT 100
