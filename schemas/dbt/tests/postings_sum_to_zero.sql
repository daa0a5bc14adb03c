-- The postings of every record sum to zero in each currency.
SELECT sequence, currency, sum(amount) AS total
FROM (
    SELECT sequence, currency, amount FROM {{ source('analytics', 'statement_lines') }}
    UNION ALL
    SELECT sequence, currency, amount FROM {{ source('tables', 'venue_postings') }}
) postings
GROUP BY sequence, currency
HAVING sum(amount) <> 0
