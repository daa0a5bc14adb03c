package decide

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// aside is an agenda of which some was set aside.
type aside []DueEntry

func (aside) DueEntries(int, int) ([]DueEntry, int) { return nil, 0 }
func (a aside) SetAsideEntries() []DueEntry         { return a }
func (aside) NamesDueWork(string) bool              { return true }

// commanded gives a core a command as a journal does, and says what came of it: a refusal's code, "repeat N", "not its
// own", or the events' JSON types. What was decided is folded.
func commanded(t *testing.T, c *Core, sequence int64, cmd Command, agenda Agenda) string {
	t.Helper()
	if p, ok := cmd.Payload.(Payload); ok {
		cmd.Type = p.CommandType()
	}
	at := Stamp{Sequence: sequence, Time: scalar.Time(sequence) * scalar.Second}
	d, done, err := c.Decide(at, cmd, agenda)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case err != nil:
		t.Fatal(err)
	case d.Repeated:
		return fmt.Sprint("repeat ", d.Repeat)
	case !done:
		c.Evolve(at, cmd.Recorded(), nil)
		return "not its own"
	}
	c.Evolve(at, cmd.Recorded(), d.Events)
	return d.Events[0].EventType()
}

// TestRulesAreActivatedOneAfterTheOther: as far as the build knows them, and not by a repeated command again.
func TestRulesAreActivatedOneAfterTheOther(t *testing.T) {
	c := NewCore(Numbers{Newest: 3, Commitments: 2})
	keyed := Metadata{Key: "k", Fingerprint: "f"}
	for n, tt := range []struct {
		rules int
		kept  Metadata
		want  string
	}{
		{1, Metadata{}, "RULES_NOT_NEXT"}, {3, Metadata{}, "RULES_NOT_NEXT"}, {4, Metadata{}, "RULES_NOT_SUPPORTED"}, {2, keyed, TypeRulesActivated},
		{2, keyed, "repeat 3"}, {2, Metadata{}, "RULES_NOT_NEXT"}, {3, Metadata{}, TypeRulesActivated}, {4, Metadata{}, "RULES_NOT_SUPPORTED"},
	} {
		if got := commanded(t, &c, int64(n), Command{Metadata: tt.kept, Payload: &ActivateRules{Rules: tt.rules}}, nil); got != tt.want {
			t.Errorf("%d: rules %d: %s, want %s", n, tt.rules, got, tt.want)
		}
	}
	if c.ActiveRules() != 3 {
		t.Errorf("rules %d are in force", c.ActiveRules())
	}
}

// TestNewerRulesStopABuild: nobody folds on by rules that the build does not know, or from a state that follows them.
func TestNewerRulesStopABuild(t *testing.T) {
	newer := NewCore(Numbers{Newest: 2, Commitments: 2})
	newer.Evolve(Stamp{Sequence: 1}, Recorded{}, []Event{&RulesActivated{Rules: 2}})
	older := NewCore(Numbers{Newest: 1, Commitments: 2})
	if err := pack.Read(pack.Append(nil, newer.Visit), older.Visit); err == nil || !strings.Contains(err.Error(), "follows rules 2") {
		t.Errorf("an older build reads it: %v", err)
	}
	older = NewCore(Numbers{Newest: 1, Commitments: 2})
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "must be upgraded") {
			t.Errorf("it went on: %v", p)
		}
	}()
	older.Evolve(Stamp{Sequence: 1}, Recorded{}, []Event{&RulesActivated{Rules: 2}})
}

// TestWhatEveryJournalTakes: work is put back only where it was set aside, commands of other journals are taken over once,
// and what is a journal's own is left to it.
func TestWhatEveryJournalTakes(t *testing.T) {
	c := NewCore(Numbers{Newest: 1, Commitments: 2})
	from := func(sequence int64) Metadata {
		return Metadata{Source: &Source{Journal: "onboarding", Sequence: sequence}}
	}
	for n, tt := range []struct {
		command Command
		agenda  Agenda
		want    string
	}{
		{Command{Payload: &PutBackDue{Entry: "expiry/1"}}, nil, "UNKNOWN_DUE_ENTRY"},
		{Command{Payload: &PutBackDue{Entry: "expiry/1"}}, aside{{Entry: "expiry/2"}}, "UNKNOWN_DUE_ENTRY"},
		{Command{Payload: &PutBackDue{Entry: "expiry/2"}}, aside{{Entry: "expiry/2"}}, TypeDuePutBack},
		{Command{Metadata: from(5), Payload: 7}, nil, "not its own"},
		{Command{Metadata: from(5), Payload: 7}, nil, "repeat 3"},
		{Command{Metadata: from(4), Payload: 7}, nil, "repeat 3"},
		{Command{Metadata: from(6), Payload: 7}, nil, "not its own"},
	} {
		if got := commanded(t, &c, int64(n), tt.command, tt.agenda); got != tt.want {
			t.Errorf("%d: %s, want %s", n, got, tt.want)
		}
	}
}

// TestASavedCoreGoesOn saves a core and reads it back.
func TestASavedCoreGoesOn(t *testing.T) {
	c := NewCore(Numbers{Newest: 2, Commitments: 2})
	for n, cmd := range []Command{{Payload: &ActivateRules{Rules: 2}}, {Payload: &RotateCommitment{Generation: 1, Secret: strings.Repeat("a", 32)}}, {Metadata: Metadata{Key: "k", Fingerprint: "f"}, Payload: 7},
		{Metadata: Metadata{Source: &Source{Journal: "identity", Sequence: 9}}, Payload: 7}, {Metadata: Metadata{Source: &Source{Journal: "onboarding", Sequence: 8}}, Payload: 7}} {
		commanded(t, &c, int64(n), cmd, nil)
	}
	read := NewCore(Numbers{Newest: 2, Commitments: 2})
	if err := pack.Read(pack.Append(nil, c.Visit), read.Visit); err != nil || !reflect.DeepEqual(read, c) {
		t.Errorf("%+v was read back as %+v (%v)", c, read, err)
	}
}

// TestEveryRegisterKnowsWhatEveryJournalTakes: a new journal gets it for nothing.
func TestEveryRegisterKnowsWhatEveryJournalTakes(t *testing.T) {
	for _, event := range []Event{&RulesActivated{Rules: 2}, &DueSetAside{Entry: "a/b", Error: "c"}, &DuePutBack{Entry: "a/b"},
		&CommitmentRotated{Generation: 2}, &CommitmentDisclosed{To: 1}, &CheckpointKeyRotated{Generation: 2}} {
		if _, err := NewRegistry().Decode(event.EventType(), VersionOf(event), []byte(`{}`)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{CommandActivateRules, CommandPutBackDue, CommandRotateCommitment, CommandDiscloseCommitment, CommandRotateCheckpointKey} {
		if p, ok := NewPayloads().New(name); !ok || p.CommandType() != name {
			t.Errorf("%s makes %T", name, p)
		}
	}
}
