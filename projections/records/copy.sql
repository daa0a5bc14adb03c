COPY records (
    journal, sequence, "offset", hash, time, outcome, command_id, command_type, sub, broker, customer_code, system)
FROM STDIN (FORMAT binary)
