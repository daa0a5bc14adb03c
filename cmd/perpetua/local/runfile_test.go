package local_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
)

// TestRunFileOfAnotherProcess: a process on a copied folder, such as a trim, does not make the run.json of the original that of the copy.
func TestRunFileOfAnotherProcess(t *testing.T) {
	original, err := local.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer original.Close()
	sleeper := exec.Command("cat")
	input, err := sleeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { input.Close(); _ = sleeper.Wait() }()
	path := original.Path("run.json")
	for pid, is := range map[int]bool{os.Getpid(): true, sleeper.Process.Pid: false} {
		if err := local.WriteRunFile(path, local.RunFile{PID: pid, REST: "http://x"}); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := local.ReadRunFile(path); ok != is || err != nil {
			t.Errorf("run.json of the process %d: %v, %v", pid, ok, err)
		}
	}
}

// TestRunFileWithAHiddenLock: a user may read run.json and not the lock. The process id then decides.
func TestRunFileWithAHiddenLock(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every file")
	}
	folder, err := local.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := local.WriteRunFile(folder.Path("run.json"), local.RunFile{PID: os.Getpid(), REST: "http://x"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder.Path("lock"), 0); err != nil {
		t.Fatal(err)
	}
	if r, ok, err := local.ReadRunFile(folder.Path("run.json")); !ok || err != nil || r.REST != "http://x" {
		t.Errorf("%+v, %v, %v", r, ok, err)
	}
}
