package demo

import "math/rand/v2"

// draws generates the random numbers of one purpose. It uses only the generator's raw output, which never changes, so
// that a seed gives the same numbers in every build.
type draws struct{ source *rand.PCG }

func newDraws(seed, stream uint64) draws { return draws{rand.NewPCG(seed, stream)} }

// below returns a number from 0 to n−1.
func (d draws) below(n int64) int64 { return int64(d.source.Uint64() % uint64(n)) }

// within returns a number from −n to n.
func (d draws) within(n int64) int64 { return d.below(2*n+1) - n }

// chance returns true with a probability of perMille in a thousand.
func (d draws) chance(perMille int64) bool { return d.below(1000) < perMille }
