COPY orders (
    code, customer_code, broker, symbol, action, type, status, live, amount, filled_amount, cash_amount, filled_quote,
    limit_price, trigger_price, stop_loss_price, take_profit_price, trigger_price_type, average_fill_price,
    time_in_force, expire_time, post_only, reduce_only, reference_id, reason, created, updated,
    created_sequence, created_ordinal, sequence)
FROM STDIN (FORMAT binary)
