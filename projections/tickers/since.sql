-- Times never go back along the sequence, so the span of time is one of sequences, which the primary key is made of.
SELECT m.symbol,
       (array_agg(m.price ORDER BY m.sequence, m.ordinal))[1]::text,
       max(m.price)::text,
       min(m.price)::text,
       (array_agg(m.price ORDER BY m.sequence DESC, m.ordinal DESC))[1]::text,
       sum(m.amount)::text,
       trim_scale(sum(m.price * m.amount * i.contract_size))::text
FROM market_trades m
JOIN instruments i ON i.symbol = m.symbol
WHERE m.type <> 'auto_deleveraging'
  AND m.sequence >= (SELECT r.sequence FROM records r WHERE r.journal = 'trading' AND r.time >= $1
                     ORDER BY r.time, r.sequence LIMIT 1)
GROUP BY m.symbol
