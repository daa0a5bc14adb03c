UPDATE orders o SET
    status = n.status, live = n.live, amount = n.amount::numeric, filled_amount = n.filled_amount::numeric,
    filled_quote = n.filled_quote::numeric, limit_price = n.limit_price::numeric,
    trigger_price = n.trigger_price::numeric, stop_loss_price = n.stop_loss_price::numeric,
    take_profit_price = n.take_profit_price::numeric, average_fill_price = n.average_fill_price::numeric,
    expire_time = n.expire_time, reason = n.reason, updated = n.updated, sequence = n.sequence
FROM unnest(
    $1::uuid[], $2::text[], $3::boolean[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::timestamptz[], $13::text[], $14::timestamptz[], $15::bigint[]
) AS n (code, status, live, amount, filled_amount, filled_quote, limit_price, trigger_price, stop_loss_price,
    take_profit_price, average_fill_price, expire_time, reason, updated, sequence)
WHERE o.code = n.code
