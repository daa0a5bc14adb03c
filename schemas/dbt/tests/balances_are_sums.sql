-- Every balance is the sum of the movements on the account.
SELECT customer_code, currency, b.balance, l.total
FROM {{ source('tables', 'balances') }} b FULL JOIN (
    SELECT customer_code, currency, sum(amount) AS total FROM {{ source('analytics', 'statement_lines') }} GROUP BY customer_code, currency
) l USING (customer_code, currency)
WHERE b.balance IS DISTINCT FROM l.total
