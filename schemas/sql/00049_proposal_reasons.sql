-- +goose Up

ALTER TABLE proposals ADD COLUMN ended_reason text;
COMMENT ON COLUMN proposals.ended_reason IS 'Why the user that ended it rejected or withdrew it, in that user''s words. NULL without a reason.';
