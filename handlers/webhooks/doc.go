// Package webhooks sends what receivers are to be told.
//
// What is to be sent stands in the log: a delivery is open until the receipt of its last attempt. The rows made of the log say
// what is open and due; a job for each registration (package projections/jobs) says that somebody should look. Who has the job
// sends what is due to that registration, each owner's notices one after the other, several owners' at once. Each attempt
// becomes a command to the journal, which decides what follows from it. So jobs may get lost, come twice or too early: before
// each attempt the fold of the log is asked whether it is still wanted.
//
// A sender that dies between an attempt and its record makes the attempt again: at least once, with the same id and bytes.
//
// Receivers' addresses are checked when they are dialled, since only then is it known what a name stands for.
package webhooks
