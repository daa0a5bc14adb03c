-- +goose Up

-- What the insurance fund takes over from a liquidation, and what is deleveraged, has no orders on either side.
ALTER TABLE trades ALTER COLUMN order_code DROP NOT NULL;
ALTER TABLE trades ALTER COLUMN reference_id DROP NOT NULL;

-- +goose Down
DELETE FROM trades WHERE order_code IS NULL;
ALTER TABLE trades ALTER COLUMN reference_id SET NOT NULL;
ALTER TABLE trades ALTER COLUMN order_code SET NOT NULL;
