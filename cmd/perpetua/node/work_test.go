package node

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestWorkOf(t *testing.T) {
	begins, ends := scalar.ID{1}, scalar.ID{2}
	for name, tt := range map[string]struct {
		events          []decide.Event
		begun, finished scalar.ID
	}{
		"neither":           {[]decide.Event{&trading.OrderOpened{}}, scalar.ID{}, scalar.ID{}},
		"the venue's work":  {[]decide.Event{&trading.WorkStarted{}}, scalar.ID{}, scalar.ID{}},
		"the first record":  {[]decide.Event{&trading.OrderOpened{}, &trading.WorkStarted{CommandID: begins}}, begins, scalar.ID{}},
		"the last record":   {[]decide.Event{&trading.WorkFinished{CommandID: ends}}, scalar.ID{}, ends},
		"both in one":       {[]decide.Event{&trading.WorkStarted{CommandID: begins}, &trading.WorkFinished{CommandID: begins}}, begins, begins},
		"one after another": {[]decide.Event{&trading.WorkFinished{CommandID: ends}, &trading.WorkStarted{CommandID: begins}}, begins, ends},
	} {
		begun, finished := workOf(record.Entry{Record: &record.Record{Events: tt.events}})
		if begun != tt.begun || finished != tt.finished {
			t.Errorf("%s: %v, %v", name, begun, finished)
		}
	}
}
