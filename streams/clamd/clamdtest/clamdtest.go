// Package clamdtest starts the machine's installed clamd with a database of one signature. The official database is
// large and needs a network.
package clamdtest

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/clamd"
)

const (
	// Marker is a text that the signature finds anywhere in a file.
	Marker = "perpetua-test-signature-4c1f"
	// Found is the name of the signature in a verdict.
	Found = "Perpetua.Test.UNOFFICIAL"
)

// Daemon is a clamd that this process started.
type Daemon struct{ URL string }

// Start starts a daemon that ends with the test. It skips the test if clamd is not installed.
func Start(t testing.TB) Daemon {
	t.Helper()
	binary, err := exec.LookPath("clamd")
	if err != nil {
		t.Skip("clamd is not installed (Debian: clamav-daemon)")
	}
	folder, err := os.MkdirTemp("", "clamd") // not t.TempDir: the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	d := Daemon{URL: "unix://" + filepath.Join(folder, "ctl")}
	d.run(t, binary, configured(t, folder), filepath.Join(folder, "said"))
	return d
}

// configured writes the database and the configuration of a daemon that listens on the socket ctl in the folder. It
// returns the path of the configuration.
func configured(t testing.TB, folder string) string {
	t.Helper()
	write(t, filepath.Join(folder, "db", "test.ndb"), fmt.Sprintf("Perpetua.Test:0:*:%s\n", hex.EncodeToString([]byte(Marker))))
	path := filepath.Join(folder, "clamd.conf")
	write(t, path, fmt.Sprintf(`Foreground true
LocalSocket %s
DatabaseDirectory %s
TemporaryDirectory %s
MaxThreads 4
StreamMaxLength 25M
`, filepath.Join(folder, "ctl"), filepath.Join(folder, "db"), folder))
	return path
}

// run starts the daemon and waits until it listens. The daemon's output goes to the file log.
func (d Daemon) run(t testing.TB, binary, config, log string) {
	t.Helper()
	command := exec.Command(binary, "--config-file", config)
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = command.Wait() }()
	t.Cleanup(func() { _ = command.Process.Kill(); <-ended })
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("unix", strings.TrimPrefix(d.URL, "unix://")); err == nil {
			c.Close()
			return
		}
		select {
		case <-ended:
		default:
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(log)
		t.Fatalf("clamd does not come up: %s", text)
	}
}

// Scanner returns a scanner that uses the daemon.
func (d Daemon) Scanner(t testing.TB) *clamd.Scanner {
	t.Helper()
	s, err := clamd.New(d.URL, clamd.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
