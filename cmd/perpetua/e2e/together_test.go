package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// uploadToAnotherOwner uploads to a node that owns no journal: the file goes into the bucket that all nodes share, and only the
// command to the owner. Repeated, it has the first answer, and its second file is discarded.
func uploadToAnotherOwner(t *testing.T, v *venue) {
	t.Helper()
	person := v.must(http.StatusCreated, "broker-a", http.MethodPost, "/api/v1/persons", `{"external_id":"p","first_name":"Anna","last_name":"Ost"}`).get("id")
	path := "/api/v1/persons/" + person + "/documents"
	content := "%PDF-1.4\n" + strings.Repeat("a page\n", 100_000) + "\nstartxref\n5\n%%EOF\n"
	first := v.upload(path, "a.pdf", content, "k")
	if again := v.upload(path, "a.pdf", content, "k"); again != first {
		t.Errorf("again %s, first %s", again, first)
	}
	v.read(path, content)
	if paths := v.uploaded(); len(paths) != 1 {
		t.Errorf("%q lies in the bucket", paths)
	}
}

// TestClusterCommand starts a cluster as `make cluster` does, from the files of a deployment, and uses each node.
func TestClusterCommand(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t, "--each", "1")
	v.verb = "cluster"
	v.start()
	t.Cleanup(v.stop)
	var file struct {
		REST  string
		Users []local.User
		Nodes []struct {
			Name, REST string
			PID        int
		}
	}
	content, err := os.ReadFile(filepath.Join(v.dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Nodes) != 5 || file.REST != v.REST || len(file.Users) != 4 {
		t.Fatalf("run.json: %s", content)
	}
	v.fund("10000", "ANNA")
	v.must(http.StatusCreated, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.100","limit_price":"65000.0"}`)
	for _, n := range file.Nodes {
		node := *v
		node.REST = n.REST
		node.must(http.StatusOK, "", http.MethodGet, "/readyz", nil)
	}
	livetest.Dial(t, v.WebSocket, v.token("broker-a")) // the live node takes a token of the api node
	uploadToAnotherOwner(t, v)
	v.stop()
	for _, n := range file.Nodes {
		if err := syscall.Kill(n.PID, 0); err != syscall.ESRCH {
			t.Errorf("%s is left behind: %v", n.Name, err)
		}
	}
}
