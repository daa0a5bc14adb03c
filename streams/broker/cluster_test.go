package broker

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// clusterOf returns the cluster id that a broker on a folder gives its clients.
func clusterOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := Start(t.Context(), Config{Dir: dir, Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	kc, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer kc.Close()
	m, err := kadm.NewClient(kc).BrokerMetadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Cluster
}

// TestACopiedFolderIsAnotherCluster: the cluster id stays over restarts and when the folder is renamed, and a copy of the
// folder has its own.
func TestACopiedFolderIsAnotherCluster(t *testing.T) {
	root := t.TempDir()
	one, moved, copied := filepath.Join(root, "one"), filepath.Join(root, "moved"), filepath.Join(root, "copied")
	first := clusterOf(t, one)
	if !Embedded(first) {
		t.Errorf("the cluster id is %q", first)
	}
	if again := clusterOf(t, one); again != first {
		t.Errorf("restarted, the cluster id is %q, before %q", again, first)
	}
	if out, err := exec.Command("cp", "-a", one, copied).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	if other := clusterOf(t, copied); other == first || !Embedded(other) {
		t.Errorf("the copy's cluster id is %q, the original's %q", other, first)
	}
	if err := os.Rename(one, moved); err != nil {
		t.Fatal(err)
	}
	if again := clusterOf(t, moved); again != first {
		t.Errorf("renamed, the cluster id is %q, before %q", again, first)
	}
}
