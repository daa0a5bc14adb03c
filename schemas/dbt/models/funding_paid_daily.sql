SELECT day, symbol, currency, sum(paid) AS paid, sum(received) AS received, sum(funding) AS funding, count(*) AS customers,
    sum(payments) AS payments, max(sequence) AS sequence, bool_and(final) AS final
FROM {{ source('analytics', 'funding_daily') }}
GROUP BY day, symbol, currency
