-- +goose Up

CREATE TABLE proposals (
    id               uuid        NOT NULL,
    sequence         bigint      NOT NULL,
    action           text        NOT NULL,
    status           text        NOT NULL,
    objects          text[]      NOT NULL,
    proposed_by      text        NOT NULL,
    broker           text        NOT NULL,
    seen             bigint      NOT NULL,
    created          timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    ended_by         text,
    ended            timestamptz,
    changed_sequence bigint,
    ended_sequence   bigint,
    PRIMARY KEY (id)
);
CREATE INDEX proposals_by_sequence ON proposals (sequence);
COMMENT ON TABLE proposals IS 'Actions of the journal trading that were proposed under its policy of four eyes. Their content is in the log.';
COMMENT ON COLUMN proposals.id IS 'Id of the proposal.';
COMMENT ON COLUMN proposals.sequence IS 'Sequence of the record that made it.';
COMMENT ON COLUMN proposals.action IS 'Action that needs two persons.';
COMMENT ON COLUMN proposals.status IS 'open, confirmed, rejected, withdrawn, or voided. No record says that a proposal has expired, so such a proposal is open.';
COMMENT ON COLUMN proposals.objects IS 'What the action is about: the kind of object, a slash, and its name.';
COMMENT ON COLUMN proposals.proposed_by IS 'User that proposed it.';
COMMENT ON COLUMN proposals.broker IS 'Broker of that user.';
COMMENT ON COLUMN proposals.seen IS 'Sequence of the last record before the proposal.';
COMMENT ON COLUMN proposals.created IS 'Time of the proposal, UTC.';
COMMENT ON COLUMN proposals.expires_at IS 'From then on it can no longer be confirmed, UTC.';
COMMENT ON COLUMN proposals.ended_by IS 'User that ended it.';
COMMENT ON COLUMN proposals.ended IS 'Time of the end, UTC.';
COMMENT ON COLUMN proposals.changed_sequence IS 'Sequence of the record that changed an object, if that voided the proposal.';
COMMENT ON COLUMN proposals.ended_sequence IS 'Sequence of the record that ended it.';

SELECT track_changes('proposals');

CREATE TABLE onboarding_proposals (
    id               uuid        NOT NULL,
    sequence         bigint      NOT NULL,
    action           text        NOT NULL,
    status           text        NOT NULL,
    objects          text[]      NOT NULL,
    proposed_by      text        NOT NULL,
    broker           text        NOT NULL,
    seen             bigint      NOT NULL,
    created          timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    ended_by         text,
    ended            timestamptz,
    changed_sequence bigint,
    ended_sequence   bigint,
    PRIMARY KEY (id)
);
CREATE INDEX onboarding_proposals_by_sequence ON onboarding_proposals (sequence);
COMMENT ON TABLE onboarding_proposals IS 'Actions of the journal onboarding that were proposed under its policy of four eyes. Their content is in the log, sealed.';
COMMENT ON COLUMN onboarding_proposals.id IS 'Id of the proposal.';
COMMENT ON COLUMN onboarding_proposals.sequence IS 'Sequence of the record that made it.';
COMMENT ON COLUMN onboarding_proposals.action IS 'Action that needs two persons.';
COMMENT ON COLUMN onboarding_proposals.status IS 'open, confirmed, rejected, withdrawn, or voided. No record says that a proposal has expired, so such a proposal is open.';
COMMENT ON COLUMN onboarding_proposals.objects IS 'What the action is about: the kind of object, a slash, and its name.';
COMMENT ON COLUMN onboarding_proposals.proposed_by IS 'User that proposed it.';
COMMENT ON COLUMN onboarding_proposals.broker IS 'Broker of that user.';
COMMENT ON COLUMN onboarding_proposals.seen IS 'Sequence of the last record before the proposal.';
COMMENT ON COLUMN onboarding_proposals.created IS 'Time of the proposal, UTC.';
COMMENT ON COLUMN onboarding_proposals.expires_at IS 'From then on it can no longer be confirmed, UTC.';
COMMENT ON COLUMN onboarding_proposals.ended_by IS 'User that ended it.';
COMMENT ON COLUMN onboarding_proposals.ended IS 'Time of the end, UTC.';
COMMENT ON COLUMN onboarding_proposals.changed_sequence IS 'Sequence of the record that changed an object, if that voided the proposal.';
COMMENT ON COLUMN onboarding_proposals.ended_sequence IS 'Sequence of the record that ended it.';

SELECT track_changes('onboarding_proposals');
