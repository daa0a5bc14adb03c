COPY trades (
    sequence, ordinal, code, order_code, customer_code, broker, symbol, action, price, amount, notional, fee,
    fee_currency, role, type, reference_id, time)
FROM STDIN (FORMAT binary)
