-- The window of a page of candles of $1 (symbol), $2 (price) and $3 (seconds). It begins at $4, or where the candles begin if that
-- is later; without $4 it ends as late as it may. It ends before $5, if that is given, and holds $6 candles at most and none that
-- has not begun. The time is that of the log, or $7 if that is later and the rows hold the record $8 or later ones.
WITH clock AS (
    SELECT CASE WHEN c.sequence >= $8::bigint THEN GREATEST(c.time, $7::timestamptz) ELSE c.time END AS now
    FROM checkpoints c WHERE c.journal = 'trading' ORDER BY c.partition LIMIT 1
), step AS (
    SELECT $3::integer * interval '1 second' AS length
), latest AS (
    SELECT date_bin(length, now, 'epoch') AS opened, LEAST($5::timestamptz, date_bin(length, now, 'epoch') + length) AS last, length
    FROM clock, step
), begun AS (
    SELECT opened, last, length, CASE WHEN $4::timestamptz IS NULL THEN last - $6::integer * length
        ELSE GREATEST($4, (SELECT n.start FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 ORDER BY n.start LIMIT 1)) END AS first
    FROM latest
), span AS (
    SELECT opened, first, LEAST(last, first + $6::integer * length) AS last FROM begun
)
SELECT n.start, n.open::text, n.high::text, n.low::text, n.close::text, n.volume::text, n.turnover::text, n.trades
	FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 AND n.start < (SELECT first FROM span) ORDER BY n.start DESC LIMIT 1;
-- The window of a page of candles of $1 (symbol), $2 (price) and $3 (seconds). It begins at $4, or where the candles begin if that
-- is later; without $4 it ends as late as it may. It ends before $5, if that is given, and holds $6 candles at most and none that
-- has not begun. The time is that of the log, or $7 if that is later and the rows hold the record $8 or later ones.
WITH clock AS (
    SELECT CASE WHEN c.sequence >= $8::bigint THEN GREATEST(c.time, $7::timestamptz) ELSE c.time END AS now
    FROM checkpoints c WHERE c.journal = 'trading' ORDER BY c.partition LIMIT 1
), step AS (
    SELECT $3::integer * interval '1 second' AS length
), latest AS (
    SELECT date_bin(length, now, 'epoch') AS opened, LEAST($5::timestamptz, date_bin(length, now, 'epoch') + length) AS last, length
    FROM clock, step
), begun AS (
    SELECT opened, last, length, CASE WHEN $4::timestamptz IS NULL THEN last - $6::integer * length
        ELSE GREATEST($4, (SELECT n.start FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 ORDER BY n.start LIMIT 1)) END AS first
    FROM latest
), span AS (
    SELECT opened, first, LEAST(last, first + $6::integer * length) AS last FROM begun
)
SELECT n.start, n.open::text, n.high::text, n.low::text, n.close::text, n.volume::text, n.turnover::text, n.trades
	FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 AND n.start >= (SELECT first FROM span) AND n.start < (SELECT last FROM span) ORDER BY n.start;
-- The window of a page of candles of $1 (symbol), $2 (price) and $3 (seconds). It begins at $4, or where the candles begin if that
-- is later; without $4 it ends as late as it may. It ends before $5, if that is given, and holds $6 candles at most and none that
-- has not begun. The time is that of the log, or $7 if that is later and the rows hold the record $8 or later ones.
WITH clock AS (
    SELECT CASE WHEN c.sequence >= $8::bigint THEN GREATEST(c.time, $7::timestamptz) ELSE c.time END AS now
    FROM checkpoints c WHERE c.journal = 'trading' ORDER BY c.partition LIMIT 1
), step AS (
    SELECT $3::integer * interval '1 second' AS length
), latest AS (
    SELECT date_bin(length, now, 'epoch') AS opened, LEAST($5::timestamptz, date_bin(length, now, 'epoch') + length) AS last, length
    FROM clock, step
), begun AS (
    SELECT opened, last, length, CASE WHEN $4::timestamptz IS NULL THEN last - $6::integer * length
        ELSE GREATEST($4, (SELECT n.start FROM candles n WHERE n.symbol = $1 AND n.price = $2 AND n.seconds = $3 ORDER BY n.start LIMIT 1)) END AS first
    FROM latest
), span AS (
    SELECT opened, first, LEAST(last, first + $6::integer * length) AS last FROM begun
)
SELECT opened, first, last FROM span;
-- What was traded from $1 on, a whole minute: in the whole hours from $2 on, and in the minutes before.
SELECT i.symbol, f.open::text, f.high::text, f.low::text, f.close::text, f.volume::text, f.turnover::text
FROM instruments i, LATERAL (
    SELECT (array_agg(p.open ORDER BY p.start))[1] AS open, max(p.high) AS high, min(p.low) AS low,
           (array_agg(p.close ORDER BY p.start DESC))[1] AS close, sum(p.volume) AS volume, trim_scale(sum(p.turnover)) AS turnover
    FROM (
        SELECT * FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 3600 AND start >= $2
        UNION ALL
        SELECT * FROM candles WHERE symbol = i.symbol AND price = 'trade' AND seconds = 60 AND start >= $1 AND start < $2
    ) p
) f
WHERE f.open IS NOT NULL;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
COMMIT;
SELECT "account", "currency", "balance"::text, "updated", "sequence" FROM venue_balances;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM orders WHERE (created_sequence, created_ordinal) > ($1, $2) AND (created_sequence, created_ordinal) < ($3, $4) AND broker = each_broker.each_code ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51) orders ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM orders WHERE broker = each_broker.each_code ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51) orders ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM orders WHERE created_sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND broker = each_broker.each_code ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51) orders ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND (created_sequence, created_ordinal) > ($2, $3) AND (created_sequence, created_ordinal) < ($4, $5) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND created_sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND (created_sequence, created_ordinal) > ($3, $4) AND (created_sequence, created_ordinal) < ($5, $6) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND code = $3 LIMIT 1;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND code = ANY (ARRAY(SELECT n.code FROM orders n WHERE n.customer_code = $3 AND n.reference_id = $4
				AND n.reference_id <> n.code::text) || $5::uuid) AND reference_id = $6 ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND created_sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $3)
		UNION ALL
		SELECT CASE WHEN r.time < $4 THEN r.sequence ELSE low END, CASE WHEN r.time < $5 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $6 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND reference_id = $3 AND reference_id <> code::text ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND symbol = $3 AND code = $4 AND created_sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $5)
		UNION ALL
		SELECT CASE WHEN r.time < $6 THEN r.sequence ELSE low END, CASE WHEN r.time < $7 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $8 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND created_sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $9)
		UNION ALL
		SELECT CASE WHEN r.time < $10 THEN r.sequence ELSE low END, CASE WHEN r.time < $11 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $12 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND status = ANY($13) AND live AND live ORDER BY created_sequence, created_ordinal;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 AND symbol = $3 AND code = $4 AND created_sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $5)
		UNION ALL
		SELECT CASE WHEN r.time < $6 THEN r.sequence ELSE low END, CASE WHEN r.time < $7 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $8 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND created_sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $9)
		UNION ALL
		SELECT CASE WHEN r.time < $10 THEN r.sequence ELSE low END, CASE WHEN r.time < $11 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $12 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND status = ANY($13) AND live ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 AND customer_code = $2 ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE broker = $1 ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE customer_code = $1 AND (created_sequence, created_ordinal) > ($2, $3) AND (created_sequence, created_ordinal) < ($4, $5) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE customer_code = $1 AND created_sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE customer_code = $1 AND live AND broker = (SELECT n.broker FROM customers n WHERE n.customer_code = $2) ORDER BY created_sequence, created_ordinal;
SELECT "code", "customer_code", "broker", "symbol", "action", "type", "status", "sweeping", "amount"::text, "filled_amount"::text, "cash_amount"::text, "filled_quote"::text, "limit_price"::text, "trigger_price"::text, "stop_loss_price"::text, "take_profit_price"::text, "trigger_price_type", "triggered", "average_fill_price"::text, "time_in_force", "expire_time", "post_only", "reduce_only", "reference_id", "reason", "created", "updated", "created_sequence", "created_ordinal", "sequence" FROM orders WHERE customer_code = $1 ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 51;
SELECT "customer_code", "broker", "name", "created", "sequence", "ordinal" FROM customers ORDER BY sequence, ordinal;
SELECT "customer_code", "broker", "name", "created", "sequence", "ordinal" FROM customers WHERE broker = $1 AND (sequence, ordinal) > ($2, $3) AND (sequence, ordinal) < ($4, $5) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "customer_code", "broker", "name", "created", "sequence", "ordinal" FROM customers WHERE broker = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "customer_code", "broker", "name", "created", "sequence", "ordinal" FROM customers WHERE broker = $1 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "customer_code", "currency", "broker", "balance"::text, "updated", "sequence" FROM balances;
SELECT "customer_code", "symbol", "broker", "amount"::text, "cost"::text, "entry_price"::text, "updated", "sequence" FROM positions;
SELECT "customer_code", "symbol", "broker", "leverage", "sequence" FROM leverages;
SELECT "customer_code", "symbol", "broker", "maker_fee"::text, "taker_fee"::text, "sequence" FROM fee_profiles;
SELECT "journal", "sequence", "log_offset", "hash", "time", "outcome", "command_id", "command_type", "sub", "broker", "customer_code", "system" FROM records WHERE journal = $1 AND command_id = $2 AND broker = $3 ORDER BY sequence LIMIT 1;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM transactions WHERE (sequence, ordinal) > ($1, $2) AND (sequence, ordinal) < ($3, $4) AND broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 51) transactions ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM transactions WHERE broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 51) transactions ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM transactions WHERE sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 51) transactions ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 AND (sequence, ordinal) > ($2, $3) AND (sequence, ordinal) < ($4, $5) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 AND customer_code = $2 AND (sequence, ordinal) > ($3, $4) AND (sequence, ordinal) < ($5, $6) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 AND customer_code = $2 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $3)
		UNION ALL
		SELECT CASE WHEN r.time < $4 THEN r.sequence ELSE low END, CASE WHEN r.time < $5 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $6 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 AND customer_code = $2 AND symbol = $3 AND order_code = $4 AND sequence >= (SELECT o.created_sequence FROM orders o WHERE o.code = $5) AND sequence <= (SELECT o.sequence FROM orders o WHERE o.code = $6) AND currency = $7 AND type = ANY($8) AND reference_id IS NOT NULL AND status = ANY($9) AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $10)
		UNION ALL
		SELECT CASE WHEN r.time < $11 THEN r.sequence ELSE low END, CASE WHEN r.time < $12 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $13 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $14)
		UNION ALL
		SELECT CASE WHEN r.time < $15 THEN r.sequence ELSE low END, CASE WHEN r.time < $16 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $17 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 AND customer_code = $2 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE broker = $1 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE customer_code = $1 AND (sequence, ordinal) > ($2, $3) AND (sequence, ordinal) < ($4, $5) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE customer_code = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "customer_code", "broker", "type", "currency", "amount"::text, "status", "balance"::text, "symbol", "order_code", "funding_rate"::text, "position_amount"::text, "mark_price"::text, "reference_id", "created", "updated", "changed_sequence" FROM transactions WHERE customer_code = $1 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM trades WHERE (sequence, ordinal) > ($1, $2) AND (sequence, ordinal) < ($3, $4) AND broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 51) trades ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM trades WHERE broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 51) trades ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM trades WHERE sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 51) trades ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 AND (sequence, ordinal) > ($2, $3) AND (sequence, ordinal) < ($4, $5) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 AND customer_code = $2 AND (sequence, ordinal) > ($3, $4) AND (sequence, ordinal) < ($5, $6) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 AND customer_code = $2 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $3)
		UNION ALL
		SELECT CASE WHEN r.time < $4 THEN r.sequence ELSE low END, CASE WHEN r.time < $5 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $6 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 AND customer_code = $2 AND symbol = $3 AND type = ANY($4) AND order_code = $5 AND sequence >= (SELECT o.created_sequence FROM orders o WHERE o.code = $6) AND sequence <= (SELECT o.sequence FROM orders o WHERE o.code = $7) AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $8)
		UNION ALL
		SELECT CASE WHEN r.time < $9 THEN r.sequence ELSE low END, CASE WHEN r.time < $10 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $11 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $12)
		UNION ALL
		SELECT CASE WHEN r.time < $13 THEN r.sequence ELSE low END, CASE WHEN r.time < $14 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $15 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 AND customer_code = $2 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE broker = $1 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE customer_code = $1 AND (sequence, ordinal) > ($2, $3) AND (sequence, ordinal) < ($4, $5) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE customer_code = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE customer_code = $1 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE role = 'taker' AND symbol = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $6)
		UNION ALL
		SELECT CASE WHEN r.time < $7 THEN r.sequence ELSE low END, CASE WHEN r.time < $8 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $9 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND (sequence, ordinal) > ($10, $11) AND (sequence, ordinal) < ($12, $13) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE role = 'taker' AND symbol = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $6)
		UNION ALL
		SELECT CASE WHEN r.time < $7 THEN r.sequence ELSE low END, CASE WHEN r.time < $8 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $9 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $10)
		UNION ALL
		SELECT CASE WHEN r.time < $11 THEN r.sequence ELSE low END, CASE WHEN r.time < $12 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $13 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE role = 'taker' AND symbol = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $6)
		UNION ALL
		SELECT CASE WHEN r.time < $7 THEN r.sequence ELSE low END, CASE WHEN r.time < $8 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $9 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "code", "order_code", "customer_code", "broker", "symbol", "action", "price"::text, "amount"::text, "notional"::text, "fee"::text, "fee_currency", "role", "type", "reference_id", "time" FROM trades WHERE role = 'taker' AND symbol = $1 ORDER BY sequence DESC, ordinal DESC LIMIT 20;
SELECT "sequence", "ordinal", "symbol", "funding_rate"::text, "index_price"::text, "mark_price"::text, "interval_seconds", "time", "missed" FROM funding_rates WHERE symbol = $1 AND time >= $2 AND time < $3 AND (sequence, ordinal) > ($4, $5) AND (sequence, ordinal) < ($6, $7) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "symbol", "funding_rate"::text, "index_price"::text, "mark_price"::text, "interval_seconds", "time", "missed" FROM funding_rates WHERE symbol = $1 AND time >= $2 AND time < $3 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $4)
		UNION ALL
		SELECT CASE WHEN r.time < $5 THEN r.sequence ELSE low END, CASE WHEN r.time < $6 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $7 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "ordinal", "symbol", "funding_rate"::text, "index_price"::text, "mark_price"::text, "interval_seconds", "time", "missed" FROM funding_rates WHERE symbol = $1 AND time >= $2 AND time < $3 ORDER BY sequence ASC, ordinal ASC LIMIT 51;
SELECT "sequence", "time", "position", "hash", "asset", "scale", "leaves", "total"::text, "deficits"::text, "insurance"::text, "fees"::text, "funding"::text, "clearing"::text, "rounding"::text, "net_paid_in"::text, "root" FROM liabilities ORDER BY sequence ASC LIMIT 51;
SELECT "sequence", "time", "position", "hash", "asset", "scale", "leaves", "total"::text, "deficits"::text, "insurance"::text, "fees"::text, "funding"::text, "clearing"::text, "rounding"::text, "net_paid_in"::text, "root" FROM liabilities ORDER BY sequence DESC LIMIT 2;
SELECT "sequence", "time", "position", "hash", "asset", "scale", "leaves", "total"::text, "deficits"::text, "insurance"::text, "fees"::text, "funding"::text, "clearing"::text, "rounding"::text, "net_paid_in"::text, "root" FROM liabilities WHERE position = $1 ORDER BY sequence DESC LIMIT 2;
SELECT "sequence", "time", "position", "hash", "asset", "scale", "leaves", "total"::text, "deficits"::text, "insurance"::text, "fees"::text, "funding"::text, "clearing"::text, "rounding"::text, "net_paid_in"::text, "root" FROM liabilities WHERE sequence > $1 AND sequence < $2 ORDER BY sequence ASC LIMIT 51;
SELECT "sequence", "time", "position", "hash", "asset", "scale", "leaves", "total"::text, "deficits"::text, "insurance"::text, "fees"::text, "funding"::text, "clearing"::text, "rounding"::text, "net_paid_in"::text, "root" FROM liabilities WHERE sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence ASC LIMIT 51;
SELECT "symbol", "index_price"::text, "mark_price"::text, "index_time", "index_stale", "last_price"::text, "last_time" FROM prices;
SELECT "symbol", "underlying", "quote_currency", "settlement_currency", "status", "price_tick"::text, "amount_step"::text, "min_amount"::text, "max_amount"::text, "contract_size"::text, "init_margin_req"::text, "maint_margin_req"::text, "max_leverage", "funding_interval_seconds", "price_band"::text, "limit_band"::text, "maker_fee"::text, "taker_fee"::text, "index_stale_seconds", "tiers"::text, "created", "listed_sequence", "sequence" FROM instruments;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM orders WHERE (created_sequence, created_ordinal) <= ($1, $2) AND broker = each_broker.each_code ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) orders ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM orders WHERE (created_sequence, created_ordinal) >= ($1, $2) AND broker = each_broker.each_code ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 1) orders ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM orders WHERE created_sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND broker = each_broker.each_code ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) orders ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM trades WHERE (sequence, ordinal) <= ($1, $2) AND broker = each_broker.each_code ORDER BY sequence DESC, ordinal DESC LIMIT 1) trades ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM trades WHERE (sequence, ordinal) >= ($1, $2) AND broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 1) trades ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM trades WHERE sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND broker = each_broker.each_code ORDER BY sequence DESC, ordinal DESC LIMIT 1) trades ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM transactions WHERE (sequence, ordinal) <= ($1, $2) AND broker = each_broker.each_code ORDER BY sequence DESC, ordinal DESC LIMIT 1) transactions ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM transactions WHERE (sequence, ordinal) >= ($1, $2) AND broker = each_broker.each_code ORDER BY sequence ASC, ordinal ASC LIMIT 1) transactions ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM (WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker, LATERAL (SELECT * FROM transactions WHERE sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND broker = each_broker.each_code ORDER BY sequence DESC, ordinal DESC LIMIT 1) transactions ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM customers WHERE broker = $1 AND (sequence, ordinal) <= ($2, $3) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM customers WHERE broker = $1 AND (sequence, ordinal) >= ($2, $3) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM customers WHERE broker = $1 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM funding_rates WHERE symbol = $1 AND time >= $2 AND time < $3 AND (sequence, ordinal) <= ($4, $5) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM funding_rates WHERE symbol = $1 AND time >= $2 AND time < $3 AND (sequence, ordinal) >= ($4, $5) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM funding_rates WHERE symbol = $1 AND time >= $2 AND time < $3 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $4)
		UNION ALL
		SELECT CASE WHEN r.time < $5 THEN r.sequence ELSE low END, CASE WHEN r.time < $6 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $7 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM liabilities WHERE sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $1)
		UNION ALL
		SELECT CASE WHEN r.time < $2 THEN r.sequence ELSE low END, CASE WHEN r.time < $3 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $4 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM liabilities WHERE sequence <= $1 ORDER BY sequence DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM liabilities WHERE sequence >= $1 ORDER BY sequence ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE broker = $1 AND (created_sequence, created_ordinal) <= ($2, $3) ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE broker = $1 AND (created_sequence, created_ordinal) >= ($2, $3) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE broker = $1 AND created_sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE broker = $1 AND customer_code = $2 AND (created_sequence, created_ordinal) <= ($3, $4) ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE broker = $1 AND customer_code = $2 AND (created_sequence, created_ordinal) >= ($3, $4) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE broker = $1 AND customer_code = $2 AND created_sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $3)
		UNION ALL
		SELECT CASE WHEN r.time < $4 THEN r.sequence ELSE low END, CASE WHEN r.time < $5 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $6 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE customer_code = $1 AND (created_sequence, created_ordinal) <= ($2, $3) ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE customer_code = $1 AND (created_sequence, created_ordinal) >= ($2, $3) ORDER BY created_sequence ASC, created_ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM orders WHERE customer_code = $1 AND created_sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY created_sequence DESC, created_ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE broker = $1 AND (sequence, ordinal) <= ($2, $3) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE broker = $1 AND (sequence, ordinal) >= ($2, $3) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE broker = $1 AND customer_code = $2 AND (sequence, ordinal) <= ($3, $4) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE broker = $1 AND customer_code = $2 AND (sequence, ordinal) >= ($3, $4) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE broker = $1 AND customer_code = $2 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $3)
		UNION ALL
		SELECT CASE WHEN r.time < $4 THEN r.sequence ELSE low END, CASE WHEN r.time < $5 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $6 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE broker = $1 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE customer_code = $1 AND (sequence, ordinal) <= ($2, $3) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE customer_code = $1 AND (sequence, ordinal) >= ($2, $3) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE customer_code = $1 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE role = 'taker' AND symbol = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $6)
		UNION ALL
		SELECT CASE WHEN r.time < $7 THEN r.sequence ELSE low END, CASE WHEN r.time < $8 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $9 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND (sequence, ordinal) <= ($10, $11) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE role = 'taker' AND symbol = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $6)
		UNION ALL
		SELECT CASE WHEN r.time < $7 THEN r.sequence ELSE low END, CASE WHEN r.time < $8 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $9 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND (sequence, ordinal) >= ($10, $11) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM trades WHERE role = 'taker' AND symbol = $1 AND sequence >= (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $6)
		UNION ALL
		SELECT CASE WHEN r.time < $7 THEN r.sequence ELSE low END, CASE WHEN r.time < $8 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $9 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $10)
		UNION ALL
		SELECT CASE WHEN r.time < $11 THEN r.sequence ELSE low END, CASE WHEN r.time < $12 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $13 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE broker = $1 AND (sequence, ordinal) <= ($2, $3) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE broker = $1 AND (sequence, ordinal) >= ($2, $3) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE broker = $1 AND customer_code = $2 AND (sequence, ordinal) <= ($3, $4) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE broker = $1 AND customer_code = $2 AND (sequence, ordinal) >= ($3, $4) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE broker = $1 AND customer_code = $2 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $3)
		UNION ALL
		SELECT CASE WHEN r.time < $4 THEN r.sequence ELSE low END, CASE WHEN r.time < $5 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $6 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE broker = $1 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE customer_code = $1 AND (sequence, ordinal) <= ($2, $3) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE customer_code = $1 AND (sequence, ordinal) >= ($2, $3) ORDER BY sequence ASC, ordinal ASC LIMIT 1) nearest;
SELECT count(*) > 0 FROM (SELECT FROM transactions WHERE customer_code = $1 AND sequence < (WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = $2)
		UNION ALL
		SELECT CASE WHEN r.time < $3 THEN r.sequence ELSE low END, CASE WHEN r.time < $4 THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = $5 AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half) ORDER BY sequence DESC, ordinal DESC LIMIT 1) nearest;
SELECT sequence FROM checkpoints WHERE journal = $1 ORDER BY partition LIMIT 1;
