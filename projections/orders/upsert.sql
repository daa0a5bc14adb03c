INSERT INTO orders (
    code, customer_code, broker, symbol, action, type, status, live, amount, filled_amount, cash_amount, filled_quote,
    limit_price, trigger_price, stop_loss_price, take_profit_price, trigger_price_type, average_fill_price,
    time_in_force, expire_time, post_only, reduce_only, reference_id, reason, created, updated,
    created_sequence, created_ordinal, sequence)
SELECT
    code, customer_code, broker, symbol, action, type, status, live, amount::numeric, filled_amount::numeric,
    cash_amount::numeric, filled_quote::numeric, limit_price::numeric, trigger_price::numeric, stop_loss_price::numeric,
    take_profit_price::numeric, trigger_price_type, average_fill_price::numeric, time_in_force, expire_time, post_only,
    reduce_only, reference_id, reason, created, updated, created_sequence, created_ordinal, sequence
FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[],
    $19::text[], $20::timestamptz[], $21::boolean[], $22::boolean[], $23::text[], $24::text[], $25::timestamptz[],
    $26::timestamptz[], $27::bigint[], $28::integer[], $29::bigint[]
) AS n (code, customer_code, broker, symbol, action, type, status, live, amount, filled_amount, cash_amount,
    filled_quote, limit_price, trigger_price, stop_loss_price, take_profit_price, trigger_price_type,
    average_fill_price, time_in_force, expire_time, post_only, reduce_only, reference_id, reason, created, updated,
    created_sequence, created_ordinal, sequence)
ON CONFLICT (code) DO UPDATE SET
    status = excluded.status, live = excluded.live, amount = excluded.amount, filled_amount = excluded.filled_amount,
    filled_quote = excluded.filled_quote, limit_price = excluded.limit_price, trigger_price = excluded.trigger_price,
    stop_loss_price = excluded.stop_loss_price, take_profit_price = excluded.take_profit_price,
    average_fill_price = excluded.average_fill_price, expire_time = excluded.expire_time, reason = excluded.reason,
    updated = excluded.updated, sequence = excluded.sequence
