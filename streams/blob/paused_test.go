package blob

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestAPauseOfTheProcess stops a process for longer than it waits for a store. The store answers soon after the process continues,
// and is not called silent.
func TestAPauseOfTheProcess(t *testing.T) {
	const quietFor, paused = 800 * time.Millisecond, "PERPETUA_TEST_PAUSED"
	answer := func() (int, error) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return 0, err
		}
		<-time.After(quietFor / countSteps)
		return 1, nil
	}
	questions := map[string]func() (int, error){
		"ask": func() (int, error) {
			return ask(t.Context(), newLine(), quietFor, func(context.Context, func()) (int, error) { return answer() })
		},
		"worker": func() (int, error) {
			w := newWorker(newLine())
			defer w.end()
			return w.ask(quietFor, func([]byte) (int, error) { return answer() }, nil)
		},
	}
	if question, child := questions[os.Getenv(paused)]; child {
		fmt.Println(question())
		os.Exit(0)
	}
	for name := range questions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPauseOfTheProcess$")
			cmd.Env = append(os.Environ(), paused+"="+name)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
				t.Fatalf("the process does not stop: %v %v", status, err)
			}
			<-time.After(2 * quietFor)
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if said, err := bufio.NewReader(out).ReadString('\n'); said != "1 <nil>\n" {
				t.Errorf("the answer is %q (%v)", said, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
