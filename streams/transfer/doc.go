// Package transfer copies the log of a journal, record for record, between topics and files.
//
// A copy holds every record byte for byte (key, value, headers, timestamp), in order, including those that readers skip.
// Only offsets may differ, so a position (sequence and hash) is valid on every copy. The chain is checked while the records
// are copied, and the target is read again at the end. A source with an edited or missing record is not copied.
//
// An interrupted copy continues where it stopped, after it has compared the content of the target with the source. A
// target with other content is refused and not changed.
//
// A file has one line of JSON for each record:
//
//	{"journal":"trading","partition":0,"offset":7,"timestamp":1795329842123,"key":"trading/0",
//	 "headers":[["ce_specversion","1.0"],…],"value":"{\"sequence\":7,…}"}
//
// The offset is that of the source, for information only. The timestamp is in milliseconds. Bytes that are not UTF-8, which
// no valid record has, are {"base64":"…"}; Kafka's null is null. Before the records of a trimmed log comes a line with its
// base, {"journal":"trading","base":{…}}; see record.Base. Several journals may share a file. A file with a name that
// ends in .zst is compressed; it is a series of frames of whole lines.
package transfer
