-- Of every trade, as many contracts were bought as sold, one side is the maker, and the other the taker.
SELECT code
FROM {{ source('tables', 'trades') }}
GROUP BY code
HAVING sum(CASE action WHEN 'buy' THEN amount ELSE -amount END) <> 0
    OR count(*) FILTER (WHERE role = 'maker') <> 1 OR count(*) FILTER (WHERE role = 'taker') <> 1
