package node

import (
	"log/slog"
	"strings"
	"testing"
)

// TestTheTipIsAwaitedWithoutBrokers: a node that starts does not end because its brokers do not answer for a while.
func TestTheTipIsAwaitedWithoutBrokers(t *testing.T) {
	var said lines
	n, cut := runOnCable(t, slog.New(slog.NewTextHandler(&said, nil)))
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
