// Package dataset writes journals as Parquet files, which analysts query without a database of the venue.
//
// Each table is a folder with a file for each range of records, named by the first record. A range is full if the log has its last
// record. The file of a full range never changes. The last file may have only the beginning of a range, and is replaced until the range is
// full. Files are functions of the log: a build that writes them again writes the same bytes.
//
// Rows have the sequence of their record, their place among the rows of the record, and the record's time. They come from the functions
// that also make the rows in Postgres, and from the interfaces of events that these use. Amounts and prices are DECIMAL(38,18), times are
// UTC in microseconds, and a value that is missing is NULL. Every column has a field id, which never changes. The id of a removed
// column is never used for another one.
//
// The columns are codes, ids, states, prices, amounts, and times. Names, answers, contents of documents, texts, references of orders and
// transfers, and codes of reasons are left out. The only word that a client chooses is the customer code. An erasure does not change files.
//
// The table books has the state of the order books, which needs the orders of all records before a range. Books follows these orders, and
// Save keeps them for the next range.
//
// A Range makes the files of a full range in memory, with statistics of their columns. A Day makes the files of a day that everybody
// may read: they have public market data only.
//
// Start reading in writer.go. The tables are in trading.go, bookrows.go, and onboarding.go.
package dataset
