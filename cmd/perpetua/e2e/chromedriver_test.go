package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// asDriver is the variable that makes the test binary run a chromedriver. Its value is of no account; the arguments are the driver
// and the folder of Chromium's profile.
const asDriver = "PERPETUA_TEST_AS_DRIVER"

// driverMain runs a chromedriver until in ends: the tests close it, or their process has ended, in whatever way. Then it ends the
// driver with its Chromium, and removes the profile. It returns the exit code.
func driverMain(driver, profile string, in io.Reader, out *os.File) int {
	cmd := exec.Command(driver, "--port=0")
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	_ = out.Close() // so that it ends with the driver
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = os.RemoveAll(profile)
		return exitFailed
	}
	_, _ = io.Copy(io.Discard, in)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the driver and whatever of Chromium is in its group
	_ = cmd.Wait()
	for range 100 { // what of Chromium still dies may write
		if os.RemoveAll(profile) == nil {
			return exitDone
		}
		<-time.After(10 * time.Millisecond)
	}
	return exitFailed
}
