// Package sim simulates the ownership protocol under failures, without Kafka, goroutines or real time. A world is a modeled log with
// several nodes, each of which drives a term.Machine, and clients that submit commands. What happens next is drawn from a seed,
// so a seed repeats a run exactly.
//
// The log loses, delays, repeats, refuses and appends without an acknowledgement what producers send, and may lose its end.
// Nodes pause for minutes, crash between any two outputs of a step, start from old and new snapshots, and have clocks that jump
// and drift. After each step the world checks what README.md of streams promises. The package consists of tests.
package sim
