package record

// Format is the version of the record format: the members of a value and their order, the Kafka headers, key and timestamp,
// and the hash chain. It changes only when readers of the previous version cannot read new records.
const Format = 1
