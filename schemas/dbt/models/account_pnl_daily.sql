-- The days with a profit, a loss, or a transfer. The balance is NULL for days before the history.
WITH moved AS (
    SELECT day, customer_code, broker, currency, realized_pnl, fees, funding, insurance, net_pnl, 0 AS net_transfers, sequence, final
    FROM {{ source('analytics', 'pnl_daily') }}
    UNION ALL
    SELECT t.day, t.customer_code, t.broker, t.currency, 0, 0, 0, 0, 0, t.net_transfers, t.sequence, d.final
    FROM {{ source('analytics', 'transfers_daily') }} t JOIN {{ source('analytics', 'days') }} d ON d.day = t.day
), daily AS (
    SELECT day, customer_code, broker, currency, sum(realized_pnl) AS realized_pnl, sum(fees) AS fees, sum(funding) AS funding,
        sum(insurance) AS insurance, sum(net_pnl) AS net_pnl, sum(net_transfers) AS net_transfers, max(sequence) AS sequence, bool_and(final) AS final
    FROM moved
    GROUP BY day, customer_code, broker, currency
)
SELECT d.*, sum(d.net_pnl) OVER (PARTITION BY d.customer_code, d.currency ORDER BY d.day) AS net_pnl_to_date, b.balance
FROM daily d LEFT JOIN {{ source('analytics', 'balances_daily') }} b USING (day, customer_code, currency)
