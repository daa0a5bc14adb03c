-- +goose Up

-- Lists of all customers of a broker. Those of everybody are merged from them.
CREATE INDEX orders_by_broker ON orders (broker, created_sequence, created_ordinal);
CREATE INDEX trades_by_broker ON trades (broker, sequence, ordinal);
CREATE INDEX transactions_by_broker ON transactions (broker, sequence, ordinal);

-- No query uses these.
DROP INDEX records_taken;
DROP INDEX transactions_by_reference;

-- +goose Down
CREATE INDEX transactions_by_reference ON transactions (customer_code, type, reference_id) WHERE reference_id IS NOT NULL;
CREATE INDEX records_taken ON records (journal, sequence) WHERE command_type = 'journal.taken';
DROP INDEX transactions_by_broker;
DROP INDEX trades_by_broker;
DROP INDEX orders_by_broker;
