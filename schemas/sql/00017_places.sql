-- +goose Up

-- An owner's documents, responses and triggers are numbered as they come, from 1, and none is ever deleted. So the way to a page
-- of them takes no longer the more there are, and the last number is how many there are.
DROP INDEX documents_by_owner;
DROP INDEX responses_by_owner;
DROP INDEX triggers_by_owner;
ALTER TABLE documents ADD COLUMN place integer;
ALTER TABLE responses ADD COLUMN place integer;
ALTER TABLE triggers ADD COLUMN place integer;
ALTER TABLE triggers DISABLE TRIGGER triggers_changed; -- which counts what does not change here
UPDATE documents t SET place = n.place FROM
    (SELECT id, row_number() OVER (PARTITION BY owner_id ORDER BY created_sequence, created_ordinal) AS place FROM documents) n WHERE n.id = t.id;
UPDATE responses t SET place = n.place FROM
    (SELECT id, row_number() OVER (PARTITION BY owner_id ORDER BY sequence, ordinal) AS place FROM responses) n WHERE n.id = t.id;
UPDATE triggers t SET place = n.place FROM
    (SELECT id, row_number() OVER (PARTITION BY owner_id ORDER BY created_sequence, created_ordinal) AS place FROM triggers) n WHERE n.id = t.id;
ALTER TABLE triggers ENABLE TRIGGER triggers_changed;
ALTER TABLE documents ALTER COLUMN place SET NOT NULL;
ALTER TABLE responses ALTER COLUMN place SET NOT NULL;
ALTER TABLE triggers ALTER COLUMN place SET NOT NULL;

CREATE UNIQUE INDEX documents_by_owner ON documents (owner_id, place);
CREATE UNIQUE INDEX responses_by_owner ON responses (owner_id, place);
CREATE UNIQUE INDEX triggers_by_owner ON triggers (owner_id, place);
CREATE INDEX triggers_open ON triggers (owner_id, place) WHERE status IN ('pending', 'ongoing', 'blocked');

-- A row that is made finds those of its statement that came before it, so their order is that of the log.
-- +goose StatementBegin
CREATE FUNCTION place_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM documents WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
CREATE FUNCTION place_response() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM responses WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
CREATE FUNCTION place_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.place := 1 + COALESCE((SELECT place FROM triggers WHERE owner_id = NEW.owner_id ORDER BY place DESC LIMIT 1), 0);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER documents_placed BEFORE INSERT ON documents FOR EACH ROW WHEN (NEW.place IS NULL) EXECUTE FUNCTION place_document();
CREATE TRIGGER responses_placed BEFORE INSERT ON responses FOR EACH ROW WHEN (NEW.place IS NULL) EXECUTE FUNCTION place_response();
CREATE TRIGGER triggers_placed BEFORE INSERT ON triggers FOR EACH ROW WHEN (NEW.place IS NULL) EXECUTE FUNCTION place_trigger();

-- +goose Down
DROP TRIGGER triggers_placed ON triggers;
DROP TRIGGER responses_placed ON responses;
DROP TRIGGER documents_placed ON documents;
DROP FUNCTION place_trigger;
DROP FUNCTION place_response;
DROP FUNCTION place_document;
DROP INDEX triggers_open;
DROP INDEX triggers_by_owner;
DROP INDEX responses_by_owner;
DROP INDEX documents_by_owner;
CREATE INDEX triggers_by_owner ON triggers (owner_id, created_sequence, created_ordinal);
CREATE INDEX responses_by_owner ON responses (owner_id, sequence, ordinal);
CREATE INDEX documents_by_owner ON documents (owner_id, created_sequence, created_ordinal);
ALTER TABLE triggers DROP COLUMN place;
ALTER TABLE responses DROP COLUMN place;
ALTER TABLE documents DROP COLUMN place;
