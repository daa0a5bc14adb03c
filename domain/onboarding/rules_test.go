package onboarding_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
)

// line is a record of a golden journal.
type line struct {
	At      decide.Stamp    `json:"at"`
	Command decide.Recorded `json:"command"`
	Outcome decide.Outcome  `json:"outcome"`
	Events  []lineEvent     `json:"events"`
}

type lineEvent struct {
	Type    string         `json:"type"`
	Version int            `json:"version"`
	Data    jsontext.Value `json:"data"`
}

// lines are the records of a log as a golden journal has them.
func (l *log) lines() []byte {
	var out bytes.Buffer
	for _, r := range l.records {
		one := line{At: r.at, Command: r.command, Outcome: r.outcome}
		for _, e := range r.events {
			one.Events = append(one.Events, lineEvent{e.kind, e.version, e.data})
		}
		text, err := json.Marshal(one)
		if err != nil {
			l.t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	return out.Bytes()
}

// foldLines folds a golden journal.
func foldLines(t *testing.T, text []byte) *onboarding.State {
	t.Helper()
	s := onboarding.NewState()
	for text := range bytes.Lines(text) {
		var one line
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		var events []decide.Event
		for _, e := range one.Events {
			event, err := onboarding.Rules().Registry().Decode(e.Type, e.Version, e.Data)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
		s.Evolve(one.At, one.Command, one.Outcome, events)
	}
	return s
}

// TestRetiredRules compares what each retired number of rules decides of commands of every kind with a golden journal, byte for byte,
// and the state that this is folded to: a venue that stays with its rules decides what it always has.
func TestRetiredRules(t *testing.T) {
	for rules, history := range map[int]func(testing.TB) *log{1: firstRules, 2: secondRules} {
		t.Run(fmt.Sprint(rules), func(t *testing.T) { testRetired(t, rules, history(t)) })
	}
}

func testRetired(t *testing.T, rules int, l *log) {
	folder := fmt.Sprintf("testdata/rules%d/", rules)
	golden := folder + "journal"
	if os.Getenv(packtest.Update) != "" {
		if err := os.WriteFile(golden, l.lines(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	now, then := bytes.Split(l.lines(), []byte("\n")), bytes.Split(text, []byte("\n"))
	for n := range min(len(now), len(then)) {
		if !bytes.Equal(now[n], then[n]) {
			t.Fatalf("rules %d decide\n%s, where they decided\n%s", rules, now[n], then[n])
		}
	}
	s := foldLines(t, text)
	if got, want := onboarding.Codec().Append(nil, s), onboarding.Codec().Append(nil, l.state); s.ActiveRules() != rules || !bytes.Equal(got, want) {
		t.Errorf("under rules %d the journal is folded to\n%x, and what decided it is\n%x", s.ActiveRules(), got, want)
	}
	got := fmt.Sprintf("%+v forgotten %d\n", s.Totals(), s.Forgotten())
	for _, v := range s.OpenDeliveries() {
		got += fmt.Sprintf("%s %s attempts %d of them before %d\n", v.ID, v.Status, v.Attempts, v.Before)
	}
	want, err := os.ReadFile(folder + "state")
	if os.Getenv(packtest.Update) != "" {
		want, err = []byte(got), os.WriteFile(folder+"state", []byte(got), 0o644)
	}
	if err != nil || got != string(want) {
		t.Errorf("it is folded to\n%s, and was to\n%s (%v)", got, want, err)
	}
}
