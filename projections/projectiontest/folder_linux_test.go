package projectiontest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asHolder is the variable that makes the test binary hold a folder, below the one that it names, until it is killed.
const asHolder = "PERPETUA_TEST_HOLDS_FOLDER"

func TestMain(m *testing.M) {
	parent := os.Getenv(asHolder)
	if parent == "" {
		os.Exit(m.Run())
	}
	dir, err := lockedFolder(parent, "theirs-")
	if err != nil {
		panic(err)
	}
	fmt.Println(dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is gone, at the latest
}

// TestFoldersOfKilledTestsAreSwept: the folder of a process that lives stays; that of one which was killed, the next one
// removes.
func TestFoldersOfKilledTestsAreSwept(t *testing.T) {
	parent := t.TempDir()
	own, err := lockedFolder(parent, "own-*")
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(parent, "foreign")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asHolder+"="+parent)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	theirs = strings.TrimSuffix(theirs, "\n")
	if err := os.MkdirAll(filepath.Join(theirs, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	there := func(when string, want ...string) {
		t.Helper()
		sweep(parent)
		for _, dir := range want {
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	there("while both live", own, theirs, foreign)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	there("after one was killed", own, foreign)
	if _, err := os.Stat(theirs); err == nil {
		t.Error("the folder of the one that was killed is still there")
	}
}
