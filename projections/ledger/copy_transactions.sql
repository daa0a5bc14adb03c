COPY transactions (
    sequence, ordinal, code, customer_code, broker, type, currency, amount, status, balance, symbol, order_code,
    reference_id, created, updated, changed_sequence)
FROM STDIN (FORMAT binary)
