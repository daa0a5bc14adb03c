package follow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// alarms returns how many alarms of a kind were raised.
func alarms(t *testing.T, m *journal.Metrics, kind string) (n float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				if f.GetName() == "perpetua_journal_alarms_total" && l.GetName() == "kind" && l.GetValue() == kind {
					n += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

func TestAPanicOfTheRulesEndsTheFoldByName(t *testing.T) {
	measured := journal.NewMetrics()
	c := journaltest.Connect(t, journal.Config{Metrics: measured}, "trading")
	say, _ := serve(t, c)
	f := follow.New(c, journaltest.Squeamish{Words: journaltest.Words{Name: "trading"}}, 0)
	var heard []string
	f.Listen(func(e record.Entry, _ decide.State) {
		if e, ok := e.Record.Events[0].(*journaltest.WordAdded); ok {
			heard = append(heard, e.Word)
		}
	})
	ended := run(t, f)
	good := say("one").Position
	at := say("poison").Position
	say("three")
	err := f.Wait(within(t), at.Sequence)
	var broken *record.BrokenRecordError
	if !errors.As(err, &broken) || broken.Sequence != at.Sequence || broken.Offset != at.Offset || !strings.Contains(broken.Error(), "no poison") {
		t.Fatalf("the fold waits with %v", err)
	}
	if err := ended(); !errors.As(err, &broken) || !record.Final(f.Err()) {
		t.Errorf("the fold ends with %v, and says %v", err, f.Err())
	}
	if !f.Position().Equal(good) || strings.Join(heard, " ") != "one" {
		t.Errorf("it stands at %v, and %v were heard", f.Position(), heard)
	}
	if n := alarms(t, measured, "evolve"); n != 1 {
		t.Errorf("%v alarms", n)
	}
}
