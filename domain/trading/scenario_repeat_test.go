package trading

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// repeated begins a line that is run several times.
var repeated = regexp.MustCompile(`^(\d+) times: (.*)$`)

// ladder is a word that counts from a number to another, by one unit of the last decimal given or by a step.
var ladder = regexp.MustCompile(`^(.*?)(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?:/(\d+(?:\.\d+)?))?(\D*)$`)

// expand returns the lines that a scenario's line stands for: itself, or those of its ladder or repeat.
func expand(line string) ([]string, error) {
	if m := repeated.FindStringSubmatch(line); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		once, err := expand(m[2])
		var out []string
		for range n {
			out = append(out, once...)
		}
		return out, err
	}
	words := strings.Fields(line)
	steps := make([][]string, len(words))
	count := 1
	for i, w := range words {
		m := ladder.FindStringSubmatch(w)
		if m == nil {
			continue
		}
		rungs, err := rungsOf(m)
		if err != nil {
			return nil, err
		}
		if steps[i] = rungs; count != 1 && count != len(rungs) {
			return nil, fmt.Errorf("%q has ladders of %d and of %d", line, count, len(rungs))
		}
		count = len(rungs)
	}
	if count == 1 {
		return []string{line}, nil
	}
	out := make([]string, count)
	for n := range out {
		for i, w := range words {
			if steps[i] != nil {
				w = steps[i][n]
			}
			out[n] += " " + w
		}
		out[n] = out[n][1:]
	}
	return out, nil
}

// rungsOf counts what a ladder's match says.
func rungsOf(m []string) ([]string, error) {
	var d [3]fixed.Decimal
	for i, text := range [...]string{m[2], m[3], m[4]} {
		var err error
		if d[i], err = fixed.ParseDecimal(text); err != nil && text != "" {
			return nil, err
		}
	}
	scale := max(d[0].Scale, d[1].Scale, d[2].Scale)
	from, to, step := d[0].AtLeast(scale).Coef, d[1].AtLeast(scale).Coef, d[2].AtLeast(scale).Coef
	if m[4] == "" {
		step = 1
	}
	if step == 0 || fixed.Abs(to-from)%step != 0 || fixed.Abs(to-from)/step > 10_000 {
		return nil, fmt.Errorf("%s..%s/%s does not come out even", m[2], m[3], m[4])
	}
	if to < from {
		step = -step
	}
	var out []string
	for n := from; ; n += step {
		out = append(out, m[1]+fixed.Decimal{Coef: n, Scale: scale}.String()+m[5])
		if n == to {
			return out, nil
		}
	}
}

func TestExpand(t *testing.T) {
	for line, want := range map[string]string{
		"alice buys 1 B at 65000":        "alice buys 1 B at 65000",
		"3 times: a":                     "a|a|a",
		"bob sells 1 B at 1..3":          "bob sells 1 B at 1|bob sells 1 B at 2|bob sells 1 B at 3",
		"p1..3: bob sells 1 at 0.9..1.1": "p1: bob sells 1 at 0.9|p2: bob sells 1 at 1.0|p3: bob sells 1 at 1.1",
		"at 10..5/2.5":                   "at 10.0|at 7.5|at 5.0",
		"2 times: at 1..2":               "at 1|at 2|at 1|at 2",
		"-> refused X":                   "-> refused X",
	} {
		if got, err := expand(line); err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q is %q (%v)", line, strings.Join(got, "|"), err)
		}
	}
	for _, line := range []string{"a 1..3 b 1..4", "a 1..4/2", "a 1..2/0", "a 1..99999"} {
		if got, err := expand(line); err == nil {
			t.Errorf("%q is %q", line, got)
		}
	}
}
