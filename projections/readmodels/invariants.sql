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
SELECT 'liabilities', format('the statement of sequence %s does not add up', sequence)
FROM liabilities
WHERE total - deficits + insurance + fees + funding + clearing + rounding <> net_paid_in OR position >= sequence
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
UNION ALL
SELECT 'list', format('%s has %s rows, %s are counted', list, COALESCE(r.n, 0), COALESCE(c.n, 0))
FROM (
    SELECT list, count(*) AS n FROM (
        SELECT unnest(ARRAY['owners/' || type, concat_ws('/', 'owners', type, state), concat_ws('/', 'owners', type, state, tenant)]) AS list FROM owners
        UNION ALL
        SELECT unnest(ARRAY['triggers', 'triggers/' || status, 'triggers//' || tenant, concat_ws('/', 'triggers', status, tenant),
            'triggers///' || entitlement_id, concat_ws('/', 'triggers', status, '', entitlement_id), concat_ws('/', 'triggers//' || tenant, entitlement_id),
            concat_ws('/', 'triggers', status, tenant, entitlement_id)]) FROM triggers
        UNION ALL
        SELECT unnest(ARRAY['deliveries', 'deliveries/' || status, 'deliveries//' || webhook_id, concat_ws('/', 'deliveries', status, webhook_id)]) FROM deliveries
        UNION ALL
        SELECT 'questionnaires/' || owner_type FROM questionnaires
        UNION ALL
        SELECT concat_ws('/', 'questionnaires', COALESCE(owner_type_id::text, 'generic/' || owner_type)) FROM questionnaires WHERE is_published
    ) lists GROUP BY list
) r FULL JOIN (
    SELECT list, sum(n) FILTER (WHERE width = 2097152) AS n, sum(n) FILTER (WHERE width = 32768) AS finer, sum(n) FILTER (WHERE width = 512) AS fine
    FROM list_counts GROUP BY list
) c USING (list)
WHERE r.n IS DISTINCT FROM c.n OR r.n IS DISTINCT FROM c.finer OR r.n IS DISTINCT FROM c.fine
UNION ALL
SELECT 'places', format('the last of the %s of %s has place %s of %s', what, owner_id, max(place), count(*))
FROM (
    SELECT 'documents' AS what, owner_id, place FROM documents
    UNION ALL
    SELECT 'responses', owner_id, place FROM responses
    UNION ALL
    SELECT 'triggers', owner_id, place FROM triggers
) placed GROUP BY what, owner_id HAVING max(place) <> count(*) OR min(place) <> 1
UNION ALL
SELECT 'delivery', format('%s has %s attempts, of which %s have receipts', id, d.attempts, COALESCE(a.n, 0))
FROM deliveries d FULL JOIN (SELECT delivery_id AS id, count(*) AS n, max(number) AS last FROM delivery_attempts GROUP BY 1) a USING (id)
WHERE d.attempts IS DISTINCT FROM COALESCE(a.n, 0) OR a.n <> a.last
UNION ALL
SELECT 'notice', format('%s deliveries tell of a notice that is not there', count(*))
FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM notices n WHERE n.id = d.notice_id) HAVING count(*) > 0
UNION ALL
SELECT 'notices', format('the last about %s is number %s of %s', owner_id, max(number), count(*))
FROM notices WHERE owner_id IS NOT NULL GROUP BY owner_id HAVING max(number) <> count(*) OR min(number) <> 1
UNION ALL
SELECT 'erased', format('%s of %s is still there', what, o.id)
FROM owners o, LATERAL (
    SELECT 'a field' AS what WHERE o.fields IS NOT NULL OR o.external_id IS NOT NULL
    UNION ALL
    SELECT 'a name' FROM documents t WHERE t.owner_id = o.id AND t.name IS NOT NULL
    UNION ALL
    SELECT 'an answer' FROM responses t WHERE t.owner_id = o.id AND t.answers IS NOT NULL
    UNION ALL
    SELECT 'a reason' FROM triggers t WHERE t.owner_id = o.id AND t.reason IS NOT NULL
    UNION ALL
    SELECT 'an event' FROM trigger_events t
    WHERE t.owner_id = o.id AND (t.reason IS NOT NULL OR t.internal_reason IS NOT NULL OR t.external_reference IS NOT NULL)
    UNION ALL
    SELECT 'a notice' FROM notices t WHERE t.owner_id = o.id AND t.reason IS NOT NULL
    UNION ALL
    SELECT 'a reply' FROM deliveries d JOIN delivery_attempts a ON a.delivery_id = d.id WHERE d.owner_id = o.id AND a.response IS NOT NULL
        AND EXISTS (SELECT 1 FROM erasures e WHERE e.owner_id = o.id AND a.sequence < e.destroyed_sequence)
) left_over WHERE o.state = 'erased'
LIMIT 100
