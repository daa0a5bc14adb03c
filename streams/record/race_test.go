//go:build race

package record

// everyPair says that a test may take a minute for what one goroutine does alone: not under the race detector, which slows it
// down tenfold and has nothing to find there.
const everyPair = false
