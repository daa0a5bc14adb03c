// Package webhooks sends notices to the webhooks of receivers.
//
// The log is the source of deliveries: a delivery is open until the log has the receipt of the last attempt. The sender
// reads open deliveries from the node's fold of the log, so neither sending nor receipts wait for rows. A job for each
// webhook (package projections/jobs), written with the rows, assigns the webhook to one of the senders. That sender sends
// the due deliveries of the webhook: those of one owner in order, those of different owners concurrently. It submits the
// attempts to the journal, many in a command, and the journal decides the next step of each delivery. Jobs may be lost,
// repeated or early, because the sender checks in the fold that a delivery is due before each attempt.
//
// A sender that dies between an attempt and its record repeats the attempt. So a notice arrives at least once, always with
// the same id and bytes.
//
// The sender checks the address of a receiver when it dials, because a name can resolve to another address at any time.
package webhooks
