package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// The goals for the gaps between accepted orders.
const (
	longestGoal     = 5 * time.Second
	longestBothGoal = 8 * time.Second // if the active controller is lost together with the leader
	killedGoal      = 2500 * time.Millisecond
	silentGoal      = 4 * time.Second
	pausedOwnerGoal = 3500 * time.Millisecond // of a silent one too
)

// class groups the kinds of faults with the same goal.
type class struct {
	name string
	goal time.Duration // of the median
	has  func(kind) bool
}

func classes() []class {
	return []class{
		{"killed broker", killedGoal, func(k kind) bool { return k.action == kill && k.target != owner }},
		{"silent broker", silentGoal, func(k kind) bool { return k.action != kill && k.target != owner }},
		{"killed owner", killedGoal, func(k kind) bool { return k.action == kill && k.target == owner }},
		{"paused owner", pausedOwnerGoal, func(k kind) bool { return k.action == pause && k.target == owner }},
		{"silent owner", pausedOwnerGoal, func(k kind) bool { return k.action == silence && k.target == owner }},
	}
}

// String returns the report line of a fault.
func (r result) String() string {
	text := fmt.Sprintf("%3d  %-19s %-9s %-32s down %4.1fs  gap %6.2fs  at one API node %6.2fs  well again after %4.1fs",
		r.Number, r.Kind, r.Victim, strings.Join(r.Parts, "+"), r.Down.Seconds(), r.Gap.Seconds(), r.NodeGap.Seconds(), r.Recovery.Seconds())
	if r.Unrecovered != "" {
		text += "\n     NOT RECOVERED: " + r.Unrecovered
	}
	if len(r.Idle) > 0 {
		text += fmt.Sprintf("\n     NO ORDER ACCEPTED in the second half of the fault by %s", strings.Join(r.Idle, ", "))
	}
	return text
}

// conclude compares the answers with the log, prints the report and returns the exit code.
func (t *trial) conclude(ctx context.Context) (int, error) {
	if t.json != "" {
		content, err := json.MarshalIndent(t.results, "", "  ")
		if err == nil {
			err = os.WriteFile(t.json, append(content, '\n'), 0o644)
		}
		if err != nil {
			return exitSetup, err
		}
	}
	missed := report(t.out, t.results)
	t.load.print(t.out)
	p, err := t.prove(ctx)
	if err != nil {
		fmt.Fprintf(t.out, "\nsafety    NOT PROVED: %v\n", err)
		return exitBad, nil
	}
	p.print(t.out)
	return exitCode(t.results, p, missed > 0 && t.strict), nil
}

// exitCode is the verdict of a run. It does not depend on how fast the machine is, unless missed goals count.
func exitCode(results []result, p proof, missed bool) int {
	if !p.safe() || missed || slices.ContainsFunc(results, func(r result) bool { return r.Unrecovered != "" || len(r.Idle) > 0 }) {
		return exitBad
	}
	return exitGood
}

// buckets are the upper bounds of the histogram's rows, in seconds. The last row has no upper bound.
func buckets() []float64 { return []float64{0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 8, 12, 20} }

// report prints the histogram, the medians and the goals. It returns the number of missed goals.
func report(out io.Writer, results []result) (missed int) {
	printHistogram(out, results)
	missed = printMedians(out, results)
	missed += printLongest(out, results)
	printIdle(out, results)
	return missed
}

// printIdle prints during how many faults the venue accepted orders before the victim returned. Faults of less than long
// are not judged.
func printIdle(out io.Writer, results []result) {
	judged, idle := 0, 0
	for _, r := range results {
		if r.Down >= long {
			judged++
		}
		if len(r.Idle) > 0 {
			idle++
		}
	}
	fmt.Fprintf(out, "orders accepted before the victim returned: in %d of %d faults of at least %.0fs\n", judged-idle, judged, long.Seconds())
}

// printHistogram prints the number of faults by the length of their gaps.
func printHistogram(out io.Writer, results []result) {
	fmt.Fprint(out, "\ngap         faults\n")
	low := 0.0
	for _, high := range append(buckets(), 1e9) {
		n := 0
		for _, r := range results {
			if s := r.Gap.Seconds(); s >= low && s < high {
				n++
			}
		}
		if bound := fmt.Sprintf("%4.1f–%4.1fs", low, high); high < 1e9 {
			fmt.Fprintf(out, "%s  %s\n", bound, bar(n))
		} else if n > 0 {
			fmt.Fprintf(out, "%4.1fs–      %s\n", low, bar(n))
		}
		low = high
	}
}

// printMedians prints the median gap of each class and each kind, and returns the number of classes that missed their
// goal.
func printMedians(out io.Writer, results []result) (missed int) {
	fmt.Fprintf(out, "\n%-15s %6s %8s %8s   %s\n", "class", "faults", "median", "longest", "goal of the median")
	for _, c := range classes() {
		gaps := gapsOf(results, func(r result) bool { return c.has(r.kind) })
		if len(gaps) == 0 {
			continue
		}
		fmt.Fprintf(out, "%-15s %6d %7.2fs %7.2fs   ≤ %.1fs: %s\n", c.name, len(gaps), median(gaps).Seconds(), gaps[len(gaps)-1].Seconds(),
			c.goal.Seconds(), verdict(median(gaps) <= c.goal, &missed))
	}
	byKind := make(map[string]bool)
	for _, r := range results {
		byKind[r.Kind] = true
	}
	fmt.Fprintln(out)
	for _, k := range slices.Sorted(maps.Keys(byKind)) {
		gaps := gapsOf(results, func(r result) bool { return r.Kind == k })
		fmt.Fprintf(out, "%-20s %d, median %.2fs, longest %.2fs\n", k, len(gaps), median(gaps).Seconds(), gaps[len(gaps)-1].Seconds())
	}
	return missed
}

// printLongest prints the longest gaps, and returns the number of those that missed their goal.
func printLongest(out io.Writer, results []result) (missed int) {
	fmt.Fprintln(out)
	for _, g := range []struct {
		name string
		goal time.Duration
		both bool
	}{{"longest gap", longestGoal, false}, {"longest gap where the active controller led the partition", longestBothGoal, true}} {
		if gaps := gapsOf(results, func(r result) bool { return r.both == g.both }); len(gaps) > 0 {
			last := gaps[len(gaps)-1]
			fmt.Fprintf(out, "%s: %.2fs, goal ≤ %.0fs: %s\n", g.name, last.Seconds(), g.goal.Seconds(), verdict(last <= g.goal, &missed))
		}
	}
	return missed
}

// verdict returns whether a goal was met as text, and counts it if not.
func verdict(met bool, missed *int) string {
	if met {
		return "met"
	}
	*missed++
	return "MISSED"
}

func bar(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d %s", n, strings.Repeat("#", min(n, 100)))
}

// gapsOf returns the gaps of the selected results, sorted.
func gapsOf(results []result, has func(result) bool) []time.Duration {
	var gaps []time.Duration
	for _, r := range results {
		if has(r) {
			gaps = append(gaps, r.Gap)
		}
	}
	slices.Sort(gaps)
	return gaps
}

// median returns the median of sorted durations. There must be at least one.
func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// print prints the answers that the clients received.
func (l *load) print(out io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(out, "\norders    %d answered, %d of them accepted; %d sent again; %d given up; %d not placed while too many had no answer\n",
		len(l.answers), len(l.accepted), l.retries, len(l.unknown), l.skipped)
	for i, reference := range l.unknown[:min(5, len(l.unknown))] {
		fmt.Fprintf(out, "          %s was given up %s\n", reference, l.lastWord[i])
	}
	for _, code := range slices.Sorted(maps.Keys(l.codesOf)) {
		fmt.Fprintf(out, "          %d times try again: %s\n", l.codesOf[code], code)
	}
	for _, text := range slices.Sorted(maps.Keys(l.strange)) {
		fmt.Fprintf(out, "          %d strange answers: %s\n", l.strange[text], text)
	}
}

// print prints the verdict on safety.
func (p proof) print(out io.Writer) {
	fmt.Fprintf(out, "safety    %d acknowledged orders in %d records: %d lost, %d doubled; audit: ", p.acknowledged, p.records, len(p.lost), len(p.doubled))
	if p.audit != nil {
		fmt.Fprintf(out, "FAILED: %v\n", p.audit)
	} else {
		fmt.Fprintln(out, "equal")
	}
	for _, list := range []struct {
		name string
		refs []string
	}{{"LOST", p.lost}, {"DOUBLED", p.doubled}} {
		for _, reference := range list.refs[:min(20, len(list.refs))] {
			fmt.Fprintf(out, "          %s %s\n", list.name, reference)
		}
	}
}
