package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// Row is one line of the table.
type Row struct {
	Measure  string `json:"measure"`
	Unit     string `json:"unit"`
	Ours     Sample `json:"ours"`
	Against  string `json:"against,omitempty"` // describes the other figure
	Baseline Sample `json:"baseline,omitzero"`
	Ratio    Sample `json:"ratio,omitzero"` // ours divided by theirs, by round
	More     Sample `json:"more,omitzero"`  // ours minus theirs, by round, if the aim is about that
	Aim      Aim    `json:"aim,omitzero"`
	Met      *bool  `json:"met,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Aim is a bound for the ratio, or for our figure if it is not compared.
type Aim struct {
	Bound float64 `json:"bound"`
	Most  bool    `json:"most,omitempty"` // an upper bound instead of a lower one
	More  bool    `json:"more,omitempty"` // bounds the difference instead of the ratio
}

func atLeast(x float64) Aim { return Aim{Bound: x} }
func atMost(x float64) Aim  { return Aim{Bound: x, Most: true} }

func atMostMore(x float64) Aim { return Aim{Bound: x, Most: true, More: true} }

// Sample summarizes the results of the rounds.
type Sample struct {
	Median float64   `json:"median"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Rounds []float64 `json:"rounds"`
}

// IsZero reports whether nothing was measured.
func (s Sample) IsZero() bool { return len(s.Rounds) == 0 }

func (s *Sample) summarize() {
	if len(s.Rounds) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(s.Rounds))
	n := len(sorted)
	s.Median, s.Low, s.High = (sorted[(n-1)/2]+sorted[n/2])/2, sorted[0], sorted[n-1]
}

// judge computes medians and ratios, and whether the aim is met.
func (r *Row) judge() {
	for i := range min(len(r.Ours.Rounds), len(r.Baseline.Rounds)) {
		if r.Aim.More {
			r.More.Rounds = append(r.More.Rounds, r.Ours.Rounds[i]-r.Baseline.Rounds[i])
			continue
		}
		r.Ratio.Rounds = append(r.Ratio.Rounds, r.Ours.Rounds[i]/r.Baseline.Rounds[i])
	}
	r.Ours.summarize()
	r.Baseline.summarize()
	r.Ratio.summarize()
	r.More.summarize()
	if r.Aim == (Aim{}) {
		return
	}
	x := r.Ours.Median
	if !r.Ratio.IsZero() {
		x = r.Ratio.Median
	} else if !r.More.IsZero() {
		x = r.More.Median
	}
	met := x >= r.Aim.Bound
	if r.Aim.Most {
		met = x <= r.Aim.Bound
	}
	r.Met = &met
}

func (s Sample) text() string {
	switch {
	case s.IsZero():
		return ""
	case len(s.Rounds) == 1:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Low), number(s.High))
}

// number formats a number with three significant digits, and numbers from 100 without decimals.
func number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e5:
		return strconv.FormatFloat(x/1000, 'f', 0, 64) + "k"
	case a >= 100 || x == 0:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

func (r Row) aim() string {
	switch {
	case r.Aim == (Aim{}):
		return ""
	case r.Aim.More:
		return "≤ " + number(r.Aim.Bound) + " more"
	case r.Aim.Most:
		return "≤ " + number(r.Aim.Bound)
	}
	return "≥ " + number(r.Aim.Bound)
}

func (r Row) verdict() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return "met"
	}
	return "missed"
}

func (r Row) line() string {
	s := r.Measure + ": " + r.Ours.text() + " " + r.Unit
	if !r.Baseline.IsZero() {
		s += ", " + r.Against + " " + r.Baseline.text() + ", " + r.compared()
	}
	if a := r.aim(); a != "" {
		s += ", aim " + a + " " + r.verdict()
	}
	if r.Note != "" {
		s += " [" + r.Note + "]"
	}
	return s
}

// compared describes our figure relative to the other one.
func (r Row) compared() string {
	if r.More.IsZero() {
		return "ratio " + r.Ratio.text()
	}
	return r.More.text() + " more"
}

func printTable(w io.Writer, rows []Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MEASURE\tUNIT\tOURS\tBESIDE\t\tRATIO\tAIM\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Measure, r.Unit, r.Ours.text(), r.Against, r.Baseline.text(),
			strings.TrimPrefix(r.compared(), "ratio "), r.aim(), r.verdict())
	}
	_ = t.Flush() // an error of the output is ignored, as for the other lines
	m := thisMachine()
	fmt.Fprintf(w, "\n%d cores, %s, %s/%s. Medians; in brackets the lowest and highest of the rounds.\n", m.Cores, m.Go, m.OS, m.Arch)
	for _, r := range rows {
		if r.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Measure, r.Note)
		}
	}
}

// processorTime returns the processor time of this process. If one goroutine works, that is the cost of the work,
// independent of the machine's other load.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type machine struct {
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

func thisMachine() machine {
	return machine{runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
}
