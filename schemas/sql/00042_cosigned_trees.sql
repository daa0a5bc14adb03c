-- +goose Up

-- The last checkpoint of each transparency log that the witnesses of the policy have cosigned. It is not computed from the log.
CREATE TABLE cosigned_trees (
    origin     text   PRIMARY KEY,
    size       bigint NOT NULL CHECK (size > 0),
    checkpoint text   NOT NULL,
    verifier   text   NOT NULL,
    cosigned   timestamptz(6) NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE cosigned_trees IS 'The last checkpoint of each transparency log with the cosignatures of witnesses that the policy asks for.';
COMMENT ON COLUMN cosigned_trees.origin IS 'Origin of the log: <host>/tlog/<journal>/<partition>/<journal id>.';
COMMENT ON COLUMN cosigned_trees.size IS 'Number of records that the checkpoint covers.';
COMMENT ON COLUMN cosigned_trees.checkpoint IS 'The checkpoint: a note signed by the log and by witnesses.';
COMMENT ON COLUMN cosigned_trees.verifier IS 'Keys of the log that verify the checkpoint, in the form of verifier keys of signed notes: one a line, the newest first.';
COMMENT ON COLUMN cosigned_trees.cosigned IS 'When the checkpoint was published with these cosignatures.';
