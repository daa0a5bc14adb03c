package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// action is the manner in which a process fails.
type action string

// The actions. A silent process keeps its connections and never answers.
const (
	kill    action = "kill"    // SIGKILL; the process is started again at the end of the fault
	pause   action = "pause"   // SIGSTOP until the end of the fault
	silence action = "silence" // every packet to and from the process is dropped
)

// target is the role of a process when the fault begins.
type target string

// The targets. All but the owner are brokers.
const (
	leader      target = "leader"      // of the trading journal's partition
	follower    target = "follower"    // another replica of it
	coordinator target = "coordinator" // of the engines' group
	controller  target = "controller"  // the active one
	owner       target = "owner"       // the engine that owns the trading journal
)

// kind is an action on a target.
type kind struct {
	action action
	target target
}

// String returns a kind in the form of the -kinds flag.
func (k kind) String() string { return string(k.action) + " " + string(k.target) }

// hangs reports whether the owner stays in the group and gives no answer.
func (k kind) hangs() bool { return k.target == owner && k.action != kill }

// allKinds lists the kinds of faults.
func allKinds(canSilence bool) []kind {
	var all []kind
	for _, t := range []target{leader, follower, coordinator, controller, owner} {
		all = append(all, kind{kill, t}, kind{pause, t})
		if canSilence {
			all = append(all, kind{silence, t})
		}
	}
	return all
}

// parseKind parses a kind.
func parseKind(text string) (kind, error) {
	all := allKinds(true)
	i := slices.IndexFunc(all, func(k kind) bool { return k.String() == text })
	if i < 0 {
		var names []string
		for _, k := range all {
			names = append(names, k.String())
		}
		return kind{}, fmt.Errorf("there is no kind of fault %q; there are: %s", text, strings.Join(names, ", "))
	}
	return all[i], nil
}

// parseKinds parses kinds separated by commas, and drops repeated ones. It returns nil for none.
func parseKinds(text string) (kinds []kind, err error) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		k, err := parseKind(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// planned is a fault before its victim is known.
type planned struct {
	kind kind
	down time.Duration // duration
	// leader and coordinator are the brokers, 0 to 2, that lead the trading partition and coordinate the engines' group
	// when the fault begins. The seed draws them, so that a run covers every combination of roles on one broker. In
	// Kafka the active controller cannot be chosen.
	leader, coordinator int
	pick                uint64 // chooses among several followers
}

// plan draws n faults. Each run of len(kinds) faults contains every kind once, so that even a short run covers all
// kinds.
func plan(seed uint64, n int, kinds []kind, down time.Duration) []planned {
	random := rand.New(rand.NewPCG(seed, 0x6661756c7473))
	var out []planned
	for len(out) < n {
		for _, i := range random.Perm(len(kinds)) {
			lasts := down/2 + time.Duration(random.Int64N(int64(down/2)+1))
			out = append(out, planned{kind: kinds[i], down: lasts, leader: random.IntN(3), coordinator: random.IntN(3), pick: random.Uint64()})
		}
	}
	return out[:n]
}
