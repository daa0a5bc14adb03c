-- +goose Up

-- When a stop fired. Orders that fired before this column was there get it by a rebuild.
ALTER TABLE orders ADD COLUMN triggered timestamptz;
COMMENT ON COLUMN orders.triggered IS 'Time at which the stop fired. Null if it has not, and for other orders.';

-- +goose Down
ALTER TABLE orders DROP COLUMN triggered;
