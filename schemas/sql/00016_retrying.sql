-- +goose Up

-- When a registration is to be looked at next, and what of it is due, however much of it waits for a later time.
CREATE INDEX deliveries_retrying ON deliveries (webhook_id, next_attempt_at) WHERE status = 'retrying';

-- +goose Down
DROP INDEX deliveries_retrying;
