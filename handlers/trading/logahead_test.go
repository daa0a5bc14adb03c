package trading_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// TestALogAheadOfTheClock reads the time, and as of times, at nodes whose clock is days behind the log. One of them started after
// the last record.
func TestALogAheadOfTheClock(t *testing.T) {
	v := funded(t)
	v.Advance(2 * scalar.Day)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64000")).Want(201)
	v.Advance(-2 * scalar.Day)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64001")).Want(201)
	node := time.Unix(1, 0)
	tip := v.Trading.Entries()[v.Trading.Tip().Sequence].Record.Time
	started, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trading.New(trading.Config{Auth: new(rest.Auth), Venue: v.Trading, Now: func() time.Time { return node }}).Register(started)
	past(v, "broker-a", a1+"/orders", tip.String()).Code(409, "NOT_YET_DECIDED")
	v.Advance(100 * scalar.Second)
	node = node.Add(100 * time.Second)
	now := tip + 99*scalar.Second // the owner's time passes one percent slower until the clock has caught up
	want(t, v.Send("", "GET", "/v1/time", "").Want(200), "time", now.String())
	answer := httptest.NewRecorder()
	started.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/time", nil))
	if body := answer.Body.String(); !strings.Contains(body, now.String()) {
		t.Errorf("at the node that started later, the time is %s, want %v", body, now)
	}
	for _, at := range []scalar.Time{tip, now} {
		if r := past(v, "broker-a", a1+"/orders", at.String()).Want(200); asOf(t, r) != v.Trading.Tip().Sequence {
			t.Errorf("as of %v, the position is %d", at, asOf(t, r))
		}
	}
	past(v, "broker-a", a1+"/orders", (now+scalar.Second).String()).Code(409, "NOT_YET_DECIDED")
}

// TestCandlesAndCommandsOfALogAhead: where the log is days ahead of the node's clock, a candle closes when its interval has ended for
// the owner, and a command is found for the 24 hours after its record.
func TestCandlesAndCommandsOfALogAhead(t *testing.T) {
	v := funded(t)
	v.Advance(2 * scalar.Day)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "65000")).Want(201)
	id := v.Trading.Entries()[v.Trading.Tip().Sequence].Record.Command.ID.String()
	v.Advance(-2 * scalar.Day)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64001")).Want(201)
	candle := func() string {
		t.Helper()
		return words(v.Send("", "GET", "/v1/candles/"+btc+"?interval=1m", "").Want(200))[0]
	}
	if got := candle(); !strings.HasSuffix(got, "open") {
		t.Errorf("in its interval, the candle is %s", got)
	}
	v.Advance(100 * scalar.Second)
	if got := candle(); !strings.HasSuffix(got, "closed") {
		t.Errorf("after its interval, the candle is %s", got)
	}
	v.Advance(23 * scalar.Hour)
	v.Send("broker-a", "GET", "/v1/commands/"+id, "").Want(200)
	v.Advance(2 * scalar.Hour)
	v.Send("broker-a", "GET", "/v1/commands/"+id, "").Code(404, "UNKNOWN_COMMAND")
}
