// Package webhooks sends what receivers are to be told.
//
// What is to be sent stands in the log: a delivery is open until the receipt of its last attempt. The sender has what is open from
// the node's fold of the log, so that neither what is to be sent nor a receipt waits for rows. A job for each registration (package
// projections/jobs), made with the rows, says who of all senders looks at it. Who has the job sends what is due to that
// registration, each owner's notices one after the other, several owners' at once. Each attempt is told to the journal, many in a
// command, which decides what follows from it. So jobs may get lost, come twice or too early: before each attempt the fold is
// asked whether it is still wanted.
//
// A sender that dies between an attempt and its record makes the attempt again: at least once, with the same id and bytes.
//
// Receivers' addresses are checked when they are dialled, since only then is it known what a name stands for.
package webhooks
