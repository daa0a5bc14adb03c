package trading

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// failing finds no past record.
type failing struct{ err error }

func (f failing) Deciding(context.Context, string, int32, int64, func(past.Met) error) error {
	return f.err
}

// TestPastFailures: each error of a past state is a problem that says what to do, for explanations and for proofs of liabilities.
func TestPastFailures(t *testing.T) {
	broken := &record.BrokenRecordError{Journal: "trading", Reason: "an unknown type"}
	for _, tt := range []struct {
		name   string
		past   past.Decisions
		status int
		code   string
		detail string
		proofs bool // whether a prover may get it
	}{
		{"no past", nil, 503, "EXPLANATIONS_UNAVAILABLE", "", false},
		{"before", failing{past.ErrBefore}, 404, "UNKNOWN_RECORD", "", false},
		{"foreign", failing{explanations.ErrForeign}, 404, "UNKNOWN_RECORD", "", false},
		{"after", failing{&past.AfterError{Tip: record.Position{Sequence: 7}}}, 409, "NOT_YET_DECIDED", "7", true},
		{"busy", failing{&past.BusyError{RetryAfter: time.Second}}, 503, "TOO_MANY_PAST_STATES", "", true},
		{"trimmed", failing{&record.TrimmedError{Base: record.Base{Sequence: 65536}}}, 409, "LOG_TRIMMED", "65536", true},
		{"decided otherwise", failing{&explanations.DifferentError{Build: "v1.4.0"}}, 409, "RULES_NOT_IN_BUILD", "v1.4.0", false},
		{"unknown record of a known build", failing{&past.ForeignError{Build: "v1.4.0", Err: broken}}, 409, "RULES_NOT_IN_BUILD", "v1.4.0", true},
		{"unknown record of an unknown build", failing{&past.ForeignError{Err: broken}}, 409, "RULES_NOT_IN_BUILD", "the one that served", true},
	} {
		err := (&Handler{past: pasts{decisions: tt.past}}).explained().Deciding(t.Context(), 3, nil)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Status != tt.status || p.Code != tt.code || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if f, ok := tt.past.(failing); ok && tt.proofs {
			if !errors.As(proofFailed(fmt.Errorf("a prover: %w", f.err)), &p) || p.Status != tt.status || p.Code != tt.code {
				t.Errorf("%s, of a proof: %v", tt.name, p)
			}
		}
	}
	away := errors.New("away")
	if err := (&Handler{past: pasts{decisions: failing{away}}}).explained().Deciding(t.Context(), 3, nil); !errors.Is(err, away) {
		t.Errorf("another error is %v", err)
	}
}
