-- +goose Up

CREATE TABLE webhooks (
    id                 uuid        PRIMARY KEY,
    tenant             text        NOT NULL,
    url                text        NOT NULL,
    include_all_events boolean     NOT NULL,
    event_types        text[]      NOT NULL,
    key_id             text        NOT NULL,
    public_key         bytea       NOT NULL,
    private_key        bytea       NOT NULL,
    next_key_id        text,
    next_public_key    bytea,
    next_private_key   bytea,
    next_key_from      timestamptz,
    disabled_at        timestamptz,
    created_at         timestamptz NOT NULL,
    created_sequence   bigint      NOT NULL,
    created_ordinal    integer     NOT NULL,
    sequence           bigint      NOT NULL
);
CREATE INDEX webhooks_by_tenant ON webhooks (tenant, created_sequence, created_ordinal);
COMMENT ON TABLE webhooks IS 'Registrations of tenants'' receivers that are not deleted.';
COMMENT ON COLUMN webhooks.id IS 'Id of the registration.';
COMMENT ON COLUMN webhooks.tenant IS 'Tenant whose receiver it is.';
COMMENT ON COLUMN webhooks.url IS 'Address of the receiver.';
COMMENT ON COLUMN webhooks.include_all_events IS 'Whether all types are delivered.';
COMMENT ON COLUMN webhooks.event_types IS 'Types that are delivered, unless all are.';
COMMENT ON COLUMN webhooks.key_id IS 'Id of the key that signs deliveries.';
COMMENT ON COLUMN webhooks.public_key IS 'Public part of that key.';
COMMENT ON COLUMN webhooks.private_key IS 'Sealed with the venue''s key: the private part of that key.';
COMMENT ON COLUMN webhooks.next_key_id IS 'Id of the key that follows in a rotation. NULL without one.';
COMMENT ON COLUMN webhooks.next_public_key IS 'Public part of the next key. NULL without one.';
COMMENT ON COLUMN webhooks.next_private_key IS 'Sealed with the venue''s key: the private part of the next key. NULL without one.';
COMMENT ON COLUMN webhooks.next_key_from IS 'From when the next key signs, UTC. NULL without one.';
COMMENT ON COLUMN webhooks.disabled_at IS 'When the registration was disabled, UTC. NULL while it is enabled.';
COMMENT ON COLUMN webhooks.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN webhooks.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN webhooks.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN webhooks.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE deliveries (
    id               uuid        PRIMARY KEY,
    webhook_id       uuid        NOT NULL,
    tenant           text        NOT NULL,
    notice_id        uuid        NOT NULL,
    type             text        NOT NULL,
    owner_id         uuid,
    owner_type       text,
    final            boolean     NOT NULL,
    status           text        NOT NULL,
    attempts         integer     NOT NULL,
    next_attempt_at  timestamptz,
    created_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL
) WITH (fillfactor = 75);
CREATE INDEX deliveries_by_status ON deliveries (status, created_sequence, created_ordinal);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, status, created_sequence, created_ordinal);
CREATE INDEX deliveries_by_owner ON deliveries (owner_id, created_sequence, created_ordinal) WHERE owner_id IS NOT NULL;
-- When a registration is due next, and which of its deliveries are due, however many wait for a later time.
CREATE INDEX deliveries_retrying ON deliveries (webhook_id, next_attempt_at) WHERE status = 'retrying';
CREATE TRIGGER deliveries_added AFTER INSERT ON deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]',
        'status, webhook_id');
CREATE TRIGGER deliveries_changed AFTER UPDATE ON deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]',
        'status, webhook_id');
COMMENT ON TABLE deliveries IS 'Deliveries of notices to webhooks.';
COMMENT ON COLUMN deliveries.id IS 'Id of the delivery.';
COMMENT ON COLUMN deliveries.webhook_id IS 'Registration that it goes to.';
COMMENT ON COLUMN deliveries.tenant IS 'Tenant whose receiver it goes to.';
COMMENT ON COLUMN deliveries.notice_id IS 'Notice that it delivers; notices.id.';
COMMENT ON COLUMN deliveries.type IS 'Type of the notice.';
COMMENT ON COLUMN deliveries.owner_id IS 'Person or corporate that the notice is about. NULL for a test.';
COMMENT ON COLUMN deliveries.owner_type IS 'person or corporate. NULL for a test.';
COMMENT ON COLUMN deliveries.final IS 'Whether it tells of the end that the owner''s erasure caused.';
COMMENT ON COLUMN deliveries.status IS 'pending, retrying, delivered, dead or canceled.';
COMMENT ON COLUMN deliveries.attempts IS 'Number of attempts made.';
COMMENT ON COLUMN deliveries.next_attempt_at IS 'When the next attempt is due, UTC. NULL unless retrying.';
COMMENT ON COLUMN deliveries.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN deliveries.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN deliveries.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN deliveries.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE delivery_attempts (
    delivery_id uuid        NOT NULL,
    number      integer     NOT NULL,
    started_at  timestamptz NOT NULL,
    duration_ms bigint      NOT NULL,
    status_code integer,
    error       text,
    response    bytea,
    status      text        NOT NULL,
    time        timestamptz NOT NULL,
    sequence    bigint      NOT NULL,
    PRIMARY KEY (delivery_id, number)
);
COMMENT ON TABLE delivery_attempts IS 'Attempts to deliver, with their outcomes.';
COMMENT ON COLUMN delivery_attempts.delivery_id IS 'Delivery that was attempted.';
COMMENT ON COLUMN delivery_attempts.number IS 'Number of the attempt, from 1.';
COMMENT ON COLUMN delivery_attempts.started_at IS 'When the attempt was started, UTC.';
COMMENT ON COLUMN delivery_attempts.duration_ms IS 'How long the attempt took, in milliseconds.';
COMMENT ON COLUMN delivery_attempts.status_code IS 'HTTP status of the answer. NULL if there was none.';
COMMENT ON COLUMN delivery_attempts.error IS 'Why there was no answer. NULL if there was one.';
COMMENT ON COLUMN delivery_attempts.response IS 'Sealed with the owner''s key: the beginning of the answer''s body. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN delivery_attempts.status IS 'Status of the delivery after the attempt.';
COMMENT ON COLUMN delivery_attempts.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN delivery_attempts.sequence IS 'Sequence of the record of the attempt.';

CREATE TABLE notices (
    sequence               bigint      NOT NULL,
    ordinal                integer     NOT NULL,
    id                     uuid        NOT NULL,
    type                   text        NOT NULL,
    tenant                 text        NOT NULL,
    owner_id               uuid,
    owner_type             text,
    form                   integer     NOT NULL,
    number                 bigint,
    time                   timestamptz NOT NULL,
    entitlement_trigger_id uuid,
    entitlement_id         uuid,
    questionnaire_ids      uuid[]      NOT NULL,
    code                   text,
    reason_text            text,
    reason                 bytea,
    document_id            uuid,
    document_category      text,
    document_valid_until   timestamptz,
    PRIMARY KEY (sequence, ordinal)
);
CREATE UNIQUE INDEX notices_by_id ON notices (id);
CREATE INDEX notices_by_tenant ON notices (tenant, sequence, ordinal);
CREATE INDEX notices_by_type ON notices (tenant, type, sequence, ordinal);
CREATE INDEX notices_by_owner ON notices (owner_id, sequence, ordinal) WHERE owner_id IS NOT NULL;
COMMENT ON TABLE notices IS 'What receivers are told, which is also the feed of each tenant.';
COMMENT ON COLUMN notices.sequence IS 'Sequence of the record that caused the notice.';
COMMENT ON COLUMN notices.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN notices.id IS 'Id of the notice.';
COMMENT ON COLUMN notices.type IS 'Type of the notice, such as entitlementCompleted.';
COMMENT ON COLUMN notices.tenant IS 'Tenant who is told.';
COMMENT ON COLUMN notices.owner_id IS 'Person or corporate that it is about. NULL for a test.';
COMMENT ON COLUMN notices.owner_type IS 'person or corporate. NULL for a test.';
COMMENT ON COLUMN notices.form IS 'Version of the body that is made of the notice.';
COMMENT ON COLUMN notices.number IS 'Number of the notice among those about its owner, from 1. NULL for a test.';
COMMENT ON COLUMN notices.time IS 'Time of the record, UTC.';
COMMENT ON COLUMN notices.entitlement_trigger_id IS 'Trigger that it is about. NULL without one.';
COMMENT ON COLUMN notices.entitlement_id IS 'Entitlement that it is about. NULL without one.';
COMMENT ON COLUMN notices.questionnaire_ids IS 'Questionnaires that it is about.';
COMMENT ON COLUMN notices.code IS 'Code of the reason. NULL without one.';
COMMENT ON COLUMN notices.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN notices.reason IS 'Sealed with the owner''s key: the reason in an operator''s words. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN notices.document_id IS 'Document that it is about. NULL without one.';
COMMENT ON COLUMN notices.document_category IS 'Kind of that document. NULL without one.';
COMMENT ON COLUMN notices.document_valid_until IS 'Until when that document is valid, UTC. NULL without one.';

SELECT track_changes(name) FROM unnest(ARRAY['deliveries', 'delivery_attempts', 'notices', 'webhooks']) name;
