package record

// Format is the number of the record format: the members of a value and their order, the headers, the key, the timestamp and the hash
// chain. It changes only if readers of the previous format could not read new records.
const Format = 1
