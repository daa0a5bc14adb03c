//go:build !race

package record

// everyPair is false under the race detector.
const everyPair = true
