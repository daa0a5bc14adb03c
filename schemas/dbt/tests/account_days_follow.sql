-- A day changes the balance by its profit or loss and its transfers.
SELECT customer_code, currency, day
FROM (
    SELECT *, lag(balance) OVER (PARTITION BY customer_code, currency ORDER BY day) AS before
    FROM {{ ref('account_pnl_daily') }}
) days
WHERE before + net_pnl + net_transfers <> balance
