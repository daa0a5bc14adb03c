package webhooks

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// TestLostKeys: if the key store lost the key of an owner, notices about that owner are sent without what the key sealed, and those
// about others do not wait for them.
func TestLostKeys(t *testing.T) {
	v := newVenue(t)
	s := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("thanks")) })
	id := v.register(s)
	lost, other := v.person(), v.person()
	v.ask(lost, "why")
	if err := v.owners.Discard(t.Context(), lost.Ref.String()); err != nil {
		t.Fatal(err)
	}
	v.run(v.sender("a", Within, quick, s).Run)
	v.ask(other, "because")
	v.until("all is delivered", v.settled(id, 4, webhook.Delivered))
	reasons := make(map[string]int)
	for _, a := range s.got() {
		for _, reason := range []string{`"reason":""`, `"reason":"because"`} {
			if strings.Contains(a.body, reason) {
				reasons[reason]++
			}
		}
	}
	if reasons[`"reason":""`] != 1 || reasons[`"reason":"because"`] != 1 {
		t.Errorf("%v in %v", reasons, s.got())
	}
	deliveries, attempts := v.receipts(id)
	for _, d := range deliveries {
		if replied := attempts[d.ID][0].Reply != nil; replied != (d.Ref == other.Ref) {
			t.Errorf("of %v a reply is kept: %v", d.Ref, replied)
		}
	}
}
