-- +goose Up

-- offset is a reserved word, which every query would have to quote.
ALTER TABLE checkpoints RENAME COLUMN "offset" TO log_offset;
ALTER TABLE anchors RENAME COLUMN "offset" TO log_offset;
ALTER TABLE records RENAME COLUMN "offset" TO log_offset;

-- A rebuild finds rows by their primary key, and a publication identifies deleted rows by it. The projector never writes a
-- posting twice; what somebody else may have doubled would keep the key from being made.
DELETE FROM venue_postings a USING venue_postings b WHERE a.sequence = b.sequence AND a.ordinal = b.ordinal AND a.ctid > b.ctid;
ALTER TABLE venue_postings ADD PRIMARY KEY (sequence, ordinal);

-- +goose Down
ALTER TABLE venue_postings DROP CONSTRAINT venue_postings_pkey;
ALTER TABLE records RENAME COLUMN log_offset TO "offset";
ALTER TABLE anchors RENAME COLUMN log_offset TO "offset";
ALTER TABLE checkpoints RENAME COLUMN log_offset TO "offset";
