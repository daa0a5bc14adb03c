-- +goose Up

-- A sealed value is a bytea. It is NULL once its owner is erased.

CREATE TABLE owners (
    id               uuid        PRIMARY KEY,
    type             text        NOT NULL,
    tenant           text        NOT NULL,
    state            text        NOT NULL,
    external_id      bytea,
    fields           bytea,
    revision         bigint      NOT NULL,
    held             boolean     NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL
);
CREATE INDEX owners_by_type ON owners (type, state, created_sequence, created_ordinal);
CREATE INDEX owners_by_tenant ON owners (tenant, type, state, created_sequence, created_ordinal);
CREATE TRIGGER owners_added AFTER INSERT ON owners REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''owners/'' || type, concat_ws(''/'', ''owners'', type, state), concat_ws(''/'', ''owners'', type, state, tenant)]');
CREATE TRIGGER owners_changed AFTER UPDATE ON owners REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION count_rows('ARRAY[''owners/'' || type, concat_ws(''/'', ''owners'', type, state), concat_ws(''/'', ''owners'', type, state, tenant)]');
COMMENT ON TABLE owners IS 'Persons and corporates that are onboarded.';
COMMENT ON COLUMN owners.id IS 'Id of the person or corporate.';
COMMENT ON COLUMN owners.type IS 'person or corporate.';
COMMENT ON COLUMN owners.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN owners.state IS 'active, restricted or erased.';
COMMENT ON COLUMN owners.external_id IS 'HMAC of the tenant''s own id of the owner. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN owners.fields IS 'Sealed with the owner''s key: the data of the owner. NULL once the owner is erased.';
COMMENT ON COLUMN owners.revision IS 'Number of changes of the owner''s data.';
COMMENT ON COLUMN owners.held IS 'Whether a legal hold keeps the owner from being erased.';
COMMENT ON COLUMN owners.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN owners.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN owners.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN owners.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN owners.sequence IS 'Sequence of the last record that changed the row.';

CREATE TABLE erasures (
    owner_id           uuid        PRIMARY KEY,
    owner_type         text        NOT NULL,
    tenant             text        NOT NULL,
    requested_at       timestamptz NOT NULL,
    requested_by       text        NOT NULL,
    reason             bytea       NOT NULL,
    retain_until       timestamptz NOT NULL,
    erased_at          timestamptz,
    key_id             text,
    destroyed_at       timestamptz,
    requested_sequence bigint      NOT NULL,
    erased_sequence    bigint,
    destroyed_sequence bigint
);
COMMENT ON TABLE erasures IS 'Erasures of owners, from the request to the certificate that the key is destroyed.';
COMMENT ON COLUMN erasures.owner_id IS 'Person or corporate that is erased; owners.id.';
COMMENT ON COLUMN erasures.owner_type IS 'person or corporate.';
COMMENT ON COLUMN erasures.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN erasures.requested_at IS 'When the erasure was requested, UTC.';
COMMENT ON COLUMN erasures.requested_by IS 'User who requested the erasure.';
COMMENT ON COLUMN erasures.reason IS 'Sealed with the venue''s key: why the owner is erased.';
COMMENT ON COLUMN erasures.retain_until IS 'Before when the owner may not be erased, UTC.';
COMMENT ON COLUMN erasures.erased_at IS 'When the owner was erased, UTC. NULL before.';
COMMENT ON COLUMN erasures.key_id IS 'Id of the key that was destroyed. NULL before.';
COMMENT ON COLUMN erasures.destroyed_at IS 'When the key was destroyed, UTC. NULL before.';
COMMENT ON COLUMN erasures.requested_sequence IS 'Sequence of the record of the request.';
COMMENT ON COLUMN erasures.erased_sequence IS 'Sequence of the record that erased the owner. NULL before.';
COMMENT ON COLUMN erasures.destroyed_sequence IS 'Sequence of the record that confirms the destruction of the key. NULL before.';

CREATE TABLE holds (
    sequence   bigint      NOT NULL,
    ordinal    integer     NOT NULL,
    owner_id   uuid        NOT NULL,
    owner_type text        NOT NULL,
    held       boolean     NOT NULL,
    reason     bytea       NOT NULL,
    actor      text        NOT NULL,
    time       timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
CREATE INDEX holds_by_owner ON holds (owner_id, sequence, ordinal);
COMMENT ON TABLE holds IS 'Legal holds on owners and their releases, in the order in which they were made.';
COMMENT ON COLUMN holds.sequence IS 'Sequence of the record of the hold or release.';
COMMENT ON COLUMN holds.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN holds.owner_id IS 'Person or corporate that is held; owners.id.';
COMMENT ON COLUMN holds.owner_type IS 'person or corporate.';
COMMENT ON COLUMN holds.held IS 'true for a hold, false for a release.';
COMMENT ON COLUMN holds.reason IS 'Sealed with the venue''s key: why the owner is held or released.';
COMMENT ON COLUMN holds.actor IS 'User who set or released the hold.';
COMMENT ON COLUMN holds.time IS 'Time of the record, UTC.';

CREATE TABLE retentions (
    sequence bigint      NOT NULL,
    ordinal  integer     NOT NULL,
    seconds  bigint      NOT NULL,
    actor    text        NOT NULL,
    time     timestamptz NOT NULL,
    PRIMARY KEY (sequence, ordinal)
);
COMMENT ON TABLE retentions IS 'Retention periods that operators have set. The last one is in force.';
COMMENT ON COLUMN retentions.sequence IS 'Sequence of the record that set the period.';
COMMENT ON COLUMN retentions.ordinal IS 'Position of the row among those that its record made, from 0.';
COMMENT ON COLUMN retentions.seconds IS 'Seconds for which owners are kept after the end of their relationship.';
COMMENT ON COLUMN retentions.actor IS 'User who set the period.';
COMMENT ON COLUMN retentions.time IS 'Time of the record, UTC.';

-- The documents, responses and triggers of an owner are numbered as they come, from 1, and none is ever deleted. So the time for a
-- page of them does not grow with their number, and the last number is how many there are. A row that is made finds those of its
-- statement that came before it, so their order is that of the log.
-- +goose StatementBegin
CREATE FUNCTION place_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM documents WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TABLE documents (
    id               uuid        PRIMARY KEY,
    owner_id         uuid        NOT NULL,
    owner_type       text        NOT NULL,
    tenant           text        NOT NULL,
    category         text        NOT NULL,
    orientation      text        NOT NULL,
    name             bytea,
    source           text        NOT NULL,
    sha256           bytea       NOT NULL,
    size             bigint      NOT NULL,
    format           text        NOT NULL,
    valid_until      timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    created_sequence bigint      NOT NULL,
    created_ordinal  integer     NOT NULL,
    sequence         bigint      NOT NULL,
    place            integer     NOT NULL
);
CREATE UNIQUE INDEX documents_by_owner ON documents (owner_id, place);
CREATE TRIGGER documents_placed BEFORE INSERT ON documents FOR EACH ROW WHEN (NEW.place IS NULL) EXECUTE FUNCTION place_document();
COMMENT ON TABLE documents IS 'Documents of owners. The files are encrypted in the bucket.';
COMMENT ON COLUMN documents.id IS 'Id of the document.';
COMMENT ON COLUMN documents.owner_id IS 'Person or corporate that it belongs to; owners.id.';
COMMENT ON COLUMN documents.owner_type IS 'person or corporate.';
COMMENT ON COLUMN documents.tenant IS 'Tenant, which is the broker that registered the owner.';
COMMENT ON COLUMN documents.category IS 'Purpose of the document, such as id_document or poa.';
COMMENT ON COLUMN documents.orientation IS 'Side that the file shows, such as front or back.';
COMMENT ON COLUMN documents.name IS 'Sealed with the owner''s key: the name of the file. NULL without one, and once the owner is erased.';
COMMENT ON COLUMN documents.source IS 'Where the document comes from.';
COMMENT ON COLUMN documents.sha256 IS 'SHA-256 of the encrypted file.';
COMMENT ON COLUMN documents.size IS 'Size of the file before encryption, in bytes.';
COMMENT ON COLUMN documents.format IS 'Format of the file, such as image/png.';
COMMENT ON COLUMN documents.valid_until IS 'Until when the document is valid, UTC. NULL if it does not say.';
COMMENT ON COLUMN documents.created_at IS 'When it was created, UTC.';
COMMENT ON COLUMN documents.updated_at IS 'When it was last changed, UTC.';
COMMENT ON COLUMN documents.created_sequence IS 'Sequence of the record that made the row. With created_ordinal it orders lists.';
COMMENT ON COLUMN documents.created_ordinal IS 'Position of the row among those that its record made.';
COMMENT ON COLUMN documents.sequence IS 'Sequence of the last record that changed the row.';
COMMENT ON COLUMN documents.place IS 'Number of the document among those of its owner, from 1.';

SELECT track_changes(name) FROM unnest(ARRAY['documents', 'erasures', 'holds', 'owners', 'retentions']) name;
