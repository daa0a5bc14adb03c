package launch

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
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
	cluster := []string{"--kafka-brokers", "127.0.0.1:1", "--database-url", "postgres://127.0.0.1:1/none", "--key-url", "file:///none", "--role", "api"}
	for _, test := range []struct {
		name    string
		kind    string
		venue   string // a file of the folder that a venue has written
		command func(context.Context, []string, settings.IO) error
		args    []string
		want    string
	}{
		{"follow on a new folder", "", "", Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}, "another process listens"},
		{"follow on its own folder", local.FollowsArchive, "", Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}, "another process listens"},
		{"follow on the folder of a venue with users", "", local.UsersFile, Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}, "is that of a venue, as users.json in it shows"},
		{"follow on the folder of a venue with a log", "", local.KeyIDFile, Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}, "is that of a venue"},
		{"follow on the folder of a venue with keys", "", "keys/fence/1", Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}, "is that of a venue"},
		{"follow on the folder of a node of a cluster", "", "venue", Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}, "is that of a venue, as venue in it shows"},
		{"serve on a folder of both kinds", local.FollowsBrokers, "venue", Serve, cluster, "if it is the folder of the venue, remove the file"},
		{"run on its own folder", "", local.UsersFile, Run, nil, "another process listens"},
		{"run on the folder of a follower", local.FollowsArchive, "", Run, nil, "perpetua log copy --from"},
		{"run on the folder of a follower of brokers", local.FollowsBrokers, "", Run, nil, "start perpetua follow on it"},
		{"cluster on the folder of a follower", local.FollowsArchive, "", Cluster, nil, "start perpetua follow on it"},
		{"serve on the folder of a follower", local.FollowsBrokers, "", Serve, cluster, "start perpetua follow on it"},
		{"bootstrap on the folder of a follower", local.FollowsBrokers, "", Bootstrap, cluster[:4], "start perpetua follow on it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := local.Folder{Dir: t.TempDir()}
			if err := folder.SetFollows(test.kind); err != nil {
				t.Fatal(err)
			}
			if test.venue != "" {
				path := folder.Path(test.venue)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"--data", folder.Dir}, test.args...)
			if test.name[:3] != "boo" {
				args = append(args, "--listen", taken.Addr().String())
			}
			none := func(string) (string, bool) { return "", false }
			err := test.command(t.Context(), args, settings.IO{Out: io.Discard, Err: io.Discard, Env: none})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if got := folder.Follows(); got != test.kind {
				t.Errorf("the node on the folder follows %q, want %q", got, test.kind)
			}
		})
	}
}

// TestStoppedDuringTheStart: a node that is told to stop during its start has done what it was told.
func TestStoppedDuringTheStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for name, node := range map[string]struct {
		command func(context.Context, []string, settings.IO) error
		args    []string
	}{
		"run":     {Run, nil},
		"cluster": {Cluster, nil},
		"serve":   {Serve, []string{"--kafka-brokers", "127.0.0.1:1", "--database-url", "postgres://127.0.0.1:1/none", "--key-url", "file:///none", "--role", "api"}},
		"follow":  {Follow(nil), []string{"--kafka-brokers", "127.0.0.1:1"}},
	} {
		none := func(string) (string, bool) { return "", false }
		args := append([]string{"--data", t.TempDir(), "--listen", "127.0.0.1:0"}, node.args...)
		if err := node.command(ctx, args, settings.IO{Out: io.Discard, Err: io.Discard, Env: none}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wrong := append(slices.Clone(args), "--data", "/dev/null/none")
		if err := node.command(ctx, wrong, settings.IO{Out: io.Discard, Err: io.Discard, Env: none}); err == nil {
			t.Errorf("%s: an error that the stop did not cause is hidden", name)
		}
	}
}
