// Package marketdata keeps daily files of public market data in the bucket, which everybody may download.
//
// A day is a UTC day of the log's time. Its files are made as soon as the log has a record of a later day, from the records of the day and
// the books before it alone. A day with a record has a file for each table, also if the table has no rows. A day without a record has no
// files.
//
// A Maker follows the journal trading. After a day, it writes the files, then the books after the day, and then the manifest of the day, if
// there is none. Only days with a manifest are published, so a Maker may be killed at any time: it continues after the last manifest
// with the books that were saved with it. Makers of several nodes may run at the same time, and do the same work. Files that are
// missing are made again, with the same bytes if the same build makes them.
//
// The key of a file contains the hash of the bytes, because another build may compress the same rows to other bytes. A manifest names the
// files of one build.
//
// Manifests have hashes of records and MUST NOT be shown to clients. Store.Days is for the interface, which shows other members.
//
// Start with Maker and Store.
package marketdata
