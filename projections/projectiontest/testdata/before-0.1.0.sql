-- The tables of builds before version 0.1.0, as pg_dump prints them after the last of their migrations, 00024. Owners and
-- privileges are those of the user who loads it.
CREATE FUNCTION public.count_rows() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
    changed text := 'SELECT *, 1 AS n FROM new_rows';
    lists   text[]; -- with widths and buckets: the counts that are 0 now
    widths  integer[];
    buckets bigint[];
BEGIN
    IF TG_OP = 'UPDATE' THEN
        changed := changed || ' UNION ALL SELECT *, -1 FROM old_rows';
    END IF;
    IF TG_NARGS = 1 THEN
        changed := format('SELECT *, created_sequence / 512 AS block FROM (%s) r', changed);
    ELSE
        changed := format('SELECT %s, created_sequence / 512 AS block, sum(n) AS n FROM (%s) r GROUP BY %1$s, block HAVING sum(n) <> 0',
            TG_ARGV[1], changed);
    END IF;
    EXECUTE format('WITH counted AS (
            INSERT INTO list_counts AS c (list, width, bucket, n)
            SELECT list, width, block / (width / 512), sum(n)
            FROM (SELECT unnest(%s) AS list, block, n FROM (%s) changed) moved, (VALUES (2097152), (32768), (512)) widths (width)
            WHERE list IS NOT NULL
            GROUP BY 1, 2, 3 HAVING sum(n) <> 0
            ORDER BY 1, 2, 3
            ON CONFLICT (list, width, bucket) DO UPDATE SET n = c.n + excluded.n
            RETURNING c.*)
        SELECT array_agg(list), array_agg(width), array_agg(bucket) FROM counted WHERE n = 0', TG_ARGV[0], changed)
        INTO lists, widths, buckets;
    -- A row that is not there and one that says 0 would say the same, and which it is would depend on how the log was cut.
    IF lists IS NOT NULL THEN
        DELETE FROM list_counts c USING unnest(lists, widths, buckets) e (list, width, bucket)
        WHERE c.list = e.list AND c.width = e.width AND c.bucket = e.bucket;
    END IF;
    RETURN NULL;
END $_$;
CREATE FUNCTION public.grant_readers(readable text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    r record;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO perpetua_reader', current_schema());
    FOR r IN
        SELECT c.relname, bool_or(a.sealed) AS sealed,
            string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE NOT a.sealed) AS columns,
            bool_and(CASE WHEN a.sealed THEN NOT has_column_privilege('perpetua_reader', c.oid, a.attnum, 'SELECT')
                ELSE has_column_privilege('perpetua_reader', c.oid, a.attnum, 'SELECT') END) AS granted
        FROM pg_class c
            JOIN LATERAL (SELECT attname, attnum, atttypid = 'bytea'::regtype
                AND attname NOT IN ('hash', 'sha256', 'public_key', 'next_public_key') AS sealed
                FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a ON true
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'v') AND c.relname = ANY (readable)
        GROUP BY c.oid, c.relname
    LOOP
        CONTINUE WHEN r.granted;
        EXECUTE format('REVOKE ALL ON %I.%I FROM perpetua_reader', current_schema(), r.relname);
        IF r.sealed THEN
            EXECUTE format('GRANT SELECT (%s) ON %I.%I TO perpetua_reader', r.columns, current_schema(), r.relname);
        ELSE
            EXECUTE format('GRANT SELECT ON %I.%I TO perpetua_reader', current_schema(), r.relname);
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION public.list_page(lists text[], size bigint, after bigint, oldest_first boolean, OUT since bigint, OUT until bigint, OUT skip bigint, OUT n bigint) RETURNS record
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    total    bigint := (SELECT sum(c.n) FROM list_counts c WHERE c.list = ANY (lists) AND c.width = 2097152);
    first    bigint := CASE WHEN oldest_first THEN total - after - size ELSE after END;
    last     bigint := LEAST(first + size, total) - 1;
    wanted   bigint; -- the row that is looked for, 0 for the newest
    passed   bigint; -- rows that are newer than those of the bucket
    lowest   bigint;
    highest  bigint;
    level    integer;
    here     bigint; -- the bucket
    held     bigint; -- rows in it
BEGIN
    first := GREATEST(first, 0);
    IF total IS NULL OR last < first THEN
        RETURN;
    END IF;
    n := last - first + 1;
    FOREACH wanted IN ARRAY ARRAY[first, last] LOOP
        IF until IS NULL OR wanted >= passed + held THEN -- else the page ends in the block that it begins in
            passed := 0;
            lowest := 0;
            highest := 9223372036854775807;
            FOREACH level IN ARRAY ARRAY[2097152, 32768, 512] LOOP
                FOR here, held IN SELECT c.bucket, sum(c.n)::bigint FROM list_counts c
                    WHERE c.list = ANY (lists) AND c.width = level AND c.bucket BETWEEN lowest AND highest
                    GROUP BY c.bucket ORDER BY c.bucket DESC
                LOOP
                    EXIT WHEN wanted < passed + held;
                    passed := passed + held;
                END LOOP;
                lowest := here * 64;
                highest := lowest + 63;
            END LOOP;
        END IF;
        IF until IS NULL THEN
            until := (here + 1) * 512;
            skip := first - passed;
        END IF;
        since := here * 512;
    END LOOP;
END $$;
CREATE FUNCTION public.place_document() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM documents WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
CREATE FUNCTION public.place_response() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM responses WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
CREATE FUNCTION public.place_trigger() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM triggers WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
CREATE FUNCTION public.record_changes() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    AS $$
DECLARE
    keys text := (SELECT format('SELECT ARRAY[%s] FROM ', string_agg(quote_ident(a.attname) || '::text', ', '
            ORDER BY array_position(i.indkey::smallint[], a.attnum)))
        FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = TG_RELID AND i.indisprimary);
BEGIN
    EXECUTE format('INSERT INTO %I.changed_rows (table_name, key) SELECT %L, changed.key FROM (%s) changed (key)',
        TG_TABLE_SCHEMA, TG_TABLE_NAME,
        CASE TG_OP WHEN 'INSERT' THEN keys || 'new_rows' WHEN 'DELETE' THEN keys || 'old_rows'
            ELSE keys || 'old_rows UNION ' || keys || 'new_rows' END);
    RETURN NULL;
END $$;
CREATE FUNCTION public.track_changes(tracked text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    t record;
BEGIN
    FOR t IN VALUES ('inserted', 'INSERT', 'NEW TABLE AS new_rows'), ('deleted', 'DELETE', 'OLD TABLE AS old_rows'),
        ('updated', 'UPDATE', 'OLD TABLE AS old_rows NEW TABLE AS new_rows')
    LOOP
        EXECUTE format('CREATE TRIGGER changes_%s AFTER %s ON %I REFERENCING %s FOR EACH STATEMENT
            WHEN (NOT pg_try_advisory_xact_lock_shared(hashtextextended(''perpetua merge'', 0))
                OR current_setting(''perpetua.recorded'', true) = %L)
            EXECUTE FUNCTION record_changes()', t.column1, t.column2, tracked, t.column3, tracked);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER changes_%s', tracked, t.column1);
    END LOOP;
END $$;
CREATE TABLE public.anchors (
    journal text NOT NULL,
    partition integer NOT NULL,
    sequence bigint NOT NULL,
    log_offset bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT anchors_hash_check CHECK ((length(hash) = 32))
);
COMMENT ON TABLE public.anchors IS 'A position every 4,096 records, from which a reader can start in the middle of a journal.';
COMMENT ON COLUMN public.anchors.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN public.anchors.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN public.anchors.sequence IS 'Sequence of the record.';
COMMENT ON COLUMN public.anchors.log_offset IS 'Kafka offset at which the record was found. A copy of the log may have others.';
COMMENT ON COLUMN public.anchors.hash IS 'SHA-256 of the record''s value, which the next record repeats.';
CREATE TABLE public.balances (
    customer_code text NOT NULL,
    currency text NOT NULL,
    broker text NOT NULL,
    balance numeric NOT NULL,
    updated timestamp with time zone NOT NULL,
    sequence bigint NOT NULL
)
WITH (fillfactor='75');
COMMENT ON TABLE public.balances IS 'Balance of each customer by currency.';
COMMENT ON COLUMN public.balances.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.balances.currency IS 'Currency of the balance.';
COMMENT ON COLUMN public.balances.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.balances.balance IS 'Sum of the customer''s completed transactions.';
COMMENT ON COLUMN public.balances.updated IS 'When the balance last changed, UTC.';
COMMENT ON COLUMN public.balances.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.brokers (
    broker text NOT NULL,
    name text NOT NULL,
    created timestamp with time zone NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.brokers IS 'Brokers, which are also the tenants of onboarding.';
COMMENT ON COLUMN public.brokers.broker IS 'Name by which everything else refers to the broker.';
COMMENT ON COLUMN public.brokers.name IS 'Display name of the broker.';
COMMENT ON COLUMN public.brokers.created IS 'When the broker was registered, UTC.';
COMMENT ON COLUMN public.brokers.sequence IS 'Sequence of the record that registered the broker.';
CREATE TABLE public.candles (
    symbol text NOT NULL,
    price text NOT NULL,
    seconds integer NOT NULL,
    start timestamp with time zone NOT NULL,
    open numeric NOT NULL,
    high numeric NOT NULL,
    low numeric NOT NULL,
    close numeric NOT NULL,
    volume numeric NOT NULL,
    turnover numeric NOT NULL,
    trades bigint NOT NULL
)
WITH (fillfactor='75');
COMMENT ON TABLE public.candles IS 'Open, high, low and close of each instrument by interval.';
COMMENT ON COLUMN public.candles.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.candles.price IS 'Price that the candle is made of: trade, mark or index.';
COMMENT ON COLUMN public.candles.seconds IS 'Length of the interval in seconds: 60, 300, 900, 3600, 14400 or 86400.';
COMMENT ON COLUMN public.candles.start IS 'Beginning of the interval, UTC.';
COMMENT ON COLUMN public.candles.open IS 'First price in the interval.';
COMMENT ON COLUMN public.candles.high IS 'Highest price in the interval.';
COMMENT ON COLUMN public.candles.low IS 'Lowest price in the interval.';
COMMENT ON COLUMN public.candles.close IS 'Last price in the interval.';
COMMENT ON COLUMN public.candles.volume IS 'Traded contracts. 0 for mark and index prices.';
COMMENT ON COLUMN public.candles.turnover IS 'Traded value in the quote currency. 0 for mark and index prices.';
COMMENT ON COLUMN public.candles.trades IS 'Number of trades in the interval. 0 for mark and index prices.';
CREATE UNLOGGED TABLE public.changed_rows (
    table_name text NOT NULL,
    key text[] NOT NULL
);
COMMENT ON TABLE public.changed_rows IS 'Keys of the rows that are written during a run of perpetua rebuild, which deletes them.';
COMMENT ON COLUMN public.changed_rows.table_name IS 'Table of the row.';
COMMENT ON COLUMN public.changed_rows.key IS 'Primary key of the row: each of its columns as text, in the order of the key.';
CREATE TABLE public.checkpoints (
    journal text NOT NULL,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    sequence bigint NOT NULL,
    hash bytea NOT NULL,
    "time" timestamp with time zone NOT NULL,
    CONSTRAINT checkpoints_hash_check CHECK ((length(hash) = 32))
)
WITH (fillfactor='50');
COMMENT ON TABLE public.checkpoints IS 'How far the rows of this database are in each journal: the position of the last record applied.';
COMMENT ON COLUMN public.checkpoints.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN public.checkpoints.partition IS 'Partition of the journal''s topic.';
COMMENT ON COLUMN public.checkpoints.log_offset IS 'Kafka offset at which the record was found. A copy of the log may have others.';
COMMENT ON COLUMN public.checkpoints.sequence IS 'Sequence of the last record applied.';
COMMENT ON COLUMN public.checkpoints.hash IS 'SHA-256 of the value of the last record applied.';
COMMENT ON COLUMN public.checkpoints."time" IS 'Time of the last record applied, UTC.';
CREATE TABLE public.customers (
    customer_code text NOT NULL,
    broker text NOT NULL,
    name text NOT NULL,
    created timestamp with time zone NOT NULL,
    sequence bigint NOT NULL,
    ordinal integer NOT NULL
);
COMMENT ON TABLE public.customers IS 'Customers of brokers. Each has one trading account.';
COMMENT ON COLUMN public.customers.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.customers.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.customers.name IS 'Display name that the broker gave.';
COMMENT ON COLUMN public.customers.created IS 'When the customer was registered, UTC.';
COMMENT ON COLUMN public.customers.sequence IS 'Sequence of the record that registered the customer.';
COMMENT ON COLUMN public.customers.ordinal IS 'Position of the row among those that its record made, from 0.';
CREATE TABLE public.deliveries (
    id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    tenant text NOT NULL,
    notice_id uuid NOT NULL,
    type text NOT NULL,
    owner_id uuid,
    owner_type text,
    final boolean NOT NULL,
    status text NOT NULL,
    attempts integer NOT NULL,
    next_attempt_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL
)
WITH (fillfactor='75');
COMMENT ON TABLE public.deliveries IS 'Deliveries of notices to webhooks.';
COMMENT ON COLUMN public.deliveries.id IS 'Id of the delivery.';
COMMENT ON COLUMN public.deliveries.webhook_id IS 'Registration that it goes to.';
COMMENT ON COLUMN public.deliveries.tenant IS 'Tenant whose receiver it goes to.';
COMMENT ON COLUMN public.deliveries.notice_id IS 'Notice that it delivers; notices.id.';
COMMENT ON COLUMN public.deliveries.type IS 'Type of the notice.';
COMMENT ON COLUMN public.deliveries.owner_id IS 'Person or corporate that the notice is about. NULL for a test.';
COMMENT ON COLUMN public.deliveries.owner_type IS 'person or corporate. NULL for a test.';
COMMENT ON COLUMN public.deliveries.final IS 'Whether it tells of the end that the owner''s erasure caused.';
COMMENT ON COLUMN public.deliveries.status IS 'pending, retrying, delivered, dead or canceled.';
COMMENT ON COLUMN public.deliveries.attempts IS 'Number of attempts made.';
COMMENT ON COLUMN public.deliveries.next_attempt_at IS 'When the next attempt is due, UTC. NULL unless retrying.';
COMMENT ON COLUMN public.deliveries.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.deliveries.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.deliveries.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.deliveries.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.delivery_attempts (
    delivery_id uuid NOT NULL,
    number integer NOT NULL,
    started_at timestamp with time zone NOT NULL,
    duration_ms bigint NOT NULL,
    status_code integer,
    error text,
    response bytea,
    status text NOT NULL,
    "time" timestamp with time zone NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.delivery_attempts IS 'Attempts to deliver, with their outcomes.';
COMMENT ON COLUMN public.delivery_attempts.delivery_id IS 'Delivery that was attempted.';
COMMENT ON COLUMN public.delivery_attempts.number IS 'Number of the attempt, from 1.';
COMMENT ON COLUMN public.delivery_attempts.started_at IS 'When the attempt was started, UTC.';
COMMENT ON COLUMN public.delivery_attempts.duration_ms IS 'How long the attempt took, in milliseconds.';
COMMENT ON COLUMN public.delivery_attempts.status_code IS 'HTTP status of the answer. NULL if there was none.';
COMMENT ON COLUMN public.delivery_attempts.error IS 'Why there was no answer. NULL if there was one.';
COMMENT ON COLUMN public.delivery_attempts.response IS 'Sealed with the owner''s key: the beginning of the answer''s body. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.delivery_attempts.status IS 'Status of the delivery after the attempt.';
COMMENT ON COLUMN public.delivery_attempts."time" IS 'Time of the record, UTC.';
COMMENT ON COLUMN public.delivery_attempts.sequence IS 'Sequence of the record of the attempt.';
CREATE TABLE public.documents (
    id uuid NOT NULL,
    owner_id uuid NOT NULL,
    owner_type text NOT NULL,
    tenant text NOT NULL,
    category text NOT NULL,
    orientation text NOT NULL,
    name bytea,
    source text NOT NULL,
    sha256 bytea NOT NULL,
    size bigint NOT NULL,
    format text NOT NULL,
    valid_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL,
    place integer NOT NULL
);
COMMENT ON TABLE public.documents IS 'Documents of owners. The files are encrypted in the bucket.';
COMMENT ON COLUMN public.documents.id IS 'Id of the document.';
COMMENT ON COLUMN public.documents.owner_id IS 'Person or corporate that it belongs to; owners.id.';
COMMENT ON COLUMN public.documents.owner_type IS 'person or corporate.';
COMMENT ON COLUMN public.documents.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN public.documents.category IS 'Purpose of the document, such as id_document or poa.';
COMMENT ON COLUMN public.documents.orientation IS 'Side that the file shows, such as front or back.';
COMMENT ON COLUMN public.documents.name IS 'Sealed with the owner''s key: the name of the file. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.documents.source IS 'Where the document comes from.';
COMMENT ON COLUMN public.documents.sha256 IS 'SHA-256 of the encrypted file.';
COMMENT ON COLUMN public.documents.size IS 'Size of the file before encryption, in bytes.';
COMMENT ON COLUMN public.documents.format IS 'Format of the file, such as image/png.';
COMMENT ON COLUMN public.documents.valid_until IS 'Until when the document is valid, UTC. NULL if it does not say.';
COMMENT ON COLUMN public.documents.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.documents.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN public.documents.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.documents.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.documents.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN public.documents.place IS 'Number of the document among those of its owner, from 1.';
CREATE TABLE public.entitlements (
    id uuid NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    owner_type text NOT NULL,
    questionnaires json NOT NULL,
    approval text NOT NULL,
    video_identification boolean NOT NULL,
    deadline_seconds bigint NOT NULL,
    opens_trading_account boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.entitlements IS 'What owners can become entitled to, and what is required for it.';
COMMENT ON COLUMN public.entitlements.id IS 'Id of the entitlement.';
COMMENT ON COLUMN public.entitlements.name IS 'Name of the entitlement.';
COMMENT ON COLUMN public.entitlements.description IS 'Description for those who choose it.';
COMMENT ON COLUMN public.entitlements.owner_type IS 'Type of owners who can have it: person or corporate.';
COMMENT ON COLUMN public.entitlements.questionnaires IS 'Questionnaires that are required, as the journal has them.';
COMMENT ON COLUMN public.entitlements.approval IS 'How a trigger is approved: automatic or manual.';
COMMENT ON COLUMN public.entitlements.video_identification IS 'Whether a video identification is required.';
COMMENT ON COLUMN public.entitlements.deadline_seconds IS 'Seconds after which an unfinished trigger expires. 0 for never.';
COMMENT ON COLUMN public.entitlements.opens_trading_account IS 'Whether a trading account is opened when it is granted.';
COMMENT ON COLUMN public.entitlements.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.entitlements.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN public.entitlements.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.entitlements.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.entitlements.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.erasures (
    owner_id uuid NOT NULL,
    owner_type text NOT NULL,
    tenant text NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    requested_by text NOT NULL,
    reason bytea NOT NULL,
    retain_until timestamp with time zone NOT NULL,
    erased_at timestamp with time zone,
    key_id text,
    destroyed_at timestamp with time zone,
    requested_sequence bigint NOT NULL,
    erased_sequence bigint,
    destroyed_sequence bigint
);
COMMENT ON TABLE public.erasures IS 'Erasures of owners, from the request to the certificate that the key is destroyed.';
COMMENT ON COLUMN public.erasures.owner_id IS 'Person or corporate that is erased; owners.id.';
COMMENT ON COLUMN public.erasures.owner_type IS 'person or corporate.';
COMMENT ON COLUMN public.erasures.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN public.erasures.requested_at IS 'When the erasure was requested, UTC.';
COMMENT ON COLUMN public.erasures.requested_by IS 'User who requested the erasure.';
COMMENT ON COLUMN public.erasures.reason IS 'Sealed with the venue''s key: why the owner is erased.';
COMMENT ON COLUMN public.erasures.retain_until IS 'Before when the owner may not be erased, UTC.';
COMMENT ON COLUMN public.erasures.erased_at IS 'When the owner was erased, UTC. NULL before.';
COMMENT ON COLUMN public.erasures.key_id IS 'Id of the key that was destroyed. NULL before.';
COMMENT ON COLUMN public.erasures.destroyed_at IS 'When the key was destroyed, UTC. NULL before.';
COMMENT ON COLUMN public.erasures.requested_sequence IS 'Sequence of the record of the request.';
COMMENT ON COLUMN public.erasures.erased_sequence IS 'Sequence of the record that erased the owner. NULL before.';
COMMENT ON COLUMN public.erasures.destroyed_sequence IS 'Sequence of the record that confirms the destruction of the key. NULL before.';
CREATE TABLE public.fee_profiles (
    customer_code text NOT NULL,
    symbol text NOT NULL,
    broker text NOT NULL,
    maker_fee numeric NOT NULL,
    taker_fee numeric NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.fee_profiles IS 'Fees of customers where they differ from the instrument''s.';
COMMENT ON COLUMN public.fee_profiles.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.fee_profiles.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.fee_profiles.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.fee_profiles.maker_fee IS 'Maker fee in basis points. Negative is a rebate.';
COMMENT ON COLUMN public.fee_profiles.taker_fee IS 'Taker fee in basis points.';
COMMENT ON COLUMN public.fee_profiles.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.funding_rates (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    symbol text NOT NULL,
    funding_rate numeric NOT NULL,
    index_price numeric NOT NULL,
    mark_price numeric NOT NULL,
    interval_seconds integer NOT NULL,
    "time" timestamp with time zone NOT NULL,
    missed boolean NOT NULL
);
COMMENT ON TABLE public.funding_rates IS 'Rate fixed at each funding instant of each instrument, missed instants included.';
COMMENT ON COLUMN public.funding_rates.sequence IS 'Sequence of the record that fixed the rate.';
COMMENT ON COLUMN public.funding_rates.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.funding_rates.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.funding_rates.funding_rate IS 'Fraction of the position''s value that longs pay to shorts. Negative if shorts pay.';
COMMENT ON COLUMN public.funding_rates.index_price IS 'Index price at the instant.';
COMMENT ON COLUMN public.funding_rates.mark_price IS 'Mark price at the instant.';
COMMENT ON COLUMN public.funding_rates.interval_seconds IS 'Seconds since the instant before.';
COMMENT ON COLUMN public.funding_rates."time" IS 'The funding instant, UTC.';
COMMENT ON COLUMN public.funding_rates.missed IS 'Whether the instant was missed, so that nobody paid.';
CREATE TABLE public.holds (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    owner_id uuid NOT NULL,
    owner_type text NOT NULL,
    held boolean NOT NULL,
    reason bytea NOT NULL,
    actor text NOT NULL,
    "time" timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.holds IS 'Legal holds on owners and their releases, in the order in which they were made.';
COMMENT ON COLUMN public.holds.sequence IS 'Sequence of the record of the hold or release.';
COMMENT ON COLUMN public.holds.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.holds.owner_id IS 'Person or corporate that is held; owners.id.';
COMMENT ON COLUMN public.holds.owner_type IS 'person or corporate.';
COMMENT ON COLUMN public.holds.held IS 'true for a hold, false for a release.';
COMMENT ON COLUMN public.holds.reason IS 'Sealed with the venue''s key: why the owner is held or released.';
COMMENT ON COLUMN public.holds.actor IS 'User who set or released the hold.';
COMMENT ON COLUMN public.holds."time" IS 'Time of the record, UTC.';
CREATE TABLE public.instruments (
    symbol text NOT NULL,
    underlying text NOT NULL,
    quote_currency text NOT NULL,
    settlement_currency text NOT NULL,
    status text NOT NULL,
    price_tick numeric NOT NULL,
    amount_step numeric NOT NULL,
    min_amount numeric NOT NULL,
    max_amount numeric NOT NULL,
    contract_size numeric NOT NULL,
    init_margin_req numeric NOT NULL,
    maint_margin_req numeric NOT NULL,
    max_leverage integer NOT NULL,
    funding_interval_seconds integer NOT NULL,
    price_band numeric NOT NULL,
    limit_band numeric NOT NULL,
    maker_fee numeric NOT NULL,
    taker_fee numeric NOT NULL,
    index_stale_seconds integer NOT NULL,
    tiers json NOT NULL,
    listed_sequence bigint NOT NULL,
    sequence bigint NOT NULL,
    created timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.instruments IS 'Every instrument that was ever listed.';
COMMENT ON COLUMN public.instruments.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.instruments.underlying IS 'Asset whose price the contract follows.';
COMMENT ON COLUMN public.instruments.quote_currency IS 'Currency of prices.';
COMMENT ON COLUMN public.instruments.settlement_currency IS 'Currency of margin, fees and profit.';
COMMENT ON COLUMN public.instruments.status IS 'Status that the operator set: open, post_only, cancel_only, trade_halt or withdrawn. The status in force is in instrument_statuses.';
COMMENT ON COLUMN public.instruments.price_tick IS 'Smallest price step.';
COMMENT ON COLUMN public.instruments.amount_step IS 'Smallest step of order amounts, in contracts.';
COMMENT ON COLUMN public.instruments.min_amount IS 'Smallest order amount, in contracts.';
COMMENT ON COLUMN public.instruments.max_amount IS 'Largest order amount, in contracts.';
COMMENT ON COLUMN public.instruments.contract_size IS 'Units of the underlying in one contract.';
COMMENT ON COLUMN public.instruments.init_margin_req IS 'Initial margin requirement in percent, before tiers.';
COMMENT ON COLUMN public.instruments.maint_margin_req IS 'Maintenance margin requirement in percent, before tiers.';
COMMENT ON COLUMN public.instruments.max_leverage IS 'Highest leverage allowed.';
COMMENT ON COLUMN public.instruments.funding_interval_seconds IS 'Seconds between two funding instants.';
COMMENT ON COLUMN public.instruments.price_band IS 'Distance from the mark price, in percent, within which market orders trade.';
COMMENT ON COLUMN public.instruments.limit_band IS 'Distance in percent by which a limit price may cross the mark price.';
COMMENT ON COLUMN public.instruments.maker_fee IS 'Default maker fee in basis points. Negative is a rebate.';
COMMENT ON COLUMN public.instruments.taker_fee IS 'Default taker fee in basis points.';
COMMENT ON COLUMN public.instruments.index_stale_seconds IS 'Age in seconds from which the index price is too old to use.';
COMMENT ON COLUMN public.instruments.tiers IS 'Margin tiers by position size, as the journal has them.';
COMMENT ON COLUMN public.instruments.listed_sequence IS 'Sequence of the record that listed the instrument. Listings are in this order.';
COMMENT ON COLUMN public.instruments.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN public.instruments.created IS 'When the instrument was listed, UTC.';
CREATE TABLE public.prices (
    symbol text NOT NULL,
    index_price numeric,
    mark_price numeric,
    index_time timestamp with time zone,
    last_price numeric,
    last_time timestamp with time zone,
    index_stale boolean DEFAULT false NOT NULL
)
WITH (fillfactor='50');
COMMENT ON TABLE public.prices IS 'The last prices of each instrument.';
COMMENT ON COLUMN public.prices.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.prices.index_price IS 'Last index price. NULL before the first.';
COMMENT ON COLUMN public.prices.mark_price IS 'Last mark price. NULL before the first.';
COMMENT ON COLUMN public.prices.index_time IS 'Time of the last index price, UTC. NULL before the first.';
COMMENT ON COLUMN public.prices.last_price IS 'Price of the last trade. NULL before the first.';
COMMENT ON COLUMN public.prices.last_time IS 'Time of the last trade, UTC. NULL before the first.';
COMMENT ON COLUMN public.prices.index_stale IS 'Whether the index price is too old to use.';
CREATE VIEW public.instrument_statuses AS
 SELECT i.symbol,
        CASE
            WHEN ((i.status = 'open'::text) AND ((p.index_price IS NULL) OR p.index_stale)) THEN 'post_only'::text
            ELSE i.status
        END AS status
   FROM (public.instruments i
     LEFT JOIN public.prices p USING (symbol));
COMMENT ON VIEW public.instrument_statuses IS 'View of the status in force for each instrument: the operator''s, or post_only while there is no fresh index price.';
COMMENT ON COLUMN public.instrument_statuses.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.instrument_statuses.status IS 'Status in force.';
CREATE TABLE public.leverages (
    customer_code text NOT NULL,
    symbol text NOT NULL,
    broker text NOT NULL,
    leverage integer NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.leverages IS 'Leverage that customers chose for an instrument with their orders.';
COMMENT ON COLUMN public.leverages.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.leverages.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.leverages.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.leverages.leverage IS 'Leverage in force for new positions.';
COMMENT ON COLUMN public.leverages.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.list_counts (
    list text NOT NULL,
    width integer NOT NULL,
    bucket bigint NOT NULL,
    n bigint NOT NULL
)
WITH (fillfactor='50');
COMMENT ON TABLE public.list_counts IS 'Number of rows in long lists by ranges of records, from which numbered pages are found. Triggers of the counted tables keep it.';
COMMENT ON COLUMN public.list_counts.list IS 'Name of the list: the table and the values it is filtered by.';
COMMENT ON COLUMN public.list_counts.width IS 'Number of records in the range: 2097152, 32768 or 512.';
COMMENT ON COLUMN public.list_counts.bucket IS 'Number of the range: the sequence divided by the width.';
COMMENT ON COLUMN public.list_counts.n IS 'Rows of the list that records in the range made. Never 0.';
CREATE TABLE public.margin_profiles (
    customer_code text NOT NULL,
    broker text NOT NULL,
    leverage integer NOT NULL,
    initial_margin numeric NOT NULL,
    maintenance_margin numeric NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.margin_profiles IS 'Default margins of accounts for which an operator set them.';
COMMENT ON COLUMN public.margin_profiles.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.margin_profiles.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.margin_profiles.leverage IS 'Leverage that was set. 0 if the percentages were set instead.';
COMMENT ON COLUMN public.margin_profiles.initial_margin IS 'Initial margin in percent of the notional.';
COMMENT ON COLUMN public.margin_profiles.maintenance_margin IS 'Maintenance margin in percent of the notional.';
COMMENT ON COLUMN public.margin_profiles.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.trades (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    code uuid NOT NULL,
    order_code uuid,
    customer_code text NOT NULL,
    broker text NOT NULL,
    symbol text NOT NULL,
    action text NOT NULL,
    price numeric NOT NULL,
    amount numeric NOT NULL,
    notional numeric NOT NULL,
    fee numeric NOT NULL,
    fee_currency text NOT NULL,
    role text NOT NULL,
    type text NOT NULL,
    reference_id text,
    "time" timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.trades IS 'The sides of all trades: two rows for each, the taker''s and the maker''s.';
COMMENT ON COLUMN public.trades.sequence IS 'Sequence of the record that made the trade.';
COMMENT ON COLUMN public.trades.ordinal IS 'Twice the trade''s position in its record, plus 1 for the maker''s side.';
COMMENT ON COLUMN public.trades.code IS 'Id of the trade, the same for both sides.';
COMMENT ON COLUMN public.trades.order_code IS 'Order of this side. NULL for a takeover or deleveraging, which has no orders.';
COMMENT ON COLUMN public.trades.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.trades.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.trades.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.trades.action IS 'What this side did: buy or sell.';
COMMENT ON COLUMN public.trades.price IS 'Price of the trade.';
COMMENT ON COLUMN public.trades.amount IS 'Amount in contracts.';
COMMENT ON COLUMN public.trades.notional IS 'Value of the trade in the quote currency.';
COMMENT ON COLUMN public.trades.fee IS 'Fee of this side. Negative is a rebate.';
COMMENT ON COLUMN public.trades.fee_currency IS 'Currency of the fee.';
COMMENT ON COLUMN public.trades.role IS 'taker or maker.';
COMMENT ON COLUMN public.trades.type IS 'trade, liquidation or auto_deleveraging.';
COMMENT ON COLUMN public.trades.reference_id IS 'Client''s own id of the order. NULL without an order.';
COMMENT ON COLUMN public.trades."time" IS 'Time of the trade, UTC.';
CREATE VIEW public.market_trades AS
 SELECT trades.sequence,
    (trades.ordinal / 2) AS ordinal,
    trades.code,
    trades.symbol,
    trades.price,
    trades.amount,
    trades.action,
    trades.type,
    trades."time"
   FROM public.trades
  WHERE (trades.role = 'taker'::text);
COMMENT ON VIEW public.market_trades IS 'View of all trades without the customers: one row for each.';
COMMENT ON COLUMN public.market_trades.sequence IS 'Sequence of the record that made the trade.';
COMMENT ON COLUMN public.market_trades.ordinal IS 'Position of the trade in its record.';
COMMENT ON COLUMN public.market_trades.code IS 'Id of the trade.';
COMMENT ON COLUMN public.market_trades.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.market_trades.price IS 'Price of the trade.';
COMMENT ON COLUMN public.market_trades.amount IS 'Amount in contracts.';
COMMENT ON COLUMN public.market_trades.action IS 'What the taker did: buy or sell.';
COMMENT ON COLUMN public.market_trades.type IS 'trade, liquidation or auto_deleveraging.';
COMMENT ON COLUMN public.market_trades."time" IS 'Time of the trade, UTC.';
CREATE TABLE public.notices (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    tenant text NOT NULL,
    owner_id uuid,
    owner_type text,
    form integer NOT NULL,
    number bigint,
    "time" timestamp with time zone NOT NULL,
    entitlement_trigger_id uuid,
    entitlement_id uuid,
    questionnaire_ids uuid[] NOT NULL,
    code text,
    reason_text text,
    reason bytea,
    document_id uuid,
    document_category text,
    document_valid_until timestamp with time zone
);
COMMENT ON TABLE public.notices IS 'What receivers are told, which is also the feed of each tenant.';
COMMENT ON COLUMN public.notices.sequence IS 'Sequence of the record that caused the notice.';
COMMENT ON COLUMN public.notices.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.notices.id IS 'Id of the notice.';
COMMENT ON COLUMN public.notices.type IS 'Type of the notice, such as entitlementCompleted.';
COMMENT ON COLUMN public.notices.tenant IS 'Tenant who is told.';
COMMENT ON COLUMN public.notices.owner_id IS 'Person or corporate that it is about. NULL for a test.';
COMMENT ON COLUMN public.notices.owner_type IS 'person or corporate. NULL for a test.';
COMMENT ON COLUMN public.notices.form IS 'Version of the body that is made of the notice.';
COMMENT ON COLUMN public.notices.number IS 'Number of the notice among those about its owner, from 1. NULL for a test.';
COMMENT ON COLUMN public.notices."time" IS 'Time of the record, UTC.';
COMMENT ON COLUMN public.notices.entitlement_trigger_id IS 'Trigger that it is about. NULL without one.';
COMMENT ON COLUMN public.notices.entitlement_id IS 'Entitlement that it is about. NULL without one.';
COMMENT ON COLUMN public.notices.questionnaire_ids IS 'Questionnaires that it is about.';
COMMENT ON COLUMN public.notices.code IS 'Code of the reason. NULL without one.';
COMMENT ON COLUMN public.notices.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN public.notices.reason IS 'Sealed with the owner''s key: the reason in an operator''s words. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.notices.document_id IS 'Document that it is about. NULL without one.';
COMMENT ON COLUMN public.notices.document_category IS 'Kind of that document. NULL without one.';
COMMENT ON COLUMN public.notices.document_valid_until IS 'Until when that document is valid, UTC. NULL without one.';
CREATE TABLE public.orders (
    code uuid NOT NULL,
    customer_code text NOT NULL,
    broker text NOT NULL,
    symbol text NOT NULL,
    action text NOT NULL,
    type text NOT NULL,
    status text NOT NULL,
    live boolean NOT NULL,
    amount numeric NOT NULL,
    filled_amount numeric NOT NULL,
    cash_amount numeric,
    filled_quote numeric NOT NULL,
    limit_price numeric,
    trigger_price numeric,
    stop_loss_price numeric,
    take_profit_price numeric,
    trigger_price_type text,
    average_fill_price numeric,
    time_in_force text NOT NULL,
    expire_time timestamp with time zone,
    post_only boolean NOT NULL,
    reduce_only boolean NOT NULL,
    reference_id text NOT NULL,
    reason text,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL,
    triggered timestamp with time zone
)
WITH (fillfactor='75');
COMMENT ON TABLE public.orders IS 'Every order that was ever accepted or rejected, as the last record left it.';
COMMENT ON COLUMN public.orders.code IS 'Id of the order.';
COMMENT ON COLUMN public.orders.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.orders.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.orders.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.orders.action IS 'buy or sell.';
COMMENT ON COLUMN public.orders.type IS 'Order type, such as limit or market.';
COMMENT ON COLUMN public.orders.status IS 'open, partially_filled, filled, canceled, expired or rejected.';
COMMENT ON COLUMN public.orders.live IS 'Whether the status is open or partially_filled.';
COMMENT ON COLUMN public.orders.amount IS 'Ordered amount in contracts. 0 if cash_amount was ordered.';
COMMENT ON COLUMN public.orders.filled_amount IS 'Filled amount in contracts.';
COMMENT ON COLUMN public.orders.cash_amount IS 'Ordered value in the quote currency. NULL if an amount was ordered.';
COMMENT ON COLUMN public.orders.filled_quote IS 'Sum of price times amount over the fills, in the quote currency.';
COMMENT ON COLUMN public.orders.limit_price IS 'Limit price. NULL for a market order.';
COMMENT ON COLUMN public.orders.trigger_price IS 'Price that triggers a stop. NULL for other orders.';
COMMENT ON COLUMN public.orders.stop_loss_price IS 'Price of the stop loss attached to the order. NULL without one.';
COMMENT ON COLUMN public.orders.take_profit_price IS 'Price of the take profit attached to the order. NULL without one.';
COMMENT ON COLUMN public.orders.trigger_price_type IS 'Price that triggers are compared with: trade_price or mark_price. NULL without a trigger.';
COMMENT ON COLUMN public.orders.average_fill_price IS 'Average price of the fills. NULL before the first.';
COMMENT ON COLUMN public.orders.time_in_force IS 'GTC, GTD, IOC or FOK.';
COMMENT ON COLUMN public.orders.expire_time IS 'When a GTD order expires, UTC. NULL for others.';
COMMENT ON COLUMN public.orders.post_only IS 'Whether the order may only add to the book.';
COMMENT ON COLUMN public.orders.reduce_only IS 'Whether the order may only reduce a position.';
COMMENT ON COLUMN public.orders.reference_id IS 'Client''s own id of the order, or the code where the client gave none.';
COMMENT ON COLUMN public.orders.reason IS 'Why the order was canceled or rejected. NULL for others.';
COMMENT ON COLUMN public.orders.created IS 'When the order was made, UTC.';
COMMENT ON COLUMN public.orders.updated IS 'When the order was last changed, UTC.';
COMMENT ON COLUMN public.orders.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.orders.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.orders.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN public.orders.triggered IS 'Time at which the stop fired. Null if it has not, and for other orders.';
CREATE TABLE public.owners (
    id uuid NOT NULL,
    type text NOT NULL,
    tenant text NOT NULL,
    state text NOT NULL,
    external_id bytea,
    fields bytea,
    revision bigint NOT NULL,
    held boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.owners IS 'Persons and corporates that are onboarded.';
COMMENT ON COLUMN public.owners.id IS 'Id of the person or corporate.';
COMMENT ON COLUMN public.owners.type IS 'person or corporate.';
COMMENT ON COLUMN public.owners.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN public.owners.state IS 'active, restricted or erased.';
COMMENT ON COLUMN public.owners.external_id IS 'HMAC of the tenant''s own id of the owner. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.owners.fields IS 'Sealed with the owner''s key: the data of the owner. NULL once the owner is erased.';
COMMENT ON COLUMN public.owners.revision IS 'Number of changes of the owner''s data.';
COMMENT ON COLUMN public.owners.held IS 'Whether a legal hold keeps the owner from being erased.';
COMMENT ON COLUMN public.owners.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.owners.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN public.owners.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.owners.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.owners.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.positions (
    customer_code text NOT NULL,
    symbol text NOT NULL,
    broker text NOT NULL,
    amount numeric NOT NULL,
    cost numeric NOT NULL,
    entry_price numeric,
    updated timestamp with time zone NOT NULL,
    sequence bigint NOT NULL
)
WITH (fillfactor='75');
COMMENT ON TABLE public.positions IS 'Position of each customer by instrument. A closed position stays as a row with amount 0.';
COMMENT ON COLUMN public.positions.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.positions.symbol IS 'Symbol of the instrument.';
COMMENT ON COLUMN public.positions.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.positions.amount IS 'Size in contracts, negative if short.';
COMMENT ON COLUMN public.positions.cost IS 'What the position cost, in the settlement currency, negative if short.';
COMMENT ON COLUMN public.positions.entry_price IS 'Average entry price. NULL for a closed position.';
COMMENT ON COLUMN public.positions.updated IS 'When the position last changed, UTC.';
COMMENT ON COLUMN public.positions.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.questionnaire_versions (
    questionnaire_id uuid NOT NULL,
    version_number integer NOT NULL,
    id uuid NOT NULL,
    is_published boolean NOT NULL,
    questions json NOT NULL,
    created_at timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.questionnaire_versions IS 'Versions of questionnaires with their questions.';
COMMENT ON COLUMN public.questionnaire_versions.questionnaire_id IS 'Questionnaire that it is a version of.';
COMMENT ON COLUMN public.questionnaire_versions.version_number IS 'Number of the version, from 1.';
COMMENT ON COLUMN public.questionnaire_versions.id IS 'Id of the version.';
COMMENT ON COLUMN public.questionnaire_versions.is_published IS 'Whether the version is published.';
COMMENT ON COLUMN public.questionnaire_versions.questions IS 'The questions, as the journal has them.';
COMMENT ON COLUMN public.questionnaire_versions.created_at IS 'When it was created, UTC.';
CREATE TABLE public.questionnaires (
    id uuid NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    owner_type text NOT NULL,
    owner_type_id uuid,
    is_published boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.questionnaires IS 'Questionnaires that owners answer.';
COMMENT ON COLUMN public.questionnaires.id IS 'Id of the questionnaire.';
COMMENT ON COLUMN public.questionnaires.name IS 'Name of the questionnaire.';
COMMENT ON COLUMN public.questionnaires.description IS 'Description for those who choose it.';
COMMENT ON COLUMN public.questionnaires.owner_type IS 'Type of owners who answer it: person or corporate.';
COMMENT ON COLUMN public.questionnaires.owner_type_id IS 'The one owner whom it is for. NULL for all of the type.';
COMMENT ON COLUMN public.questionnaires.is_published IS 'Whether a version is published.';
COMMENT ON COLUMN public.questionnaires.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.questionnaires.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.questionnaires.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.questionnaires.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.records (
    journal text NOT NULL,
    sequence bigint NOT NULL,
    log_offset bigint NOT NULL,
    hash bytea NOT NULL,
    "time" timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    command_id uuid NOT NULL,
    command_type text NOT NULL,
    sub text,
    broker text,
    customer_code text,
    system text,
    CONSTRAINT records_hash_check CHECK ((length(hash) = 32))
);
COMMENT ON TABLE public.records IS 'One row for each valid record of each journal: who commanded what, and the outcome. The record itself is in the log.';
COMMENT ON COLUMN public.records.journal IS 'Journal: trading, onboarding or identity.';
COMMENT ON COLUMN public.records.sequence IS 'Sequence of the record in its journal, from 0 without gaps.';
COMMENT ON COLUMN public.records.log_offset IS 'Kafka offset at which the record was found. A copy of the log may have others.';
COMMENT ON COLUMN public.records.hash IS 'SHA-256 of the record''s value, which the next record repeats.';
COMMENT ON COLUMN public.records."time" IS 'Time of the record, UTC.';
COMMENT ON COLUMN public.records.outcome IS 'accepted or rejected.';
COMMENT ON COLUMN public.records.command_id IS 'Id of the command, as the client was given it.';
COMMENT ON COLUMN public.records.command_type IS 'Type of the command, such as order.place.';
COMMENT ON COLUMN public.records.sub IS 'User who sent the command. NULL if the venue itself did.';
COMMENT ON COLUMN public.records.broker IS 'Broker of that user. NULL if the venue itself sent the command.';
COMMENT ON COLUMN public.records.customer_code IS 'Customer whom that user is bound to. NULL if the user is not bound to one.';
COMMENT ON COLUMN public.records.system IS 'Part of the venue that sent the command, such as engine. NULL if a user did.';
CREATE TABLE public.responses (
    id uuid NOT NULL,
    questionnaire_id uuid NOT NULL,
    questionnaire_version_id uuid NOT NULL,
    version_number integer NOT NULL,
    owner_id uuid NOT NULL,
    owner_type text NOT NULL,
    tenant text NOT NULL,
    document_ids uuid[] NOT NULL,
    answers bytea,
    created_at timestamp with time zone NOT NULL,
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    place integer NOT NULL
);
COMMENT ON TABLE public.responses IS 'Answers of owners to questionnaires.';
COMMENT ON COLUMN public.responses.id IS 'Id of the response.';
COMMENT ON COLUMN public.responses.questionnaire_id IS 'Questionnaire that was answered.';
COMMENT ON COLUMN public.responses.questionnaire_version_id IS 'Version that was answered.';
COMMENT ON COLUMN public.responses.version_number IS 'Number of that version.';
COMMENT ON COLUMN public.responses.owner_id IS 'Person or corporate that answered; owners.id.';
COMMENT ON COLUMN public.responses.owner_type IS 'person or corporate.';
COMMENT ON COLUMN public.responses.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN public.responses.document_ids IS 'Documents that the answers refer to.';
COMMENT ON COLUMN public.responses.answers IS 'Sealed with the owner''s key: the answers. NULL once the owner is erased.';
COMMENT ON COLUMN public.responses.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.responses.sequence IS 'Sequence of the record of the response.';
COMMENT ON COLUMN public.responses.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.responses.place IS 'Number of the response among those of its owner, from 1.';
CREATE TABLE public.retentions (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    seconds bigint NOT NULL,
    actor text NOT NULL,
    "time" timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.retentions IS 'Retention periods that operators have set. The last one is in force.';
COMMENT ON COLUMN public.retentions.sequence IS 'Sequence of the record that set the period.';
COMMENT ON COLUMN public.retentions.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.retentions.seconds IS 'Seconds for which owners are kept after the end of their relationship.';
COMMENT ON COLUMN public.retentions.actor IS 'User who set the period.';
COMMENT ON COLUMN public.retentions."time" IS 'Time of the record, UTC.';
CREATE TABLE public.schema_versions (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.schema_versions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.schema_versions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.transactions (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    code uuid NOT NULL,
    customer_code text NOT NULL,
    broker text NOT NULL,
    type text NOT NULL,
    currency text NOT NULL,
    amount numeric NOT NULL,
    status text NOT NULL,
    balance numeric,
    symbol text,
    order_code uuid,
    reference_id text,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    changed_sequence bigint NOT NULL,
    funding_rate numeric,
    position_amount numeric,
    mark_price numeric
);
COMMENT ON TABLE public.transactions IS 'Movements on customers'' accounts: deposits, withdrawals, trades, fees, funding and settlement. Completed ones sum to the balance.';
COMMENT ON COLUMN public.transactions.sequence IS 'Sequence of the record in which the movement first appeared.';
COMMENT ON COLUMN public.transactions.ordinal IS 'Position of the movement in that record.';
COMMENT ON COLUMN public.transactions.code IS 'Id of the transaction. A trade and its fee share the trade''s.';
COMMENT ON COLUMN public.transactions.customer_code IS 'Code of the customer, unique in the venue.';
COMMENT ON COLUMN public.transactions.broker IS 'Broker to whom the customer belongs.';
COMMENT ON COLUMN public.transactions.type IS 'Kind of movement, such as deposit, withdrawal, trade, trade_fee or funding.';
COMMENT ON COLUMN public.transactions.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN public.transactions.amount IS 'Amount, negative if it leaves the account.';
COMMENT ON COLUMN public.transactions.status IS 'pending, completed or canceled. Only withdrawals change it.';
COMMENT ON COLUMN public.transactions.balance IS 'Balance after the movement. NULL unless completed.';
COMMENT ON COLUMN public.transactions.symbol IS 'Instrument. NULL for deposits and withdrawals.';
COMMENT ON COLUMN public.transactions.order_code IS 'Order that caused the movement. NULL without one.';
COMMENT ON COLUMN public.transactions.reference_id IS 'Client''s own id of a deposit or withdrawal. NULL for other movements.';
COMMENT ON COLUMN public.transactions.created IS 'When the movement first appeared, UTC.';
COMMENT ON COLUMN public.transactions.updated IS 'When the movement was last changed, UTC.';
COMMENT ON COLUMN public.transactions.changed_sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN public.transactions.funding_rate IS 'Funding rate of a funding payment. NULL for other movements.';
COMMENT ON COLUMN public.transactions.position_amount IS 'Position that a funding payment is for, in contracts. NULL for other movements.';
COMMENT ON COLUMN public.transactions.mark_price IS 'Mark price of a funding payment. NULL for other movements.';
CREATE TABLE public.trigger_events (
    trigger_id uuid NOT NULL,
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    owner_id uuid NOT NULL,
    owner_type text NOT NULL,
    type text NOT NULL,
    action text,
    status text,
    result text,
    actor_kind text NOT NULL,
    actor text NOT NULL,
    code text,
    reason_text text,
    reason bytea,
    internal_reason bytea,
    request_id uuid,
    questionnaire_ids uuid[] NOT NULL,
    outcome text,
    external_reference bytea,
    open json NOT NULL,
    notice_id uuid,
    notice_type text,
    "time" timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.trigger_events IS 'Timeline of each trigger.';
COMMENT ON COLUMN public.trigger_events.trigger_id IS 'Trigger that it happened to.';
COMMENT ON COLUMN public.trigger_events.sequence IS 'Sequence of the record of the event.';
COMMENT ON COLUMN public.trigger_events.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.trigger_events.owner_id IS 'Person or corporate that it belongs to; owners.id.';
COMMENT ON COLUMN public.trigger_events.owner_type IS 'person or corporate.';
COMMENT ON COLUMN public.trigger_events.type IS 'Kind of event.';
COMMENT ON COLUMN public.trigger_events.action IS 'What was done. NULL unless somebody acted.';
COMMENT ON COLUMN public.trigger_events.status IS 'Status after the event. NULL if it did not change.';
COMMENT ON COLUMN public.trigger_events.result IS 'Result after the event. NULL if there is none.';
COMMENT ON COLUMN public.trigger_events.actor_kind IS 'Kind of actor, such as user or system.';
COMMENT ON COLUMN public.trigger_events.actor IS 'Who acted.';
COMMENT ON COLUMN public.trigger_events.code IS 'Code of the reason. NULL without one.';
COMMENT ON COLUMN public.trigger_events.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN public.trigger_events.reason IS 'Sealed with the owner''s key: the reason for the tenant. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.trigger_events.internal_reason IS 'Sealed with the owner''s key: the reason for the venue''s own staff. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.trigger_events.request_id IS 'Request for information that it is about. NULL for other events.';
COMMENT ON COLUMN public.trigger_events.questionnaire_ids IS 'Questionnaires that it is about.';
COMMENT ON COLUMN public.trigger_events.outcome IS 'Outcome of a video identification. NULL for other events.';
COMMENT ON COLUMN public.trigger_events.external_reference IS 'Sealed with the owner''s key: the id at the identification provider. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.trigger_events.open IS 'Requirements that are open after the event.';
COMMENT ON COLUMN public.trigger_events.notice_id IS 'Notice that tells of the event. NULL without one.';
COMMENT ON COLUMN public.trigger_events.notice_type IS 'Type of that notice. NULL without one.';
COMMENT ON COLUMN public.trigger_events."time" IS 'Time of the record, UTC.';
CREATE TABLE public.triggers (
    id uuid NOT NULL,
    entitlement_id uuid NOT NULL,
    owner_id uuid NOT NULL,
    owner_type text NOT NULL,
    tenant text NOT NULL,
    status text NOT NULL,
    result text,
    code text,
    reason_text text,
    reason bytea,
    deadline timestamp with time zone,
    name text,
    approval text,
    opens_trading_account boolean NOT NULL,
    pinned json NOT NULL,
    video_planned boolean NOT NULL,
    video text,
    video_sequence bigint,
    open json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    moved_sequence bigint,
    started_sequence bigint,
    sequence bigint NOT NULL,
    place integer NOT NULL
);
COMMENT ON TABLE public.triggers IS 'Applications of owners for entitlements, as the last record left them.';
COMMENT ON COLUMN public.triggers.id IS 'Id of the trigger.';
COMMENT ON COLUMN public.triggers.entitlement_id IS 'Entitlement that is applied for.';
COMMENT ON COLUMN public.triggers.owner_id IS 'Person or corporate that applies; owners.id.';
COMMENT ON COLUMN public.triggers.owner_type IS 'person or corporate.';
COMMENT ON COLUMN public.triggers.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN public.triggers.status IS 'pending, ongoing, blocked, finished, failed, canceled or terminated.';
COMMENT ON COLUMN public.triggers.result IS 'success or fail. NULL before the end.';
COMMENT ON COLUMN public.triggers.code IS 'Code of the reason of its end. NULL without one.';
COMMENT ON COLUMN public.triggers.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN public.triggers.reason IS 'Sealed with the owner''s key: the reason in an operator''s words. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN public.triggers.deadline IS 'When it expires, UTC. NULL for never.';
COMMENT ON COLUMN public.triggers.name IS 'Name of the entitlement when the trigger was started. NULL before.';
COMMENT ON COLUMN public.triggers.approval IS 'How it is approved, as it was when the trigger was started. NULL before.';
COMMENT ON COLUMN public.triggers.opens_trading_account IS 'Whether a trading account is opened, as it was when the trigger was started.';
COMMENT ON COLUMN public.triggers.pinned IS 'Requirements as they were when the trigger was started.';
COMMENT ON COLUMN public.triggers.video_planned IS 'Whether a video identification is planned.';
COMMENT ON COLUMN public.triggers.video IS 'Outcome of the video identification. NULL before.';
COMMENT ON COLUMN public.triggers.video_sequence IS 'Sequence of the record of that outcome. NULL before.';
COMMENT ON COLUMN public.triggers.open IS 'Requirements that are still open.';
COMMENT ON COLUMN public.triggers.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.triggers.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN public.triggers.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.triggers.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.triggers.moved_sequence IS 'Sequence of the last record that changed the status. NULL if none did.';
COMMENT ON COLUMN public.triggers.started_sequence IS 'Sequence of the record that started it. NULL before.';
COMMENT ON COLUMN public.triggers.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN public.triggers.place IS 'Number of the trigger among those of its owner, from 1.';
CREATE TABLE public.users (
    username text NOT NULL,
    broker text NOT NULL,
    customer_code text,
    scopes text[] NOT NULL,
    is_active boolean NOT NULL,
    is_verified boolean NOT NULL,
    rate_per_second bigint,
    rate_burst bigint,
    created timestamp with time zone NOT NULL,
    updated timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.users IS 'Users who can log in. Passwords, even hashed and sealed, stay in the journal.';
COMMENT ON COLUMN public.users.username IS 'Name with which the user logs in.';
COMMENT ON COLUMN public.users.broker IS 'Broker for whom the user acts.';
COMMENT ON COLUMN public.users.customer_code IS 'Customer whom the user is bound to. NULL if the user acts for all customers of the broker.';
COMMENT ON COLUMN public.users.scopes IS 'What the user may do.';
COMMENT ON COLUMN public.users.is_active IS 'Whether the user may log in.';
COMMENT ON COLUMN public.users.is_verified IS 'Whether the user''s identity was verified.';
COMMENT ON COLUMN public.users.rate_per_second IS 'Requests per second that the user may send. NULL for the venue''s default.';
COMMENT ON COLUMN public.users.rate_burst IS 'Requests that the user may send at once. NULL for the venue''s default.';
COMMENT ON COLUMN public.users.created IS 'When the user was registered, UTC.';
COMMENT ON COLUMN public.users.updated IS 'When the user was last changed, UTC.';
COMMENT ON COLUMN public.users.created_sequence IS 'Sequence of the record that registered the user.';
COMMENT ON COLUMN public.users.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.venue_balances (
    account text NOT NULL,
    currency text NOT NULL,
    balance numeric NOT NULL,
    updated timestamp with time zone NOT NULL,
    sequence bigint NOT NULL
)
WITH (fillfactor='50');
COMMENT ON TABLE public.venue_balances IS 'Balance of each of the venue''s own accounts by currency.';
COMMENT ON COLUMN public.venue_balances.account IS 'Account of the venue: external, fees, insurance, funding, clearing or rounding.';
COMMENT ON COLUMN public.venue_balances.currency IS 'Currency of the balance.';
COMMENT ON COLUMN public.venue_balances.balance IS 'Sum of the account''s postings.';
COMMENT ON COLUMN public.venue_balances.updated IS 'When the balance last changed, UTC.';
COMMENT ON COLUMN public.venue_balances.sequence IS 'Sequence of the last record that changed the row.';
CREATE TABLE public.venue_postings (
    sequence bigint NOT NULL,
    ordinal integer NOT NULL,
    account text NOT NULL,
    type text NOT NULL,
    currency text NOT NULL,
    amount numeric NOT NULL,
    balance numeric NOT NULL,
    symbol text,
    order_code uuid,
    "time" timestamp with time zone NOT NULL
);
COMMENT ON TABLE public.venue_postings IS 'The other side of every movement: postings on the venue''s own accounts. With the completed transactions of a record they sum to 0.';
COMMENT ON COLUMN public.venue_postings.sequence IS 'Sequence of the record that made the posting.';
COMMENT ON COLUMN public.venue_postings.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN public.venue_postings.account IS 'Account of the venue: external, fees, insurance, funding, clearing or rounding.';
COMMENT ON COLUMN public.venue_postings.type IS 'Kind of movement.';
COMMENT ON COLUMN public.venue_postings.currency IS 'Currency of the amounts.';
COMMENT ON COLUMN public.venue_postings.amount IS 'Amount, negative if it leaves the account.';
COMMENT ON COLUMN public.venue_postings.balance IS 'Balance of the account after the posting.';
COMMENT ON COLUMN public.venue_postings.symbol IS 'Instrument. NULL if the movement is not about one.';
COMMENT ON COLUMN public.venue_postings.order_code IS 'Order that caused the posting. NULL without one.';
COMMENT ON COLUMN public.venue_postings."time" IS 'Time of the record, UTC.';
CREATE TABLE public.webhooks (
    id uuid NOT NULL,
    tenant text NOT NULL,
    url text NOT NULL,
    include_all_events boolean NOT NULL,
    event_types text[] NOT NULL,
    key_id text NOT NULL,
    public_key bytea NOT NULL,
    private_key bytea NOT NULL,
    next_key_id text,
    next_public_key bytea,
    next_private_key bytea,
    next_key_from timestamp with time zone,
    disabled_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    created_sequence bigint NOT NULL,
    created_ordinal integer NOT NULL,
    sequence bigint NOT NULL
);
COMMENT ON TABLE public.webhooks IS 'Registrations of tenants'' receivers that are not deleted.';
COMMENT ON COLUMN public.webhooks.id IS 'Id of the registration.';
COMMENT ON COLUMN public.webhooks.tenant IS 'Tenant whose receiver it is.';
COMMENT ON COLUMN public.webhooks.url IS 'Address of the receiver.';
COMMENT ON COLUMN public.webhooks.include_all_events IS 'Whether all types are delivered.';
COMMENT ON COLUMN public.webhooks.event_types IS 'Types that are delivered, unless all are.';
COMMENT ON COLUMN public.webhooks.key_id IS 'Id of the key that signs deliveries.';
COMMENT ON COLUMN public.webhooks.public_key IS 'Public part of that key.';
COMMENT ON COLUMN public.webhooks.private_key IS 'Sealed with the venue''s key: the private part of that key.';
COMMENT ON COLUMN public.webhooks.next_key_id IS 'Id of the key that follows in a rotation. NULL without one.';
COMMENT ON COLUMN public.webhooks.next_public_key IS 'Public part of the next key. NULL without one.';
COMMENT ON COLUMN public.webhooks.next_private_key IS 'Sealed with the venue''s key: the private part of the next key. NULL without one.';
COMMENT ON COLUMN public.webhooks.next_key_from IS 'From when the next key signs, UTC. NULL without one.';
COMMENT ON COLUMN public.webhooks.disabled_at IS 'When the registration was disabled, UTC. NULL while it is enabled.';
COMMENT ON COLUMN public.webhooks.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN public.webhooks.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN public.webhooks.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN public.webhooks.sequence IS 'Sequence of the last record that changed the row.';
ALTER TABLE ONLY public.anchors
    ADD CONSTRAINT anchors_pkey PRIMARY KEY (journal, partition, sequence);
ALTER TABLE ONLY public.balances
    ADD CONSTRAINT balances_pkey PRIMARY KEY (customer_code, currency);
ALTER TABLE ONLY public.brokers
    ADD CONSTRAINT brokers_pkey PRIMARY KEY (broker);
ALTER TABLE ONLY public.candles
    ADD CONSTRAINT candles_pkey PRIMARY KEY (symbol, price, seconds, start);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (journal, partition);
ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (customer_code);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, number);
ALTER TABLE ONLY public.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.entitlements
    ADD CONSTRAINT entitlements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (owner_id);
ALTER TABLE ONLY public.fee_profiles
    ADD CONSTRAINT fee_profiles_pkey PRIMARY KEY (customer_code, symbol);
ALTER TABLE ONLY public.funding_rates
    ADD CONSTRAINT funding_rates_pkey PRIMARY KEY (sequence, ordinal);
ALTER TABLE ONLY public.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (sequence, ordinal);
ALTER TABLE ONLY public.instruments
    ADD CONSTRAINT instruments_pkey PRIMARY KEY (symbol);
ALTER TABLE ONLY public.leverages
    ADD CONSTRAINT leverages_pkey PRIMARY KEY (customer_code, symbol);
ALTER TABLE ONLY public.list_counts
    ADD CONSTRAINT list_counts_pkey PRIMARY KEY (list, width, bucket);
ALTER TABLE ONLY public.margin_profiles
    ADD CONSTRAINT margin_profiles_pkey PRIMARY KEY (customer_code);
ALTER TABLE ONLY public.notices
    ADD CONSTRAINT notices_pkey PRIMARY KEY (sequence, ordinal);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (code);
ALTER TABLE ONLY public.owners
    ADD CONSTRAINT owners_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.positions
    ADD CONSTRAINT positions_pkey PRIMARY KEY (customer_code, symbol);
ALTER TABLE ONLY public.prices
    ADD CONSTRAINT prices_pkey PRIMARY KEY (symbol);
ALTER TABLE ONLY public.questionnaire_versions
    ADD CONSTRAINT questionnaire_versions_pkey PRIMARY KEY (questionnaire_id, version_number);
ALTER TABLE ONLY public.questionnaires
    ADD CONSTRAINT questionnaires_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.records
    ADD CONSTRAINT records_pkey PRIMARY KEY (journal, sequence);
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT responses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.retentions
    ADD CONSTRAINT retentions_pkey PRIMARY KEY (sequence, ordinal);
ALTER TABLE ONLY public.schema_versions
    ADD CONSTRAINT schema_versions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.trades
    ADD CONSTRAINT trades_pkey PRIMARY KEY (customer_code, sequence, ordinal);
ALTER TABLE ONLY public.transactions
    ADD CONSTRAINT transactions_pkey PRIMARY KEY (customer_code, sequence, ordinal);
ALTER TABLE ONLY public.trigger_events
    ADD CONSTRAINT trigger_events_pkey PRIMARY KEY (trigger_id, sequence, ordinal);
ALTER TABLE ONLY public.triggers
    ADD CONSTRAINT triggers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (username);
ALTER TABLE ONLY public.venue_balances
    ADD CONSTRAINT venue_balances_pkey PRIMARY KEY (account, currency);
ALTER TABLE ONLY public.venue_postings
    ADD CONSTRAINT venue_postings_pkey PRIMARY KEY (sequence, ordinal);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
CREATE INDEX customers_by_broker ON public.customers USING btree (broker, sequence, ordinal);
CREATE INDEX deliveries_by_owner ON public.deliveries USING btree (owner_id, created_sequence, created_ordinal) WHERE (owner_id IS NOT NULL);
CREATE INDEX deliveries_by_status ON public.deliveries USING btree (status, created_sequence, created_ordinal);
CREATE INDEX deliveries_by_webhook ON public.deliveries USING btree (webhook_id, status, created_sequence, created_ordinal);
CREATE INDEX deliveries_retrying ON public.deliveries USING btree (webhook_id, next_attempt_at) WHERE (status = 'retrying'::text);
CREATE UNIQUE INDEX documents_by_owner ON public.documents USING btree (owner_id, place);
CREATE INDEX entitlements_by_type ON public.entitlements USING btree (owner_type, created_sequence, created_ordinal);
CREATE INDEX funding_rates_by_symbol ON public.funding_rates USING btree (symbol, sequence, ordinal);
CREATE INDEX holds_by_owner ON public.holds USING btree (owner_id, sequence, ordinal);
CREATE UNIQUE INDEX notices_by_id ON public.notices USING btree (id);
CREATE INDEX notices_by_owner ON public.notices USING btree (owner_id, sequence, ordinal) WHERE (owner_id IS NOT NULL);
CREATE INDEX notices_by_tenant ON public.notices USING btree (tenant, sequence, ordinal);
CREATE INDEX notices_by_type ON public.notices USING btree (tenant, type, sequence, ordinal);
CREATE INDEX orders_by_broker ON public.orders USING btree (broker, created_sequence, created_ordinal);
CREATE INDEX orders_by_customer ON public.orders USING btree (customer_code, created_sequence, created_ordinal);
CREATE INDEX orders_by_reference ON public.orders USING btree (customer_code, reference_id, created_sequence) WHERE (reference_id <> (code)::text);
CREATE INDEX orders_live ON public.orders USING btree (broker, customer_code) WHERE live;
CREATE INDEX owners_by_tenant ON public.owners USING btree (tenant, type, state, created_sequence, created_ordinal);
CREATE INDEX owners_by_type ON public.owners USING btree (type, state, created_sequence, created_ordinal);
CREATE INDEX questionnaires_all ON public.questionnaires USING btree (owner_type, is_published, created_sequence, created_ordinal);
CREATE INDEX questionnaires_generic ON public.questionnaires USING btree (owner_type, created_sequence, created_ordinal) WHERE (is_published AND (owner_type_id IS NULL));
CREATE INDEX questionnaires_of_owner ON public.questionnaires USING btree (owner_type_id, created_sequence, created_ordinal) WHERE (is_published AND (owner_type_id IS NOT NULL));
CREATE INDEX records_by_command ON public.records USING btree (command_id);
CREATE UNIQUE INDEX responses_by_owner ON public.responses USING btree (owner_id, place);
CREATE INDEX trades_by_broker ON public.trades USING btree (broker, sequence, ordinal);
CREATE INDEX trades_of_market ON public.trades USING btree (sequence, ordinal) WHERE (role = 'taker'::text);
CREATE INDEX trades_of_market_by_symbol ON public.trades USING btree (symbol, sequence, ordinal) WHERE (role = 'taker'::text);
CREATE INDEX transactions_by_broker ON public.transactions USING btree (broker, sequence, ordinal);
CREATE UNIQUE INDEX transactions_by_code ON public.transactions USING btree (code) WHERE (reference_id IS NOT NULL);
CREATE INDEX transactions_of_transfers ON public.transactions USING btree (customer_code, sequence, ordinal) WHERE (reference_id IS NOT NULL);
CREATE INDEX trigger_events_by_owner ON public.trigger_events USING btree (owner_id, sequence, ordinal);
CREATE INDEX trigger_events_by_request ON public.trigger_events USING btree (request_id) WHERE (request_id IS NOT NULL);
CREATE INDEX triggers_by_entitlement ON public.triggers USING btree (entitlement_id, status, created_sequence, created_ordinal);
CREATE UNIQUE INDEX triggers_by_owner ON public.triggers USING btree (owner_id, place);
CREATE INDEX triggers_by_status ON public.triggers USING btree (status, created_sequence, created_ordinal);
CREATE INDEX triggers_by_tenant ON public.triggers USING btree (tenant, status, created_sequence, created_ordinal);
CREATE INDEX triggers_by_tenant_and_entitlement ON public.triggers USING btree (tenant, entitlement_id, status, created_sequence, created_ordinal);
CREATE INDEX triggers_open ON public.triggers USING btree (owner_id, place) WHERE (status = ANY (ARRAY['pending'::text, 'ongoing'::text, 'blocked'::text]));
CREATE INDEX webhooks_by_tenant ON public.webhooks USING btree (tenant, created_sequence, created_ordinal);
CREATE TRIGGER changes_deleted AFTER DELETE ON public.anchors REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'anchors'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.anchors ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.balances REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'balances'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.balances ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.brokers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'brokers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.brokers ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.candles REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'candles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.candles ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.checkpoints REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'checkpoints'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.checkpoints ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.customers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'customers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.customers ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.deliveries REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'deliveries'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.deliveries ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.delivery_attempts REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'delivery_attempts'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.delivery_attempts ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.documents REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'documents'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.documents ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.entitlements REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'entitlements'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.entitlements ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.erasures REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'erasures'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.erasures ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.fee_profiles REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'fee_profiles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.fee_profiles ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.funding_rates REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'funding_rates'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.funding_rates ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.holds REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'holds'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.holds ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.instruments REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'instruments'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.instruments ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.leverages REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'leverages'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.leverages ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.list_counts REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'list_counts'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.list_counts ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.margin_profiles REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'margin_profiles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.margin_profiles ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.notices REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'notices'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.notices ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.orders REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'orders'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.owners REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'owners'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.owners ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.positions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'positions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.positions ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.prices REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'prices'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.prices ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.questionnaire_versions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'questionnaire_versions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.questionnaire_versions ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.questionnaires REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'questionnaires'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.questionnaires ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.records REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'records'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.records ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.responses REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'responses'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.responses ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.retentions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'retentions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.retentions ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.trades REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'trades'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.trades ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.transactions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'transactions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.transactions ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.trigger_events REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'trigger_events'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.trigger_events ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.triggers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'triggers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.triggers ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.users REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'users'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.venue_balances REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'venue_balances'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.venue_balances ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.venue_postings REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'venue_postings'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.venue_postings ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_deleted AFTER DELETE ON public.webhooks REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'webhooks'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.webhooks ENABLE ALWAYS TRIGGER changes_deleted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.anchors REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'anchors'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.anchors ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.balances REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'balances'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.balances ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.brokers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'brokers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.brokers ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.candles REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'candles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.candles ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.checkpoints REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'checkpoints'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.checkpoints ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.customers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'customers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.customers ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'deliveries'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.deliveries ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.delivery_attempts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'delivery_attempts'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.delivery_attempts ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.documents REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'documents'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.documents ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.entitlements REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'entitlements'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.entitlements ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.erasures REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'erasures'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.erasures ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.fee_profiles REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'fee_profiles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.fee_profiles ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.funding_rates REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'funding_rates'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.funding_rates ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.holds REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'holds'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.holds ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.instruments REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'instruments'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.instruments ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.leverages REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'leverages'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.leverages ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.list_counts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'list_counts'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.list_counts ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.margin_profiles REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'margin_profiles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.margin_profiles ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.notices REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'notices'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.notices ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.orders REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'orders'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.owners REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'owners'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.owners ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.positions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'positions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.positions ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.prices REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'prices'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.prices ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.questionnaire_versions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'questionnaire_versions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.questionnaire_versions ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.questionnaires REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'questionnaires'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.questionnaires ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.records REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'records'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.records ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.responses REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'responses'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.responses ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.retentions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'retentions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.retentions ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.trades REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'trades'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.trades ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.transactions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'transactions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.transactions ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.trigger_events REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'trigger_events'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.trigger_events ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.triggers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'triggers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.triggers ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.users REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'users'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.venue_balances REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'venue_balances'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.venue_balances ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.venue_postings REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'venue_postings'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.venue_postings ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_inserted AFTER INSERT ON public.webhooks REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'webhooks'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.webhooks ENABLE ALWAYS TRIGGER changes_inserted;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.anchors REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'anchors'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.anchors ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.balances REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'balances'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.balances ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.brokers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'brokers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.brokers ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.candles REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'candles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.candles ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.checkpoints REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'checkpoints'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.checkpoints ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.customers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'customers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.customers ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'deliveries'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.deliveries ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.delivery_attempts REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'delivery_attempts'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.delivery_attempts ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.documents REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'documents'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.documents ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.entitlements REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'entitlements'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.entitlements ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.erasures REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'erasures'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.erasures ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.fee_profiles REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'fee_profiles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.fee_profiles ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.funding_rates REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'funding_rates'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.funding_rates ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.holds REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'holds'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.holds ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.instruments REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'instruments'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.instruments ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.leverages REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'leverages'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.leverages ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.list_counts REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'list_counts'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.list_counts ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.margin_profiles REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'margin_profiles'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.margin_profiles ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.notices REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'notices'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.notices ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'orders'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.owners REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'owners'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.owners ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.positions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'positions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.positions ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.prices REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'prices'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.prices ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.questionnaire_versions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'questionnaire_versions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.questionnaire_versions ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.questionnaires REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'questionnaires'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.questionnaires ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.records REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'records'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.records ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.responses REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'responses'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.responses ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.retentions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'retentions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.retentions ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.trades REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'trades'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.trades ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.transactions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'transactions'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.transactions ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.trigger_events REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'trigger_events'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.trigger_events ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.triggers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'triggers'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.triggers ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.users REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'users'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.users ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.venue_balances REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'venue_balances'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.venue_balances ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.venue_postings REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'venue_postings'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.venue_postings ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER changes_updated AFTER UPDATE ON public.webhooks REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (((NOT pg_try_advisory_xact_lock_shared(hashtextextended('perpetua merge'::text, (0)::bigint))) OR (current_setting('perpetua.recorded'::text, true) = 'webhooks'::text))) EXECUTE FUNCTION public.record_changes();
ALTER TABLE public.webhooks ENABLE ALWAYS TRIGGER changes_updated;
CREATE TRIGGER deliveries_added AFTER INSERT ON public.deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]', 'status, webhook_id');
CREATE TRIGGER deliveries_changed AFTER UPDATE ON public.deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]', 'status, webhook_id');
CREATE TRIGGER documents_placed BEFORE INSERT ON public.documents FOR EACH ROW WHEN ((new.place IS NULL)) EXECUTE FUNCTION public.place_document();
CREATE TRIGGER owners_added AFTER INSERT ON public.owners REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''owners/'' || type, concat_ws(''/'', ''owners'', type, state), concat_ws(''/'', ''owners'', type, state, tenant)]');
CREATE TRIGGER owners_changed AFTER UPDATE ON public.owners REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''owners/'' || type, concat_ws(''/'', ''owners'', type, state), concat_ws(''/'', ''owners'', type, state, tenant)]');
CREATE TRIGGER questionnaires_added AFTER INSERT ON public.questionnaires REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''questionnaires/'' || owner_type,
        CASE WHEN is_published THEN concat_ws(''/'', ''questionnaires'', COALESCE(owner_type_id::text, ''generic/'' || owner_type)) END]');
CREATE TRIGGER questionnaires_changed AFTER UPDATE ON public.questionnaires REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''questionnaires/'' || owner_type,
        CASE WHEN is_published THEN concat_ws(''/'', ''questionnaires'', COALESCE(owner_type_id::text, ''generic/'' || owner_type)) END]');
CREATE TRIGGER responses_placed BEFORE INSERT ON public.responses FOR EACH ROW WHEN ((new.place IS NULL)) EXECUTE FUNCTION public.place_response();
CREATE TRIGGER triggers_added AFTER INSERT ON public.triggers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant),
        ''triggers///'' || entitlement_id, concat_ws(''/'', ''triggers'', status, '''', entitlement_id), concat_ws(''/'', ''triggers//'' || tenant, entitlement_id),
        concat_ws(''/'', ''triggers'', status, tenant, entitlement_id)]');
CREATE TRIGGER triggers_changed AFTER UPDATE ON public.triggers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant),
        ''triggers///'' || entitlement_id, concat_ws(''/'', ''triggers'', status, '''', entitlement_id), concat_ws(''/'', ''triggers//'' || tenant, entitlement_id),
        concat_ws(''/'', ''triggers'', status, tenant, entitlement_id)]');
CREATE TRIGGER triggers_placed BEFORE INSERT ON public.triggers FOR EACH ROW WHEN ((new.place IS NULL)) EXECUTE FUNCTION public.place_trigger();
REVOKE EXECUTE ON FUNCTION public.record_changes() FROM PUBLIC;
INSERT INTO public.schema_versions (version_id, is_applied) SELECT n, true FROM generate_series(0, 24) n;
