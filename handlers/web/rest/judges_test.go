package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestAnAnswerWaitsForWhoJudgesTheNext: the node that says that a key was made knows it. One that can't come to the record
// says so all the same, for the record is there; and a refusal waits for nothing.
func TestAnAnswerWaitsForWhoJudgesTheNext(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused error
		comes   error
		waits   bool
		status  int
	}{
		{"it comes", nil, nil, true, http.StatusCreated},
		{"it does not come", nil, context.DeadlineExceeded, true, http.StatusCreated},
		{"it is refused", decide.Refuse(decide.Conflict, "TAKEN", "it is there"), nil, false, http.StatusConflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			waited := int64(-1)
			fold := foldAt{sequence: 6, wait: func(ctx context.Context, sequence int64) error {
				if _, limited := ctx.Deadline(); !limited {
					t.Error("it waits without a limit")
				}
				waited = sequence
				return test.comes
			}}
			to := operation.Journal{Name: "identity", AuthFollower: fold, To: submitFunc(func(decide.Command) (submit.Result, error) {
				return submit.Result{Entry: &record.Entry{Record: new(record.Record)}, Position: record.LogPosition{Journal: "identity", Sequence: 8}}, test.refused
			})}
			node := httptest.NewServer(serve(t, Options{}, func(c echo.Context) error {
				b := BodyOnly(c)
				b.String("name")
				if _, err := to.Execute(RequestOf(c), named("thing.make"), b); err != nil {
					return err
				}
				return c.JSON(http.StatusCreated, struct{}{})
			}))
			t.Cleanup(node.Close)
			if status, _, answer := send(t, node.URL+"/v1/things"); status != test.status {
				t.Errorf("%d %v", status, answer)
			}
			if (waited == 8) != test.waits {
				t.Errorf("it waited for %d", waited)
			}
		})
	}
}
