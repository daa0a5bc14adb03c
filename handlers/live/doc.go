// Package live serves /v1/ws: channels of single events (orders, trades, balance-changes, market-trades), of order books, and
// of how things are now (positions, margin, tickers, candles, instruments), and order entry. What it promises to clients is written down in
// schemas/asyncapi/asyncapi.yaml, and a test holds the two together.
//
// A Hub listens to a fold of the trading journal. Each record becomes messages, each message is encoded once, and an
// index from topics to subscriptions says which sessions get it. A subscription is made under the fold's lock,
// together with its acknowledgement and snapshot, so that nothing falls between the snapshot and the first update
// and nothing comes twice.
//
// Locks are taken in this order: the fold's, the hub's, a session's, that of the writers. Nothing that is done under
// them waits for a client: a session is a bounded queue, and one that is full ends with SLOW_CONSUMER. Nothing is ever
// left out of the middle of a subscription.
//
// Orders are entered by way of the REST interface (orderentry.go), which the hub calls as if a request had come over HTTP.
//
// The sockets are melody's, which reads requests, keeps connections alive and ends them. What is sent does not go
// through it, since it copies and counts a message for each socket, wakes a goroutine and makes a system call, and
// drops silently when its buffer is full: a session has a queue of frames of its own (session.go), which it shares with
// all others that get the same message, and a few writers go round the sessions and write with one call what has
// gathered (writer.go). Beneath melody lies a net.Conn of our own (conn.go), which puts melody's control frames into
// the same queue.
package live
