package main

import (
	"bytes"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-faults", "7", "-seed", "9", "-kinds", "kill leader, pause owner,kill leader", "-down", "8s"}, io.Discard)
	if err != nil || o.faults != 7 || o.seed != 9 || o.down != 8*time.Second || !slices.Equal(o.kinds, []kind{{kill, leader}, {pause, owner}}) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range [][]string{{"-faults", "0"}, {"-rate", "501"}, {"-clients", "0"}, {"-down", "500ms"}, {"-down", "2m"}, {"-duration", "-1s"},
		{"-kinds", "silence postgres"}, {"-kinds", "tickle leader"}, {"more"}} {
		if _, err := parse(wrong, io.Discard); err == nil {
			t.Errorf("%v is taken", wrong)
		}
		if code := command(t.Context(), wrong, io.Discard, io.Discard); code != exitSetup {
			t.Errorf("%v exits with %d", wrong, code)
		}
	}
}

// TestSkippedWithoutKafka finds neither Java nor Docker.
func TestSkippedWithoutKafka(t *testing.T) {
	t.Setenv("PATH", "")
	var said bytes.Buffer
	code := command(t.Context(), []string{"-plain"}, &said, io.Discard)
	if code != exitSkipped || !strings.Contains(said.String(), "no Java") || !strings.Contains(said.String(), "no Docker") {
		t.Errorf("exits with %d:\n%s", code, &said)
	}
}

func TestPlan(t *testing.T) {
	kinds := allKinds(true)
	if len(kinds) != 15 || len(allKinds(false)) != 10 {
		t.Fatalf("%d kinds, %d without silence", len(kinds), len(allKinds(false)))
	}
	for _, k := range kinds {
		if again, err := parseKind(k.String()); err != nil || again != k {
			t.Errorf("%v is read as %v, %v", k, again, err)
		}
	}
	p := plan(3, 40, kinds, 20*time.Second)
	if !reflect.DeepEqual(p, plan(3, 40, kinds, 20*time.Second)) {
		t.Error("one seed gives two plans")
	}
	if reflect.DeepEqual(p, plan(4, 40, kinds, 20*time.Second)) {
		t.Error("two seeds give one plan")
	}
	if longer := plan(3, 60, kinds, 20*time.Second); !reflect.DeepEqual(p, longer[:40]) {
		t.Error("a longer plan begins with other faults")
	}
	for turn := range 2 {
		seen := make(map[kind]bool)
		for _, f := range p[turn*15 : turn*15+15] {
			seen[f.kind] = true
			if f.down < 10*time.Second || f.down > 20*time.Second || f.leader < 0 || f.leader > 2 || f.coordinator < 0 || f.coordinator > 2 {
				t.Errorf("a fault %+v", f)
			}
		}
		if len(seen) != 15 {
			t.Errorf("turn %d has %d of the 15 kinds", turn, len(seen))
		}
	}
}

func TestLongestGap(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	accepted := func(seconds ...float64) (out []acceptance) {
		for _, s := range seconds {
			out = append(out, acceptance{at(s), 0})
		}
		return out
	}
	for _, c := range []struct {
		name     string
		accepted []acceptance
		want     float64
	}{
		{"steady", accepted(9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21), 1},
		{"a gap that began before the fault", accepted(1, 8, 15, 16, 17, 18, 19, 20, 21), 7},
		{"a gap before the fault alone", accepted(1, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21), 1},
		{"a gap within", accepted(10, 11, 16, 20, 21), 5},
		{"a gap that ends after the recovery", accepted(10, 15, 23), 8},
		{"a gap that never ends", accepted(10, 12), 8},
		{"nothing at all", nil, 10},
	} {
		if got := longest(c.accepted, at(10), at(20)).Seconds(); got != c.want {
			t.Errorf("%s: %.0fs, not %.0fs", c.name, got, c.want)
		}
	}
	l := &load{apis: make([]*node, 2), accepted: []acceptance{{at(12), 1}, {at(11), 0}, {at(13), 0}, {at(19), 1}, {at(15), 0}, {at(17), 0}, {at(20), 0}}}
	if all, one := l.longestGap(at(10), at(20)); all != 2*time.Second || one != 7*time.Second {
		t.Errorf("%v over all nodes, %v at one", all, one)
	}
}

func TestCompare(t *testing.T) {
	told := func(reference, code string, sequence int64, rejected bool) answer {
		return answer{reference, code, sequence, rejected}
	}
	orders := map[string]placed{
		"once":     {1, 5, "a", false},
		"rejected": {1, 6, "b", true},
		"twice":    {2, 7, "c", false},
		"given-up": {1, 8, "d", false},
	}
	for _, c := range []struct {
		name          string
		answers       []answer
		unknown       []string
		lost, doubled int
	}{
		{"as answered", []answer{told("once", "a", 5, false), told("rejected", "b", 6, true)}, []string{"given-up", "never-there"}, 0, 0},
		{"as a later record left it", []answer{told("once", "a", 9, false)}, nil, 0, 0},
		{"not there", []answer{told("gone", "x", 5, false)}, nil, 1, 0},
		{"another order", []answer{told("once", "x", 5, false)}, nil, 1, 0},
		{"answered as of an earlier record", []answer{told("once", "a", 4, false)}, nil, 1, 0},
		{"accepted and rejected", []answer{told("rejected", "b", 6, false)}, nil, 1, 0},
		{"there twice", []answer{told("twice", "c", 7, false)}, nil, 0, 1},
		{"given up and there twice", nil, []string{"twice"}, 0, 1},
	} {
		lost, doubled := compare(c.answers, c.unknown, orders)
		if len(lost) != c.lost || len(doubled) != c.doubled {
			t.Errorf("%s: lost %v, doubled %v", c.name, lost, doubled)
		}
		if (proof{lost: lost, doubled: doubled}).safe() != (c.lost+c.doubled == 0) {
			t.Errorf("%s: the verdict is wrong", c.name)
		}
	}
}

// TestOrdersAreReadFromTheLog reads records as `perpetua log` prints them.
func TestOrdersAreReadFromTheLog(t *testing.T) {
	const log = `{"sequence":0,"command":{"type":"journal.genesis"},"events":[]}
{"sequence":1,"command":{"type":"order.place"},"events":[{"type":"order.opened","data":{"code":"a","reference_id":"f-1-0"}}]}
{"sequence":2,"command":{"type":"order.place"},"events":[{"type":"order.filled","data":{"code":"b","reference_id":"f-1-1"}},{"type":"order.filled","data":{"code":"a","reference_id":"f-1-0"}}]}
{"sequence":3,"command":{"type":"order.place"},"events":[{"type":"order.rejected","data":{"code":"c","reference_id":"f-1-2"}}]}
{"sequence":4,"command":{"type":"order.place"},"events":[{"type":"order.opened","data":{"code":"d","reference_id":"f-1-2"}}]}
{"sequence":5,"command":{"type":"customer.cancel_orders"},"events":[{"type":"order.canceled","data":{"code":"a","reference_id":"f-1-0"}}]}
`
	orders := make(map[string]placed)
	last := int64(-1)
	err := eachRecord(strings.NewReader(log), func(sequence int64, command string, events []event) error {
		last = sequence
		if command == "order.place" {
			noteOrder(orders, sequence, events)
		}
		return nil
	})
	want := map[string]placed{"f-1-0": {1, 1, "a", false}, "f-1-1": {1, 2, "b", false}, "f-1-2": {2, 4, "d", false}}
	if err != nil || last != 5 || !reflect.DeepEqual(orders, want) {
		t.Errorf("%v up to %d, %v", orders, last, err)
	}
	if err := eachRecord(strings.NewReader("{\n"), func(int64, string, []event) error { return nil }); err == nil {
		t.Error("half a record is read")
	}
}

func TestReport(t *testing.T) {
	fault := func(k kind, seconds float64, both bool) result {
		return result{Kind: k.String(), kind: k, Gap: time.Duration(seconds * float64(time.Second)), both: both}
	}
	good := []result{fault(kind{kill, leader}, 2, false), fault(kind{kill, follower}, 1, false), fault(kind{silence, leader}, 3.9, false),
		fault(kind{pause, owner}, 3, false), fault(kind{silence, owner}, 3.4, false), fault(kind{kill, owner}, 0.4, false), fault(kind{kill, controller}, 7, true), fault(kind{kill, leader}, 2.2, false)}
	var said bytes.Buffer
	if missed := report(&said, good); missed != 0 || !strings.Contains(said.String(), "killed broker        4    2.10s    7.00s   ≤ 2.5s: met") ||
		!strings.Contains(said.String(), " 2.0– 2.5s  2 ##") {
		t.Errorf("%d goals missed:\n%s", missed, &said)
	}
	for name, worse := range map[string]result{
		"longest":           fault(kind{kill, follower}, 5.1, false),
		"longest of both":   fault(kind{kill, controller}, 8.1, true),
		"median of owners":  fault(kind{kill, owner}, 4.9, false),
		"silent owner":      fault(kind{silence, owner}, 4.9, false),
		"median of silence": fault(kind{pause, leader}, 4.9, false),
	} {
		said.Reset()
		if missed := report(&said, append(slices.Clone(good), worse)); missed != 1 || strings.Count(said.String(), "MISSED") != 1 {
			t.Errorf("%s: %d goals missed:\n%s", name, missed, &said)
		}
	}
	said.Reset()
	report(&said, []result{fault(kind{kill, leader}, 100, false)})
	if !strings.Contains(said.String(), "20.0s–      1 #") {
		t.Errorf("a gap beyond the last row is not shown:\n%s", &said)
	}
}

// TestIdle has one API node that accepts orders while the victim is away, and one that only does after its return.
func TestIdle(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	l := &load{apis: []*node{{name: "api-1"}, {name: "api-2"}}, accepted: []acceptance{{at(1), 0}, {at(1), 1}, {at(2), 1}, {at(7), 0}, {at(21), 1}}}
	if idle := l.idle(at(5), at(10)); !slices.Equal(idle, []string{"api-2"}) {
		t.Errorf("%v are idle", idle)
	}
	if idle := l.idle(at(8), at(20)); !slices.Equal(idle, []string{"api-1", "api-2"}) {
		t.Errorf("%v are idle", idle)
	}
}

func TestExitCode(t *testing.T) {
	well := result{Kind: "kill coordinator", Down: 20 * time.Second, Gap: 4 * time.Second}
	waited := well // for the broker, as a node does that asks only a dead coordinator for the owner
	waited.Gap, waited.Idle = 21*time.Second, []string{"api-1", "api-2"}
	gone := well
	gone.Unrecovered = "the venue does not accept orders"
	brief := result{Kind: "kill coordinator", Down: 8 * time.Second}
	for name, c := range map[string]struct {
		results []result
		proof   proof
		missed  bool
		want    int
	}{
		"well":                           {[]result{well, brief}, proof{}, false, exitGood},
		"waited for the victim":          {[]result{well, waited}, proof{}, false, exitBad},
		"never again":                    {[]result{gone}, proof{}, false, exitBad},
		"lost":                           {[]result{well}, proof{lost: []string{"f-1-1"}}, false, exitBad},
		"a goal missed that must be met": {[]result{well}, proof{}, true, exitBad},
	} {
		if got := exitCode(c.results, c.proof, c.missed); got != c.want {
			t.Errorf("%s: exits with %d, not %d", name, got, c.want)
		}
	}
	var said bytes.Buffer
	report(&said, []result{well, waited, brief})
	if !strings.Contains(said.String(), "before the victim returned: in 1 of 2 faults of at least 10s") {
		t.Errorf("the report:\n%s", &said)
	}
	if !strings.Contains(waited.String(), "NO ORDER ACCEPTED in the second half of the fault by api-1, api-2") {
		t.Errorf("the line: %s", waited)
	}
}

// TestForward sends bytes to an echo server and back, and closes while a connection is open.
func TestForward(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	f, err := forward(t.Context(), "127.0.0.1", echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", f.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make([]byte, 5)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(got); err == nil {
		t.Error("the connection is open after close")
	}
}
