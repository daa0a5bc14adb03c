// Package lake keeps the rows of archived ranges as Parquet files in the bucket of the archive, and names the files in a DuckLake
// catalog in Postgres, which DuckDB attaches as a database.
//
// A Filler reads each full range of an archive, has package dataset make the files, and writes them to the bucket. When they are
// durable, Catalog.Add names them. One transaction adds the files, their statistics, the snapshot, and the row in the table
// lake.ranges, which is the position of the catalog in the journal. So a range is in the catalog whole or not at all, and a Filler
// may be killed at any time. The name of a file contains the hash of the bytes. Once the catalog names a file, it is neither replaced nor
// deleted.
//
// The rows of the table books need the orders that rested before a range. A Filler writes these to the bucket before it adds the range
// before. Without them, it reads the archive from the last ones on that the bucket has, or from the first record on. If it can't do
// that either, it adds the range without rows of books: these never keep the other tables from getting a range.
//
// The tail of an archive is not in the catalog: it is replaced again and again, and the rows of newer records are in Postgres.
// The views of the DuckLake schema live return both.
//
// The catalog has the form of DuckLake 1.0. Only a Filler may write to it. A range that the catalog has never changes there, so
// only one check guards against another log: the manifest that a range had in the archive.
//
// Start with Filler and Catalog.
package lake
