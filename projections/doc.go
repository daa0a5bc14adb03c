// Package projections keeps the content of the journals in Postgres, where it can be queried.
//
// A Projection is a pure function from journal entries to new rows and SQL statements. A Runner reads valid entries in
// batches and writes the results of a batch in one transaction with its checkpoint, which is a compare-and-set on the
// previous position. So rows and position never differ, and no entry is applied twice, even if several runners run. Each
// family of rows is a package below this one, with its SQL and the queries that read its rows.
//
// Conventions: rows are functions of the log alone, so that a rebuild makes the same rows: they use neither serial
// numbers nor a clock. Every answer comes from one snapshot and contains the sequence that it is as of, or -1 before
// genesis. Prices and amounts are unconstrained numerics, which keep their number of decimals; ids are uuids; times are
// timestamptz in whole microseconds; an optional text that is missing is NULL, never "".
//
// Writes are kept cheap: new rows are inserted with COPY, a batch updates a row at most once and only if it changed, no
// index covers a column that changes during the life of a row, and lists are read by keys that rows have for other
// reasons. Under load, a transaction collects entries for some milliseconds; a reader that waits for one ends the
// collection early.
//
// Transactions commit with synchronous_commit off. A crash of Postgres may lose the last transactions, each as a whole
// with its checkpoint, and they are applied again from the log. Until a runner notices the broken connection, it may
// assume rows that were lost. So a caller that needs a position MUST compare it with the sequence in the answer, which
// is read together with the rows.
package projections
