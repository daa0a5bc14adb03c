package launch

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// TestFailedCommandsKeepTheKindOfAFolder: a command that fails before its node is open does not make the folder of a venue that of a
// follower, nor the other way around.
func TestFailedCommandsKeepTheKindOfAFolder(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		name    string
		kind    string
		command func(context.Context, []string, settings.IO) error
		args    []string
	}{
		{"follow on the folder of a venue", "", Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}},
		{"run on the folder of a follower", local.FollowsArchive, Run, nil},
	} {
		folder := local.Folder{Dir: t.TempDir()}
		if err := folder.SetFollows(test.kind); err != nil {
			t.Fatal(err)
		}
		none := func(string) (string, bool) { return "", false }
		err := test.command(t.Context(), append(test.args, "--data", folder.Dir, "--listen", taken.Addr().String()), settings.IO{Out: io.Discard, Err: io.Discard, Env: none})
		if err == nil || !strings.Contains(err.Error(), "another process listens") {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := folder.Follows(); got != test.kind {
			t.Errorf("%s: the node on the folder follows %q, want %q", test.name, got, test.kind)
		}
	}
}
