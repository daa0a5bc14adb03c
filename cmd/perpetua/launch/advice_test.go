package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAdvice: the error of a log that lost records names the commands that help, and keeps its code.
func TestAdvice(t *testing.T) {
	lost := &record.DivergedError{Journal: "trading", Reason: "the log is empty"}
	err := advise(fmt.Errorf("engine: %w", lost))
	for _, want := range []string{"engine: LOG_DIVERGED", "--topic-prefix", "perpetua log restore", "perpetua admin forget-log --journal trading"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: without %q", err, want)
		}
	}
	if !errors.Is(err, error(lost)) {
		t.Errorf("%v: its cause is lost", err)
	}
	if err := advise(&record.TrimmedError{}); !strings.Contains(err.Error(), "LOG_TRIMMED") || !strings.Contains(err.Error(), "--archive-url") {
		t.Error(err)
	}
	settings := &journal.SettingsError{Deviations: []string{"LOG_BASE: the base is lost"}, Log: &record.BaseError{}}
	if err := advise(settings); !strings.Contains(err.Error(), "LOG_BASE") || !strings.Contains(err.Error(), "retention") {
		t.Error(err)
	}
	if other := errors.New("other"); advise(other) != other || advise(nil) != nil {
		t.Error("another error is changed")
	}
}
