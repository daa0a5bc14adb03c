-- +goose Up

-- Earlier versions of the rows of the onboarding journal, as in 00041_history.sql. These tables have no partitions: they
-- have few rows, and auditors ask about them for years. A sealed value is NULL once its owner is erased.
CREATE TABLE owner_history (
    since       bigint      NOT NULL,
    until       bigint      NOT NULL,
    revision    bigint      NOT NULL,
    updated_at  timestamptz NOT NULL,
    id          uuid        NOT NULL,
    held        boolean     NOT NULL,
    state       text        NOT NULL,
    external_id bytea,
    fields      bytea,
    PRIMARY KEY (id, until)
);
COMMENT ON TABLE owner_history IS 'Earlier states of persons and corporates. The columns of an owner that never change are in owners.';
COMMENT ON COLUMN owner_history.since IS 'Sequence of the record that made this state.';
COMMENT ON COLUMN owner_history.until IS 'Sequence of the record that ended it.';
COMMENT ON COLUMN owner_history.id IS 'Id of the person or corporate.';
COMMENT ON COLUMN owner_history.state IS 'active, restricted or erased.';
COMMENT ON COLUMN owner_history.external_id IS 'HMAC of the tenant''s own id of the owner. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN owner_history.fields IS 'Sealed with the owner''s key: the data of the owner. NULL once the owner is erased.';
COMMENT ON COLUMN owner_history.revision IS 'Number of changes of the owner''s data.';
COMMENT ON COLUMN owner_history.held IS 'Whether a legal hold kept the owner from being erased.';
COMMENT ON COLUMN owner_history.updated_at IS 'When it was last changed before the record until, UTC.';

CREATE TABLE document_history (
    since       bigint      NOT NULL,
    until       bigint      NOT NULL,
    updated_at  timestamptz NOT NULL,
    valid_until timestamptz,
    id          uuid        NOT NULL,
    category    text        NOT NULL,
    PRIMARY KEY (id, until)
);
COMMENT ON TABLE document_history IS 'Earlier states of documents. The columns of a document that never change are in documents.';
COMMENT ON COLUMN document_history.since IS 'Sequence of the record that made this state.';
COMMENT ON COLUMN document_history.until IS 'Sequence of the record that ended it.';
COMMENT ON COLUMN document_history.id IS 'Id of the document.';
COMMENT ON COLUMN document_history.category IS 'Category of the document.';
COMMENT ON COLUMN document_history.valid_until IS 'When the document expires, UTC. NULL for never.';
COMMENT ON COLUMN document_history.updated_at IS 'Time of the record since, UTC.';

CREATE TABLE trigger_history (
    since                 bigint      NOT NULL,
    until                 bigint      NOT NULL,
    video_sequence        bigint,
    moved_sequence        bigint,
    started_sequence      bigint,
    deadline              timestamptz,
    updated_at            timestamptz NOT NULL,
    id                    uuid        NOT NULL,
    opens_trading_account boolean     NOT NULL,
    video_planned         boolean     NOT NULL,
    status                text        NOT NULL,
    result                text,
    code                  text,
    reason_text           text,
    reason                bytea,
    name                  text,
    approval              text,
    pinned                json        NOT NULL,
    video                 text,
    open                  json        NOT NULL,
    PRIMARY KEY (id, until)
);
COMMENT ON TABLE trigger_history IS 'Earlier states of applications for entitlements. The columns of a trigger that never change are in triggers.';
COMMENT ON COLUMN trigger_history.since IS 'Sequence of the record that made this state.';
COMMENT ON COLUMN trigger_history.until IS 'Sequence of the record that ended it.';
COMMENT ON COLUMN trigger_history.id IS 'Id of the trigger.';
COMMENT ON COLUMN trigger_history.status IS 'pending, ongoing, blocked, finished, failed, canceled or terminated.';
COMMENT ON COLUMN trigger_history.result IS 'success or fail. NULL before the end.';
COMMENT ON COLUMN trigger_history.code IS 'Code of the reason of its end. NULL without one.';
COMMENT ON COLUMN trigger_history.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN trigger_history.reason IS 'Sealed with the owner''s key: the reason in an operator''s words. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN trigger_history.deadline IS 'When it expires, UTC. NULL for never.';
COMMENT ON COLUMN trigger_history.name IS 'Name of the entitlement when the trigger was started. NULL before.';
COMMENT ON COLUMN trigger_history.approval IS 'How it is approved, as it was when the trigger was started. NULL before.';
COMMENT ON COLUMN trigger_history.opens_trading_account IS 'Whether a trading account is opened, as it was when the trigger was started.';
COMMENT ON COLUMN trigger_history.pinned IS 'Requirements as they were when the trigger was started.';
COMMENT ON COLUMN trigger_history.video_planned IS 'Whether a video identification is planned.';
COMMENT ON COLUMN trigger_history.video IS 'Outcome of the video identification. NULL before.';
COMMENT ON COLUMN trigger_history.video_sequence IS 'Sequence of the record of that outcome. NULL before.';
COMMENT ON COLUMN trigger_history.open IS 'Requirements that were open.';
COMMENT ON COLUMN trigger_history.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN trigger_history.moved_sequence IS 'Sequence of the last record that changed the status. NULL if none did.';
COMMENT ON COLUMN trigger_history.started_sequence IS 'Sequence of the record that started it. NULL before.';

SELECT track_changes(name) FROM unnest(ARRAY['owner_history', 'document_history', 'trigger_history']) name;

INSERT INTO history_bounds SELECT 'onboarding', -1, COALESCE(max(sequence), -1), COALESCE(max(sequence), -1)
    FROM checkpoints WHERE journal = 'onboarding' AND partition = 0;
COMMENT ON COLUMN history_bounds.journal IS 'Journal: trading or onboarding.';
COMMENT ON COLUMN history_bounds.kept IS 'Sequence of the first record as of which versions are kept, or -1. Those that ended there or before were dropped for their age. Always -1 for onboarding.';

-- As before, and also for the onboarding journal.
DROP FUNCTION history_written(bigint, bigint);
-- +goose StatementBegin
CREATE FUNCTION history_written(of text, first bigint, last bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tables text[] := CASE of WHEN 'trading' THEN ARRAY['order_history', 'balance_history', 'position_history']
        ELSE ARRAY['owner_history', 'document_history', 'trigger_history'] END;
    name   text;
BEGIN
    UPDATE history_bounds SET written = last WHERE journal = of AND written = first - 1;
    IF FOUND THEN
        RETURN;
    END IF;
    UPDATE history_bounds SET built = first - 1, written = last WHERE journal = of;
    IF of = 'trading' THEN
        PERFORM history_partitions(first);
    END IF;
    FOREACH name IN ARRAY tables LOOP
        EXECUTE format('DELETE FROM %I WHERE until >= $1', name) USING first;
    END LOOP;
END $$;
-- +goose StatementEnd
