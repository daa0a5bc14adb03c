package tools

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// TestWhoseLogIsTrimmed: the rows, the snapshots, and the archive of a follower are no reason to trim the log of a venue.
func TestWhoseLogIsTrimmed(t *testing.T) {
	for _, c := range []struct {
		follows, brokers, keys, archiveKey string
		may                                bool
	}{
		{"", "", "", "", true},
		{"", "a:1", "", "", true},
		{"", "", "", "key", false},
		{"", "a:1", "", "key", false},
		{local.FollowsArchive, "", "", "", true}, // and the archive asks for its key
		{local.FollowsArchive, "", "", "key", true},
		{local.FollowsArchive, "a:1", "", "key", false},
		{local.FollowsArchive, "a:1", "file:///keys", "key", false},
		{local.FollowsBrokers, "", "", "", false},
		{local.FollowsBrokers, "", "", "key", false},
		{local.FollowsBrokers, "a:1", "", "", false},
		{local.FollowsBrokers, "a:1", "", "key", false},
		{local.FollowsBrokers, "a:1", "file:///keys", "", true}, // of the venue, and the folder is not used
	} {
		s := &settings.Settings{Data: t.TempDir()}
		s.Kafka.Brokers, s.Stores.KeyURL, s.Stores.ArchiveKey = c.brokers, c.keys, c.archiveKey
		if err := (&local.Folder{Dir: s.Data}).SetFollows(c.follows); err != nil {
			t.Fatal(err)
		}
		if err := checkTrimmed(s); (err == nil) != c.may {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
