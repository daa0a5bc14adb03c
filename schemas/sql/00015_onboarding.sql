-- +goose Up

-- What is sealed is a bytea. It is NULL once its owner is erased.

-- Persons and corporates.
CREATE TABLE owners (
    id               uuid        PRIMARY KEY,
    type             text        NOT NULL,
    tenant           text        NOT NULL,
    state            text        NOT NULL,
    external_id      bytea,                -- an HMAC
    fields           bytea,                -- sealed
    revision         bigint      NOT NULL,
    held             boolean     NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL  -- of the record that changed it last
);
CREATE INDEX owners_by_type ON owners (type, state, created_sequence, created_ordinal);
CREATE INDEX owners_by_tenant ON owners (tenant, type, state, created_sequence, created_ordinal);
CREATE TRIGGER owners_added AFTER INSERT ON owners REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''owners/'' || type, concat_ws(''/'', ''owners'', type, state), concat_ws(''/'', ''owners'', type, state, tenant)]');
CREATE TRIGGER owners_changed AFTER UPDATE ON owners REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''owners/'' || type, concat_ws(''/'', ''owners'', type, state), concat_ws(''/'', ''owners'', type, state, tenant)]');

-- What is known of the ends of owners: their certificates.
CREATE TABLE erasures (
    owner_id           uuid        PRIMARY KEY,
    owner_type         text        NOT NULL,
    tenant             text        NOT NULL,
    requested_at       timestamptz NOT NULL,
    requested_by       text        NOT NULL,
    reason             bytea       NOT NULL, -- sealed with the venue's key: it outlives the owner's
    retain_until       timestamptz NOT NULL,
    erased_at          timestamptz,
    key_id             text,                 -- of the key that was destroyed
    destroyed_at       timestamptz,
    requested_sequence bigint      NOT NULL,
    erased_sequence    bigint,
    destroyed_sequence bigint
);

-- Every hold and release.
CREATE TABLE holds (
    sequence   bigint      NOT NULL,
    ordinal    integer     NOT NULL,
    owner_id   uuid        NOT NULL,
    owner_type text        NOT NULL,
    held       boolean     NOT NULL,
    reason     bytea       NOT NULL, -- sealed with the venue's key
    actor      text        NOT NULL,
    time       timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX holds_by_owner ON holds (owner_id, sequence, ordinal);

-- Every retention that was set. The last one holds.
CREATE TABLE retentions (
    sequence bigint      NOT NULL,
    ordinal  integer     NOT NULL,
    seconds  bigint      NOT NULL,
    actor    text        NOT NULL,
    time     timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);

CREATE TABLE documents (
    id               uuid        PRIMARY KEY,
    owner_id         uuid        NOT NULL,
    owner_type       text        NOT NULL,
    tenant           text        NOT NULL,
    category         text        NOT NULL,
    orientation      text        NOT NULL,
    name             bytea,                -- sealed
    source           text        NOT NULL,
    sha256           bytea       NOT NULL, -- of the sealed file
    size             bigint      NOT NULL, -- of the file in clear
    format           text        NOT NULL,
    valid_until      timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL
);
CREATE INDEX documents_by_owner ON documents (owner_id, created_sequence, created_ordinal);

CREATE TABLE questionnaires (
    id               uuid        PRIMARY KEY,
    name             text        NOT NULL,
    description      text        NOT NULL,
    owner_type       text        NOT NULL,
    owner_type_id    uuid,                 -- NULL: for all of the type
    is_published     boolean     NOT NULL,
    created_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL
);
CREATE INDEX questionnaires_all ON questionnaires (owner_type, is_published, created_sequence, created_ordinal);
CREATE INDEX questionnaires_generic ON questionnaires (owner_type, created_sequence, created_ordinal) WHERE is_published AND owner_type_id IS NULL;
CREATE INDEX questionnaires_of_owner ON questionnaires (owner_type_id, created_sequence, created_ordinal) WHERE is_published AND owner_type_id IS NOT NULL;
CREATE TRIGGER questionnaires_added AFTER INSERT ON questionnaires REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''questionnaires/'' || owner_type,
        CASE WHEN is_published THEN concat_ws(''/'', ''questionnaires'', COALESCE(owner_type_id::text, ''generic/'' || owner_type)) END]');
CREATE TRIGGER questionnaires_changed AFTER UPDATE ON questionnaires REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''questionnaires/'' || owner_type,
        CASE WHEN is_published THEN concat_ws(''/'', ''questionnaires'', COALESCE(owner_type_id::text, ''generic/'' || owner_type)) END]');

CREATE TABLE questionnaire_versions (
    questionnaire_id uuid        NOT NULL,
    version_number   integer     NOT NULL,
    id               uuid        NOT NULL,
    is_published     boolean     NOT NULL,
    questions        json        NOT NULL, -- as in the journal
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (questionnaire_id, version_number)
);

CREATE TABLE responses (
    id                       uuid        PRIMARY KEY,
    questionnaire_id         uuid        NOT NULL,
    questionnaire_version_id uuid        NOT NULL,
    version_number           integer     NOT NULL,
    owner_id                 uuid        NOT NULL,
    owner_type               text        NOT NULL,
    tenant                   text        NOT NULL,
    document_ids             uuid[]      NOT NULL,
    answers                  bytea,                -- sealed
    created_at               timestamptz NOT NULL,
    sequence                 bigint      NOT NULL,
    ordinal                  integer     NOT NULL
);
CREATE INDEX responses_by_owner ON responses (owner_id, sequence, ordinal);

CREATE TABLE entitlements (
    id                    uuid        PRIMARY KEY,
    name                  text        NOT NULL,
    description           text        NOT NULL,
    owner_type            text        NOT NULL,
    questionnaires        json        NOT NULL, -- as in the journal
    approval              text        NOT NULL,
    video_identification  boolean     NOT NULL,
    deadline_seconds      bigint      NOT NULL,
    opens_trading_account boolean     NOT NULL,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    created_sequence      bigint      NOT NULL,
    created_ordinal       integer     NOT NULL,
    sequence              bigint      NOT NULL
);
CREATE INDEX entitlements_by_type ON entitlements (owner_type, created_sequence, created_ordinal);

CREATE TABLE triggers (
    id                    uuid        PRIMARY KEY,
    entitlement_id        uuid        NOT NULL,
    owner_id              uuid        NOT NULL,
    owner_type            text        NOT NULL,
    tenant                text        NOT NULL,
    status                text        NOT NULL,
    result                text,
    code                  text,                 -- of its end,
    reason_text           text,                 -- of which the reason is the venue's own sentence,
    reason                bytea,                -- or an operator's, sealed
    deadline              timestamptz,
    name                  text,                 -- from here to video_planned: what was pinned at its start
    approval              text,
    opens_trading_account boolean     NOT NULL,
    pinned                json        NOT NULL,
    video_planned         boolean     NOT NULL,
    video                 text,
    video_sequence        bigint,
    open                  json        NOT NULL, -- the requirements that are open
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    created_sequence      bigint      NOT NULL,
    created_ordinal       integer     NOT NULL,
    moved_sequence        bigint,               -- of the record that moved it last
    started_sequence      bigint,
    sequence              bigint      NOT NULL
);
CREATE INDEX triggers_by_owner ON triggers (owner_id, created_sequence, created_ordinal);
CREATE INDEX triggers_by_status ON triggers (status, created_sequence, created_ordinal);
CREATE INDEX triggers_by_tenant ON triggers (tenant, status, created_sequence, created_ordinal);
CREATE TRIGGER triggers_added AFTER INSERT ON triggers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant)]');
CREATE TRIGGER triggers_changed AFTER UPDATE ON triggers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant)]');

-- The timelines of triggers.
CREATE TABLE trigger_events (
    trigger_id         uuid        NOT NULL,
    sequence           bigint      NOT NULL,
    ordinal            integer     NOT NULL,
    owner_id           uuid        NOT NULL,
    owner_type         text        NOT NULL,
    type               text        NOT NULL,
    action             text,
    status             text,
    result             text,
    actor_kind         text        NOT NULL,
    actor              text        NOT NULL,
    code               text,
    reason_text        text,
    reason             bytea,      -- sealed
    internal_reason    bytea,      -- sealed
    request_id         uuid,       -- of a request for information
    questionnaire_ids  uuid[]      NOT NULL,
    outcome            text,       -- of a video identification
    external_reference bytea,      -- sealed
    open               json        NOT NULL,
    notice_id          uuid,
    notice_type        text,
    time               timestamptz NOT NULL,
    PRIMARY KEY (trigger_id, sequence, ordinal)
);
CREATE INDEX trigger_events_by_request ON trigger_events (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX trigger_events_by_owner ON trigger_events (owner_id, sequence, ordinal);

-- Registrations that are not deleted.
CREATE TABLE webhooks (
    id                 uuid        PRIMARY KEY,
    tenant             text        NOT NULL,
    url                text        NOT NULL,
    include_all_events boolean     NOT NULL,
    event_types        text[]      NOT NULL,
    key_id             text        NOT NULL,
    public_key         bytea       NOT NULL,
    private_key        bytea       NOT NULL, -- sealed with the venue's key
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

CREATE TABLE deliveries (
    id               uuid        PRIMARY KEY,
    webhook_id       uuid        NOT NULL,
    tenant           text        NOT NULL,
    notice_id        uuid        NOT NULL,
    type             text        NOT NULL, -- of the notice
    owner_id         uuid,                 -- NULL of a test
    owner_type       text,
    final            boolean     NOT NULL, -- it tells of the end that the owner's erasure caused
    status           text        NOT NULL,
    attempts         integer     NOT NULL,
    next_attempt_at  timestamptz,          -- of one that is retried
    created_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL
) WITH (fillfactor = 75);
CREATE INDEX deliveries_by_status ON deliveries (status, created_sequence, created_ordinal);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, status, created_sequence, created_ordinal);
CREATE INDEX deliveries_by_owner ON deliveries (owner_id, created_sequence, created_ordinal) WHERE owner_id IS NOT NULL;
CREATE INDEX deliveries_open ON deliveries (webhook_id, owner_id, created_sequence, created_ordinal) WHERE status IN ('pending', 'retrying');
CREATE TRIGGER deliveries_added AFTER INSERT ON deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]');
CREATE TRIGGER deliveries_changed AFTER UPDATE ON deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''deliveries'', ''deliveries/'' || status, ''deliveries//'' || webhook_id, concat_ws(''/'', ''deliveries'', status, webhook_id)]');

-- The receipts of attempts.
CREATE TABLE delivery_attempts (
    delivery_id uuid        NOT NULL,
    number      integer     NOT NULL,
    started_at  timestamptz NOT NULL,
    duration_ms bigint      NOT NULL,
    status_code integer,              -- NULL: no answer came
    error       text,
    response    bytea,                -- sealed
    status      text        NOT NULL, -- of the delivery after it
    time        timestamptz NOT NULL,
    sequence    bigint      NOT NULL,
    PRIMARY KEY (delivery_id, number)
);

-- What receivers are told, which is also the feed of each tenant.
CREATE TABLE notices (
    sequence                bigint      NOT NULL,
    ordinal                 integer     NOT NULL,
    id                      uuid        NOT NULL,
    type                    text        NOT NULL,
    tenant                  text        NOT NULL,
    owner_id                uuid,                 -- NULL of a test
    owner_type              text,
    form                    integer     NOT NULL, -- of the body that is made of it
    number                  bigint,               -- among the owner's, from 1
    time                    timestamptz NOT NULL,
    entitlement_trigger_id  uuid,
    entitlement_id          uuid,
    questionnaire_ids       uuid[]      NOT NULL,
    code                    text,
    reason_text             text,
    reason                  bytea,                -- sealed
    document_id             uuid,
    document_category       text,
    document_valid_until    timestamptz,
    PRIMARY KEY (sequence, ordinal)
);
CREATE UNIQUE INDEX notices_by_id ON notices (id);
CREATE INDEX notices_by_tenant ON notices (tenant, sequence, ordinal);
CREATE INDEX notices_by_type ON notices (tenant, type, sequence, ordinal);
CREATE INDEX notices_by_owner ON notices (owner_id, sequence, ordinal) WHERE owner_id IS NOT NULL;

-- What was applied before these tables were there is applied again.
DELETE FROM checkpoints WHERE journal = 'onboarding';
DELETE FROM anchors WHERE journal = 'onboarding';
DELETE FROM records WHERE journal = 'onboarding';

-- +goose Down
DROP TABLE notices;
DROP TABLE delivery_attempts;
DROP TABLE deliveries;
DROP TABLE webhooks;
DROP TABLE trigger_events;
DROP TABLE triggers;
DROP TABLE entitlements;
DROP TABLE responses;
DROP TABLE questionnaire_versions;
DROP TABLE questionnaires;
DROP TABLE documents;
DROP TABLE retentions;
DROP TABLE holds;
DROP TABLE erasures;
DROP TABLE owners;
