COPY venue_postings (sequence, ordinal, account, type, currency, amount, balance, symbol, order_code, time)
FROM STDIN (FORMAT binary)
