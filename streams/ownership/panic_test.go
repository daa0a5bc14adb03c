package ownership_test

import (
	"context"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// A standby that the rules fail goes away without taking the process along; the owner finds the same and says so.
func TestAPanicOfTheRulesEndsTheNodeByName(t *testing.T) {
	c := journaltest.NewClient(t, "trading", "identity")
	o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: journaltest.Words{Name: "trading"}, Node: "hardy"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	eventually(t, "the hardy one serves", func() bool { _, ok := o.Serving(); return ok })
	poison := journaltest.Say("poison")
	if _, err := journaltest.Insist(func() (submit.Result, error) { return o.Submit(ctx, poison) }); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n, err := ownership.New(ownership.Config{Client: c, NodeID: "n1", URL: "http://n1:8080", Build: "test",
		Rules: []decide.Rules{journaltest.Squeamish{Words: journaltest.Words{Name: "trading"}}, journaltest.Words{Name: "identity"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "applying record 2: panic: no poison") {
		t.Errorf("the node ends with %v", err)
	}
}
