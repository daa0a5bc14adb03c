// Package transfer copies the log of a journal, record for record, between topics and files.
//
// A copy holds every record byte for byte (key, value, headers, timestamp), in order, those that readers skip included.
// Only offsets may differ, so a position (sequence and hash) holds on every copy. What is copied is held against the
// chain on the way, and what was written is read again at the end. A source in which a record was edited, or is missing, is
// no log to copy.
//
// A copy that was broken off goes on where it stopped: what the target holds is compared with the source first. A target
// that holds anything else is refused, and not changed.
//
// A file has one line of JSON for each record:
//
//	{"journal":"trading","partition":0,"offset":7,"timestamp":1795329842123,"key":"trading/0",
//	 "headers":[["ce_specversion","1.0"],…],"value":"{\"sequence\":7,…}"}
//
// The offset is that of the source and only tells where the record was; the timestamp is in milliseconds. Bytes that are
// no UTF-8, which no valid record has, are {"base64":"…"}; what Kafka calls null is null. Several journals may share a
// file. One whose name ends in .zst is compressed; it is a series of frames, each of whole lines.
package transfer
