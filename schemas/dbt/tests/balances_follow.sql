-- Every balance of a statement is the one before plus the amount.
SELECT customer_code, currency, sequence, ordinal
FROM (
    SELECT *, lag(balance, 1, 0) OVER (PARTITION BY customer_code, currency ORDER BY sequence, ordinal) AS before
    FROM {{ source('analytics', 'statement_lines') }}
) lines
WHERE before + amount <> balance
