package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// output is what a process prints, to be read while it prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// said returns all that was printed so far.
func (o *output) said() string {
	if o == nil { // of a venue that is no process
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// String returns so much of it as a person can read beside what a test says: who looks after a failed run may be shown no more
// of that.
func (o *output) String() string { return excerpt(o.said()) }

// The bounds of an excerpt, in lines and in bytes of a line.
const (
	firstLines = 40 // of a panic or a race, too, which say at their beginning what they are
	lastLines  = 40
	longLine   = 600
)

// logLine has the level and the message of a line of the log.
var logLine = regexp.MustCompile(`^time=\S+ (level=\S+ msg=(?:"(?:[^"\\]|\\.)*"|\S+))`)

// excerpt leaves out of a log the lines whose message comes again, but for the last, and the middle of what is still long.
func excerpt(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	times := make(map[string]int)
	for _, line := range lines {
		if m := logLine.FindStringSubmatch(line); m != nil {
			times[m[1]]++
		}
	}
	came := make(map[string]int)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		m := logLine.FindStringSubmatch(line)
		if m == nil {
			return false
		}
		came[m[1]]++
		return came[m[1]] < times[m[1]]
	})
	if out := len(lines) - firstLines - lastLines; out > 0 {
		lines = slices.Replace(lines, firstLines, firstLines+out, fmt.Sprintf("[%d lines are left out]", out))
	}
	for i, line := range lines {
		if m := logLine.FindStringSubmatch(line); m != nil && times[m[1]] > 1 {
			line = fmt.Sprintf("[%d times, the last:] %s", times[m[1]], line)
		}
		if len(line) > longLine {
			line = strings.ToValidUTF8(line[:longLine], "") + "…"
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// TestOutputIsShownShort: a message that comes again and again is shown once, what is long without its middle, and all that a
// test looks for is still there.
func TestOutputIsShownShort(t *testing.T) {
	o := new(output)
	fmt.Fprintln(o, "Perpetua is ready")
	for n := range 500 {
		fmt.Fprintf(o, "time=2026-11-22T16:08:%02d.1Z level=ERROR msg=\"a \\\"wave\\\" goes on\" alarm=some sequence=%d\n", n%60, n)
		fmt.Fprintf(o, "time=2026-11-22T16:08:%02d.1Z level=WARN msg=slow by=%ds\n", n%60, n)
	}
	fmt.Fprintln(o, "time=2026-11-22T16:10:00Z level=WARN msg=\"a term ended\" error="+strings.Repeat("x", 5000))
	want := []string{"Perpetua is ready",
		"[500 times, the last:] time=2026-11-22T16:08:19.1Z level=ERROR msg=\"a \\\"wave\\\" goes on\" alarm=some sequence=499",
		"[500 times, the last:] time=2026-11-22T16:08:19.1Z level=WARN msg=slow by=499s",
		("time=2026-11-22T16:10:00Z level=WARN msg=\"a term ended\" error=" + strings.Repeat("x", 5000))[:longLine] + "…"}
	if got := strings.Split(o.String(), "\n"); !slices.Equal(got, want) {
		t.Errorf("it is shown as\n%s", o)
	}
	fmt.Fprintln(o, "panic: this")
	for n := range 1000 {
		fmt.Fprintln(o, "goroutine", n)
	}
	lines := strings.Split(o.String(), "\n")
	if n := len(lines); n != firstLines+1+lastLines || lines[4] != "panic: this" || lines[firstLines] != "[925 lines are left out]" || lines[n-1] != "goroutine 999" {
		t.Errorf("a panic is shown as\n%s", o)
	}
	if said := o.said(); strings.Count(said, "\n") != 2003 || !strings.Contains(said, "sequence=7\n") {
		t.Errorf("%d bytes were kept", len(said))
	}
}
