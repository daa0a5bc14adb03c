-- Names what the migrations in schemas/sql and projections/jobs make. Only these objects are the venue's: ownership.sql gives
-- them to perpetua_venue, and perpetua_reader may read those of perpetua.readable. A migration that makes or drops an object
-- changes these lists. A name without a schema is in the schema of checkpoints.
SET LOCAL perpetua.readable = '
    anchors archive_heads balance_history balances bases brokers candles checkpoints cosigned_trees customers deliveries
    delivery_attempts document_history documents entitlements erasures fee_profiles funding_rates history_bounds holds instrument_statuses
    instruments leverages liabilities list_counts margin_profiles market_trades notices onboarding_proposals order_history orders owner_history owners
    position_history positions prices proposals questionnaire_versions questionnaires records responses retentions signed_trees trades
    transactions trigger_events trigger_history triggers users venue_balances venue_postings webhooks
    analytics.balances_daily analytics.book_depth_hourly analytics.book_orders analytics.bounds analytics.contents analytics.days
    analytics.fees_daily analytics.funding_daily analytics.hours analytics.liquidations analytics.onboarding_cases
    analytics.onboarding_daily analytics.onboarding_funnel analytics.onboarding_recent_responses
    analytics.onboarding_recent_triggers analytics.order_fills analytics.pnl_daily analytics.positions_daily
    analytics.recent_funding analytics.recent_funding_rates analytics.recent_liquidations analytics.recent_orders
    analytics.recent_positions analytics.recent_postings analytics.recent_trades analytics.statement_lines analytics.trades_hourly
    analytics.trading_brokers analytics.transfers_daily analytics.venue_daily
    lake.ducklake_column lake.ducklake_column_mapping lake.ducklake_column_tag lake.ducklake_data_file lake.ducklake_delete_file
    lake.ducklake_file_column_stats lake.ducklake_file_partition_value lake.ducklake_file_variant_stats
    lake.ducklake_files_scheduled_for_deletion lake.ducklake_inlined_data_tables lake.ducklake_macro lake.ducklake_macro_impl
    lake.ducklake_macro_parameters lake.ducklake_metadata lake.ducklake_name_mapping lake.ducklake_partition_column
    lake.ducklake_partition_info lake.ducklake_schema lake.ducklake_schema_versions lake.ducklake_snapshot
    lake.ducklake_snapshot_changes lake.ducklake_sort_expression lake.ducklake_sort_info lake.ducklake_table
    lake.ducklake_table_column_stats lake.ducklake_table_stats lake.ducklake_tag lake.ducklake_view lake.ranges';
SET LOCAL perpetua.withheld = '
    changed_rows schema_versions
    perpetua_jobs.river_job perpetua_jobs.river_leader perpetua_jobs.river_migration perpetua_jobs.river_notification
    perpetua_jobs.river_queue';
SET LOCAL perpetua.routines = '
    count_rows() grant_readers(text[]) history_partitions(bigint) history_written(text,bigint,bigint,boolean) list_page(text[],bigint,bigint,boolean)
    place_document() place_response() place_trigger() record_changes() track_changes(text)
    analytics.book_at(text,bigint) analytics.history_checked(bigint) analytics.position_at(text,timestamptz) analytics.recent_from(text)
    perpetua_jobs.river_job_state_in_bitmask(bit,perpetua_jobs.river_job_state)';
SET LOCAL perpetua.types = 'perpetua_jobs.river_job_state';
-- Besides the schema of checkpoints. The tools make the last two, and a killed one leaves its schema behind.
SET LOCAL perpetua.schemas = 'perpetua_jobs analytics lake audited rebuilt';
