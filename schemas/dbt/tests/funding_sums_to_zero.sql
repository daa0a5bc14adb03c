-- Funding that customers pay goes to other customers and to the accounts of the venue, which have the remainders of rounding.
SELECT day, currency, sum(amount) AS total
FROM (
    SELECT day, currency, funding AS amount FROM {{ source('analytics', 'funding_daily') }}
    UNION ALL
    SELECT day, currency, amount FROM {{ source('analytics', 'venue_daily') }} WHERE type = 'funding'
) moved
GROUP BY day, currency
HAVING sum(amount) <> 0
