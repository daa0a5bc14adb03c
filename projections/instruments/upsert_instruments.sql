INSERT INTO instruments (
    symbol, underlying, quote_currency, settlement_currency, status, price_tick, amount_step, min_amount, max_amount,
    contract_size, init_margin_req, maint_margin_req, max_leverage, funding_interval_seconds, price_band, limit_band,
    maker_fee, taker_fee, index_stale_seconds, tiers, listed_sequence, sequence)
SELECT
    symbol, underlying, quote_currency, settlement_currency, status, price_tick::numeric, amount_step::numeric,
    min_amount::numeric, max_amount::numeric, contract_size::numeric, init_margin_req::numeric,
    maint_margin_req::numeric, max_leverage, funding_interval_seconds, price_band::numeric, limit_band::numeric,
    maker_fee::numeric, taker_fee::numeric, index_stale_seconds, tiers::json, listed_sequence, sequence
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::integer[], $14::integer[], $15::text[], $16::text[], $17::text[],
    $18::text[], $19::integer[], $20::text[], $21::bigint[], $22::bigint[]
) AS n (symbol, underlying, quote_currency, settlement_currency, status, price_tick, amount_step, min_amount,
    max_amount, contract_size, init_margin_req, maint_margin_req, max_leverage, funding_interval_seconds, price_band,
    limit_band, maker_fee, taker_fee, index_stale_seconds, tiers, listed_sequence, sequence)
ON CONFLICT (symbol) DO UPDATE SET
    underlying = excluded.underlying, quote_currency = excluded.quote_currency,
    settlement_currency = excluded.settlement_currency, status = excluded.status, price_tick = excluded.price_tick,
    amount_step = excluded.amount_step, min_amount = excluded.min_amount, max_amount = excluded.max_amount,
    contract_size = excluded.contract_size, init_margin_req = excluded.init_margin_req,
    maint_margin_req = excluded.maint_margin_req, max_leverage = excluded.max_leverage,
    funding_interval_seconds = excluded.funding_interval_seconds, price_band = excluded.price_band,
    limit_band = excluded.limit_band, maker_fee = excluded.maker_fee, taker_fee = excluded.taker_fee,
    index_stale_seconds = excluded.index_stale_seconds, tiers = excluded.tiers, sequence = excluded.sequence
