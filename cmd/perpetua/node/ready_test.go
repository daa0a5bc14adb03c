package node

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
)

// TestTheTipIsAwaitedWithoutBrokers: a node that starts does not end because its brokers do not answer for a while.
func TestTheTipIsAwaitedWithoutBrokers(t *testing.T) {
	all := newBench(t, journals.All())
	all.config.Alone = false
	c := all.config
	c.ID, c.Roles = "owner", Roles{Engine: true, Projector: true}
	all.run(t, c)
	var said lines
	cut := &cable{dial: all.config.Dial}
	c = all.config
	c.ID, c.Roles, c.Dial, c.Logger = "node", Roles{API: true}, cut.connect, slog.New(slog.NewTextHandler(&said, nil))
	n, _ := all.run(t, c)
	cut.set(true)
	waited := make(chan error, 1)
	go func() { waited <- n.AwaitTip(t.Context()) }()
	eventually(t, "the node to wait for its brokers", func() string {
		if strings.Contains(said.String(), "the end of the log can't be read yet") {
			return ""
		}
		select {
		case err := <-waited:
			t.Fatalf("the wait ended with %v", err)
		default:
		}
		return "it says " + said.String()
	})
	cut.set(false)
	if err := <-waited; err != nil {
		t.Error(err)
	}
}
