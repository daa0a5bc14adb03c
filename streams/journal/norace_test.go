//go:build !race

package journal

// everyPair is false under the race detector.
const everyPair = true
