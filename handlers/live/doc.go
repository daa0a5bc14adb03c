// Package live serves /v1/ws: channels of single events (orders, trades, balance-changes, market-trades), of order
// books, and of current state (positions, margin, tickers, candles, instruments), and order entry. Its contract with
// clients is schemas/asyncapi/asyncapi.yaml (package schemas/bundle makes it whole), and a test compares the two.
//
// A Hub follows a fold of the trading journal. It converts each record to messages and encodes each message once. An
// index from topics to subscriptions contains the receivers of a message. A subscription is created under the fold's
// lock, together with its acknowledgement and snapshot, so no message is lost or repeated between the snapshot and
// the first update.
//
// The order of locks is: the fold's, the hub's, a session's, the writers'. Code under these locks MUST NOT wait for a
// client. A session has a bounded queue; when the queue is full, the session ends with SLOW_CONSUMER. A subscription
// never skips a message.
//
// Order entry calls the REST interface inside the process (orderentry.go).
//
// The package melody manages the sockets: it reads requests, keeps connections alive and ends them. Outgoing messages
// do not pass through melody, because it copies and counts a message for each socket, wakes a goroutine, makes a
// system call, and drops messages silently when its buffer is full. Instead, each session has a queue of frames
// (session.go), and sessions that get the same message share its frame. A few writers visit the sessions and write
// the queued frames of a session with one call (writer.go). Melody's control frames go into the same queue, through a
// net.Conn under melody (conn.go).
//
// A client may negotiate compression (extension.go). The net.Conn decompresses incoming messages (inflate.go), so the
// library sees only plain frames. A writer compresses an outgoing frame once for all sessions that share it
// (deflate.go).
//
// Start with hub.go, which publishes records, then handle.go for requests and session.go for the queue of a
// connection.
package live
