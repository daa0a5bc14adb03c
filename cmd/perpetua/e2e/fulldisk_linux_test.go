package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk fills the disk that the log is on while orders come. The venue must end by itself, say why, and answer
// nothing 2xx that is not in its log; with room on the disk it goes on where it was.
func TestFullDisk(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	v := newVenue(t)
	log := filepath.Join(v.dir, "kafka")
	if err := os.Mkdir(log, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", log, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("no file system may be mounted here:", err) // streams/broker has its tests without one
	}
	t.Cleanup(func() {
		if err := unix.Unmount(log, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	v.start()
	v.fund("10000", "ANNA")
	answered := map[string]bool{}
	place := func(n int) (taken bool) {
		reference := fmt.Sprint("order-", n)
		a, err := v.try("broker-a", http.MethodPost, annasOrders, map[string]any{"symbol": "BTCUSDC_PERP", "action": "buy", "type": "limit",
			"amount": "0.001", "limit_price": "10000.0", "reference_id": reference})
		taken = err == nil && a.Status == http.StatusCreated
		if taken {
			answered[reference] = true
		}
		return taken
	}
	n := 0
	taken := func() bool { // a busy machine may refuse an order
		n++
		return place(n)
	}
	waitFor(t, "an order that is taken with room on the disk", taken)
	fill(t, filepath.Join(log, "filler"))
	waitFor(t, "a full disk to be noticed", func() bool { // the segment's last page has room for a few orders
		if taken() {
			return false
		}
		a, err := v.try("", http.MethodGet, "/readyz", nil)
		return err != nil || a.Status == http.StatusServiceUnavailable
	})
	if code := v.ended(); code != exitFailed || !strings.Contains(v.output.said(), "no space left on device") || !strings.Contains(v.output.said(), log) {
		t.Errorf("with its disk full, perpetua exits with %d and says:\n%s", code, v.output)
	}
	if err := os.Remove(filepath.Join(log, "filler")); err != nil {
		t.Fatal(err)
	}
	v.start()
	defer v.stop()
	kept := strings.Join(v.records("trading"), "\n")
	for reference := range answered {
		if !strings.Contains(kept, `"`+reference+`"`) {
			t.Errorf("%s was answered 201 and is not in the log", reference)
		}
	}
	waitFor(t, "an order that is taken with room on the disk again", taken)
}

// fill writes a file that takes all room there is.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for {
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			return
		}
	}
}
