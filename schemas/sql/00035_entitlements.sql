-- +goose Up

CREATE TABLE questionnaires (
    id               uuid        PRIMARY KEY,
    name             text        NOT NULL,
    description      text        NOT NULL,
    owner_type       text        NOT NULL,
    owner_type_id    uuid,
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
COMMENT ON TABLE questionnaires IS 'Questionnaires that owners answer.';
COMMENT ON COLUMN questionnaires.id IS 'Id of the questionnaire.';
COMMENT ON COLUMN questionnaires.name IS 'Name of the questionnaire.';
COMMENT ON COLUMN questionnaires.description IS 'Description for those who choose it.';
COMMENT ON COLUMN questionnaires.owner_type IS 'Type of owners who answer it: person or corporate.';
COMMENT ON COLUMN questionnaires.owner_type_id IS 'The one owner whom it is for. NULL for all of the type.';
COMMENT ON COLUMN questionnaires.is_published IS 'Whether a version is published.';
COMMENT ON COLUMN questionnaires.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN questionnaires.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN questionnaires.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN questionnaires.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE questionnaire_versions (
    questionnaire_id uuid        NOT NULL,
    version_number   integer     NOT NULL,
    id               uuid        NOT NULL,
    is_published     boolean     NOT NULL,
    questions        json        NOT NULL,
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (questionnaire_id, version_number)
);
COMMENT ON TABLE questionnaire_versions IS 'Versions of questionnaires with their questions.';
COMMENT ON COLUMN questionnaire_versions.questionnaire_id IS 'Questionnaire that it is a version of.';
COMMENT ON COLUMN questionnaire_versions.version_number IS 'Number of the version, from 1.';
COMMENT ON COLUMN questionnaire_versions.id IS 'Id of the version.';
COMMENT ON COLUMN questionnaire_versions.is_published IS 'Whether the version is published.';
COMMENT ON COLUMN questionnaire_versions.questions IS 'The questions, as the journal has them.';
COMMENT ON COLUMN questionnaire_versions.created_at IS 'When it was created, UTC.';

-- See place_document.
-- +goose StatementBegin
CREATE FUNCTION place_response() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM responses WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TABLE responses (
    id                       uuid        PRIMARY KEY,
    questionnaire_id         uuid        NOT NULL,
    questionnaire_version_id uuid        NOT NULL,
    version_number           integer     NOT NULL,
    owner_id                 uuid        NOT NULL,
    owner_type               text        NOT NULL,
    tenant                   text        NOT NULL,
    document_ids             uuid[]      NOT NULL,
    answers                  bytea,
    created_at               timestamptz NOT NULL,
    sequence                 bigint      NOT NULL,
    ordinal                  integer     NOT NULL,
    place                    integer     NOT NULL
);
CREATE UNIQUE INDEX responses_by_owner ON responses (owner_id, place);
CREATE TRIGGER responses_placed BEFORE INSERT ON responses FOR EACH ROW WHEN (NEW.place IS NULL) EXECUTE FUNCTION place_response();
COMMENT ON TABLE responses IS 'Answers of owners to questionnaires.';
COMMENT ON COLUMN responses.id IS 'Id of the response.';
COMMENT ON COLUMN responses.questionnaire_id IS 'Questionnaire that was answered.';
COMMENT ON COLUMN responses.questionnaire_version_id IS 'Version that was answered.';
COMMENT ON COLUMN responses.version_number IS 'Number of that version.';
COMMENT ON COLUMN responses.owner_id IS 'Person or corporate that answered; owners.id.';
COMMENT ON COLUMN responses.owner_type IS 'person or corporate.';
COMMENT ON COLUMN responses.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN responses.document_ids IS 'Documents that the answers refer to.';
COMMENT ON COLUMN responses.answers IS 'Sealed with the owner''s key: the answers. NULL once the owner is erased.';
COMMENT ON COLUMN responses.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN responses.sequence IS 'Sequence of the record of the response.';
COMMENT ON COLUMN responses.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN responses.place IS 'Number of the response among those of its owner, from 1.';

CREATE TABLE entitlements (
    id                    uuid        PRIMARY KEY,
    name                  text        NOT NULL,
    description           text        NOT NULL,
    owner_type            text        NOT NULL,
    questionnaires        json        NOT NULL,
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
COMMENT ON TABLE entitlements IS 'What owners can become entitled to, and what is required for it.';
COMMENT ON COLUMN entitlements.id IS 'Id of the entitlement.';
COMMENT ON COLUMN entitlements.name IS 'Name of the entitlement.';
COMMENT ON COLUMN entitlements.description IS 'Description for those who choose it.';
COMMENT ON COLUMN entitlements.owner_type IS 'Type of owners who can have it: person or corporate.';
COMMENT ON COLUMN entitlements.questionnaires IS 'Questionnaires that are required, as the journal has them.';
COMMENT ON COLUMN entitlements.approval IS 'How a trigger is approved: automatic or manual.';
COMMENT ON COLUMN entitlements.video_identification IS 'Whether a video identification is required.';
COMMENT ON COLUMN entitlements.deadline_seconds IS 'Seconds after which an unfinished trigger expires. 0 for never.';
COMMENT ON COLUMN entitlements.opens_trading_account IS 'Whether a trading account is opened when it is granted.';
COMMENT ON COLUMN entitlements.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN entitlements.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN entitlements.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN entitlements.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN entitlements.sequence IS 'Sequence of the last record that changed the row.';

-- See place_document.
-- +goose StatementBegin
CREATE FUNCTION place_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM triggers WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
-- +goose StatementEnd
-- The lists of triggers are named by status, tenant and entitlement, each of which may be empty.
CREATE TABLE triggers (
    id                    uuid        PRIMARY KEY,
    entitlement_id        uuid        NOT NULL,
    owner_id              uuid        NOT NULL,
    owner_type            text        NOT NULL,
    tenant                text        NOT NULL,
    status                text        NOT NULL,
    result                text,
    code                  text,
    reason_text           text,
    reason                bytea,
    deadline              timestamptz,
    name                  text,
    approval              text,
    opens_trading_account boolean     NOT NULL,
    pinned                json        NOT NULL,
    video_planned         boolean     NOT NULL,
    video                 text,
    video_sequence        bigint,
    open                  json        NOT NULL,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    created_sequence      bigint      NOT NULL,
    created_ordinal       integer     NOT NULL,
    moved_sequence        bigint,
    started_sequence      bigint,
    sequence              bigint      NOT NULL,
    place                 integer     NOT NULL
);
CREATE UNIQUE INDEX triggers_by_owner ON triggers (owner_id, place);
CREATE INDEX triggers_by_status ON triggers (status, created_sequence, created_ordinal);
CREATE INDEX triggers_by_tenant ON triggers (tenant, status, created_sequence, created_ordinal);
CREATE INDEX triggers_open ON triggers (owner_id, place) WHERE status IN ('pending', 'ongoing', 'blocked');
CREATE INDEX triggers_by_entitlement ON triggers (entitlement_id, status, created_sequence, created_ordinal);
CREATE INDEX triggers_by_tenant_and_entitlement ON triggers (tenant, entitlement_id, status, created_sequence, created_ordinal);
CREATE TRIGGER triggers_added AFTER INSERT ON triggers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant),
        ''triggers///'' || entitlement_id, concat_ws(''/'', ''triggers'', status, '''', entitlement_id), concat_ws(''/'', ''triggers//'' || tenant, entitlement_id),
        concat_ws(''/'', ''triggers'', status, tenant, entitlement_id)]');
CREATE TRIGGER triggers_changed AFTER UPDATE ON triggers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''triggers'', ''triggers/'' || status, ''triggers//'' || tenant, concat_ws(''/'', ''triggers'', status, tenant),
        ''triggers///'' || entitlement_id, concat_ws(''/'', ''triggers'', status, '''', entitlement_id), concat_ws(''/'', ''triggers//'' || tenant, entitlement_id),
        concat_ws(''/'', ''triggers'', status, tenant, entitlement_id)]');
CREATE TRIGGER triggers_placed BEFORE INSERT ON triggers FOR EACH ROW WHEN (NEW.place IS NULL) EXECUTE FUNCTION place_trigger();
COMMENT ON TABLE triggers IS 'Applications of owners for entitlements, as the last record left them.';
COMMENT ON COLUMN triggers.id IS 'Id of the trigger.';
COMMENT ON COLUMN triggers.entitlement_id IS 'Entitlement that is applied for.';
COMMENT ON COLUMN triggers.owner_id IS 'Person or corporate that applies; owners.id.';
COMMENT ON COLUMN triggers.owner_type IS 'person or corporate.';
COMMENT ON COLUMN triggers.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN triggers.status IS 'pending, ongoing, blocked, finished, failed, canceled or terminated.';
COMMENT ON COLUMN triggers.result IS 'success or fail. NULL before the end.';
COMMENT ON COLUMN triggers.code IS 'Code of the reason of its end. NULL without one.';
COMMENT ON COLUMN triggers.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN triggers.reason IS 'Sealed with the owner''s key: the reason in an operator''s words. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN triggers.deadline IS 'When it expires, UTC. NULL for never.';
COMMENT ON COLUMN triggers.name IS 'Name of the entitlement when the trigger was started. NULL before.';
COMMENT ON COLUMN triggers.approval IS 'How it is approved, as it was when the trigger was started. NULL before.';
COMMENT ON COLUMN triggers.opens_trading_account IS 'Whether a trading account is opened, as it was when the trigger was started.';
COMMENT ON COLUMN triggers.pinned IS 'Requirements as they were when the trigger was started.';
COMMENT ON COLUMN triggers.video_planned IS 'Whether a video identification is planned.';
COMMENT ON COLUMN triggers.video IS 'Outcome of the video identification. NULL before.';
COMMENT ON COLUMN triggers.video_sequence IS 'Sequence of the record of that outcome. NULL before.';
COMMENT ON COLUMN triggers.open IS 'Requirements that are still open.';
COMMENT ON COLUMN triggers.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN triggers.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN triggers.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN triggers.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN triggers.moved_sequence IS 'Sequence of the last record that changed the status. NULL if none did.';
COMMENT ON COLUMN triggers.started_sequence IS 'Sequence of the record that started it. NULL before.';
COMMENT ON COLUMN triggers.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN triggers.place IS 'Number of the trigger among those of its owner, from 1.';

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
    reason             bytea,
    internal_reason    bytea,
    request_id         uuid,
    questionnaire_ids  uuid[]      NOT NULL,
    outcome            text,
    external_reference bytea,
    open               json        NOT NULL,
    notice_id          uuid,
    notice_type        text,
    time               timestamptz NOT NULL,
    PRIMARY KEY (trigger_id, sequence, ordinal)
);
CREATE INDEX trigger_events_by_request ON trigger_events (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX trigger_events_by_owner ON trigger_events (owner_id, sequence, ordinal);
COMMENT ON TABLE trigger_events IS 'Timeline of each trigger.';
COMMENT ON COLUMN trigger_events.trigger_id IS 'Trigger that it happened to.';
COMMENT ON COLUMN trigger_events.sequence IS 'Sequence of the record of the event.';
COMMENT ON COLUMN trigger_events.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN trigger_events.owner_id IS 'Person or corporate that it belongs to; owners.id.';
COMMENT ON COLUMN trigger_events.owner_type IS 'person or corporate.';
COMMENT ON COLUMN trigger_events.type IS 'Kind of event.';
COMMENT ON COLUMN trigger_events.action IS 'What was done. NULL unless somebody acted.';
COMMENT ON COLUMN trigger_events.status IS 'Status after the event. NULL if it did not change.';
COMMENT ON COLUMN trigger_events.result IS 'Result after the event. NULL if there is none.';
COMMENT ON COLUMN trigger_events.actor_kind IS 'Kind of actor, such as user or system.';
COMMENT ON COLUMN trigger_events.actor IS 'Who acted.';
COMMENT ON COLUMN trigger_events.code IS 'Code of the reason. NULL without one.';
COMMENT ON COLUMN trigger_events.reason_text IS 'Reason in the venue''s own words. NULL without one.';
COMMENT ON COLUMN trigger_events.reason IS 'Sealed with the owner''s key: the reason for the tenant. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN trigger_events.internal_reason IS 'Sealed with the owner''s key: the reason for the venue''s own staff. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN trigger_events.request_id IS 'Request for information that it is about. NULL for other events.';
COMMENT ON COLUMN trigger_events.questionnaire_ids IS 'Questionnaires that it is about.';
COMMENT ON COLUMN trigger_events.outcome IS 'Outcome of a video identification. NULL for other events.';
COMMENT ON COLUMN trigger_events.external_reference IS 'Sealed with the owner''s key: the id at the identification provider. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN trigger_events.open IS 'Requirements that are open after the event.';
COMMENT ON COLUMN trigger_events.notice_id IS 'Notice that tells of the event. NULL without one.';
COMMENT ON COLUMN trigger_events.notice_type IS 'Type of that notice. NULL without one.';
COMMENT ON COLUMN trigger_events.time IS 'Time of the record, UTC.';

SELECT track_changes(name) FROM unnest(ARRAY['entitlements', 'questionnaire_versions', 'questionnaires', 'responses', 'trigger_events', 'triggers']) name;
