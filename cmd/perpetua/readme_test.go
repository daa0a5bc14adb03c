package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// readmeBlocks returns the code of a language in a section of the README, block by block.
func readmeBlocks(t *testing.T, section, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the README has no section %q", section)
	}
	text2, _, _ = strings.Cut(text2, "\n## ")
	for {
		var block string
		if _, text2, found = strings.Cut(text2, "\n```"+language+"\n"); !found {
			return blocks
		}
		block, text2, _ = strings.Cut(text2, "\n```\n")
		blocks = append(blocks, block+"\n")
	}
}

// reservedPort returns a port of the loopback interface for a program that is started later. Until the test ends the system gives
// it to nobody who asks for any port, since it is bound here; but a server that names it may listen, as both reuse addresses.
func reservedPort(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(socket)
	t.Cleanup(func() { unix.Close(socket) })
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(bound.(*unix.SockaddrInet4).Port)
}

// walk is the section of the README that is walked through, in a folder where everything is as the README has it.
type walk struct {
	t      *testing.T
	folder string
}

// newWalk makes the folder: the data folder and the binary are those of the venue.
func newWalk(t *testing.T, v *venue) *walk {
	t.Helper()
	w := &walk{t, t.TempDir()}
	if err := os.Symlink(v.dir, filepath.Join(w.folder, "data")); err != nil {
		t.Fatal(err)
	}
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	w.write("bin/perpetua", "#!/bin/sh\n"+asPerpetua+"=1 exec '"+binary+"' \"$@\"\n")
	return w
}

func (w *walk) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// bash runs lines, which end at the first that fails, and returns what they print.
func (w *walk) bash(lines string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "bash", "-euc", lines)
	cmd.Dir = w.folder
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%v:\n%s", err, said.said())
	}
	return said.said()
}

// TestReadmeOnboarding walks through the onboarding service exactly as the README does, but for the receiver's port: the
// certificate, the receiver, the seven steps.
func TestReadmeOnboarding(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, tool := range []string{"bash", "curl", "jq", "openssl", "python3", "base64"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the walk needs %s", tool)
		}
	}
	const section = "The onboarding service"
	scripts, receivers := readmeBlocks(t, section, "sh"), readmeBlocks(t, section, "python")
	if len(scripts) != 2 || len(receivers) != 1 {
		t.Fatalf("%d scripts and %d receivers", len(scripts), len(receivers))
	}
	port := reservedPort(t)
	before, start, found := strings.Cut(scripts[0], "\nmake run ARGS=\"")
	if !found {
		t.Fatal("the venue is not started")
	}
	arguments, _, _ := strings.Cut(start, "\"")

	v := newVenue(t, "--demo")
	w := newWalk(t, v)
	w.write("receiver/receiver.py", strings.ReplaceAll(receivers[0], "8443", port))
	w.bash(before + "\n")
	for _, a := range strings.Fields(arguments) {
		if strings.HasPrefix(a, "receiver/") {
			a = filepath.Join(w.folder, a) // the venue runs elsewhere
		}
		v.args = append(v.args, a)
	}
	v.start()
	t.Cleanup(v.stop)

	said := w.bash("trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + strings.ReplaceAll(scripts[1], "8443", port))
	for _, part := range []string{
		`"reason":"retail_onboarding"`,            // what is required
		`"answer_text":"Engineer"`,                // the response
		`"status": "ongoing"`,                     // after the request for information
		`"result": "success"`,                     // after the approval
		`"type":"entitlementCompleted"`,           // the final webhook
		`"internal_reason": "Seen by two of us."`, // the case
		`"status":"finished","result":"success"`,  // as the broker sees it
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the walk does not say %s", part)
		}
	}
	if t.Failed() {
		t.Logf("it says:\n%s", said)
	}
}
