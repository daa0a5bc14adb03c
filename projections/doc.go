// Package projections keeps what the journals say in Postgres, where it can be queried.
//
// A Projection is a pure function from journal entries to new rows and SQL statements; a Runner reads valid entries in
// batches and writes what they make of it in one transaction with its checkpoint, a compare-and-set on the position
// before. So rows and position never differ, and no entry is applied twice, whoever else is running. The families of rows are packages of
// their own below this one, each with its SQL and the queries that read its rows.
//
// Conventions: rows are functions of the log and of nothing else, so that a rebuild gives the same ones: no serial
// numbers, no clock. Every answer comes from one snapshot and says which sequence it is as of; -1 stands for the time
// before genesis. Prices and amounts are unconstrained numerics, which keep the number of decimals that they came in
// with; ids are uuids; times are timestamptz in whole microseconds; text that a row may lack is NULL, never "".
//
// A row costs what it must: new ones go in by COPY, whatever a batch does to a row changes it once and only where it
// differs, no index holds what changes while a row lives, and lists are read by the keys that the rows have anyway.
// Where records come fast, transactions gather them for some milliseconds; somebody who waits for one cuts that short.
//
// Transactions commit with synchronous_commit off: should Postgres crash, the last of them are lost as a whole, the
// checkpoint with them, and are applied again from the log. Until a runner has found its connection broken it may take
// rows to be there that were lost. So whoever needs a position compares it with the sequence that the answer itself is
// as of, which is read with its rows.
package projections
