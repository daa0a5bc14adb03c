package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is a Postgres data directory with the account and the binaries that run it.
type cluster struct {
	account  account
	binaries string // the folder of postgres and initdb
	base     string // created by this package and owned by the account; contains data
	data     string // the data directory
	log      string
	port     string // the file with the last port
	logger   *slog.Logger
}

// passwordFile is kept inside the data directory, so that both appear and
// disappear together. Mode 0600.
const passwordFile = "perpetua.password"

// ownerPasswordFile contains the password of the role Owner. It is in the same folder as passwordFile.
const ownerPasswordFile = Owner + ".password"

// openCluster finds the data folder, the account and the binaries.
func openCluster(ctx context.Context, dir string, logger *slog.Logger) (*cluster, error) {
	account, err := chooseAccount(filepath.Join(dir, "cluster", "data"))
	if err != nil {
		return nil, err
	}
	c := &cluster{
		account: account,
		log:     filepath.Join(dir, "postgres.log"),
		port:    filepath.Join(dir, "port"),
		logger:  logger,
	}
	if c.base, err = account.dataFolder(dir, logger); err != nil {
		return nil, err
	}
	c.data = filepath.Join(c.base, "data")
	version, _ := c.version()
	if c.binaries, err = findBinaries(ctx, account, version, logger); err != nil {
		return nil, err
	}
	// The server's log starts again when it has grown large.
	if info, err := os.Stat(c.log); err == nil && info.Size() > 16<<20 {
		if err := os.Truncate(c.log, 0); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// version is the major version that made the data directory, "" if there is none.
func (c *cluster) version() (string, error) {
	text, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	return strings.TrimSpace(string(text)), err
}

// prepare makes sure of a usable data directory and returns its password.
func (c *cluster) prepare(ctx context.Context) (string, error) {
	version, err := c.version()
	if err == nil {
		ours, err := majorVersion(ctx, c.binaries)
		if err != nil {
			return "", err
		}
		password, err := os.ReadFile(filepath.Join(c.data, passwordFile))
		switch {
		case err == nil && version == ours && len(password) > 0:
			return strings.TrimSpace(string(password)), nil
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return "", err
		}
		c.logger.Warn("the embedded Postgres data cannot be used by this Postgres; starting with an empty database, which the projections fill again",
			"dir", c.data, "version", version, "postgres", ours, "password", len(password) > 0)
		if err := os.RemoveAll(c.data); err != nil {
			return "", err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w (made by another user?)", err)
	}
	return c.initialize(ctx)
}

// ownerPassword returns the password of the role Owner, which the data directory of an earlier version does not have yet.
func (c *cluster) ownerPassword() (string, error) {
	file := filepath.Join(c.data, ownerPasswordFile)
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	password := rand.Text()
	return password, c.account.writeFile(file, password+"\n")
}

// initialize runs initdb in a temporary folder and renames the result, so that a killed process leaves no partial data
// directory. Each folder has another name: initdb may outlive a killed process for a moment, and it removes its folder when it fails.
func (c *cluster) initialize(ctx context.Context) (string, error) {
	left, err := filepath.Glob(filepath.Join(c.base, "new*"))
	if err != nil {
		return "", err
	}
	for _, path := range append(left, c.data) {
		if err := removeAll(ctx, path); err != nil {
			return "", err
		}
	}
	password := rand.Text()
	fresh := filepath.Join(c.base, "new-"+rand.Text())
	file := fresh + ".password"
	if err := c.account.writeFile(file, password+"\n"); err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file) }() // already moved if all went well
	command := c.run(ctx, "initdb", "-D", fresh, "--username", superuser, "--pwfile", file,
		"--encoding", "UTF8", "--locale", "C", "--auth", "scram-sha-256")
	endWithParent(command.SysProcAttr)
	out, err := output(command)
	if ctx.Err() != nil {
		return "", fmt.Errorf("initdb: %w", ctx.Err())
	} else if err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := os.Rename(file, filepath.Join(fresh, passwordFile)); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, c.data); err != nil {
		return "", err
	}
	c.logger.Info("embedded Postgres initialized", "dir", c.data, "user", c.account.name)
	return password, nil
}

// output runs a command that ends with this process, and returns what it prints.
func output(command *exec.Cmd) ([]byte, error) {
	// The kernel signals the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return command.CombinedOutput()
}

// removeAll removes a folder to which a process may still write: os.RemoveAll fails if a file appears in the meantime.
func removeAll(ctx context.Context, path string) error {
	for attempt := 1; ; attempt++ {
		err := os.RemoveAll(path)
		if err == nil || attempt == 100 || !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// run prepares one of the Postgres programs to run as the account, without this
// process's PG… variables, away from the terminal's Ctrl-C.
func (c *cluster) run(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(c.binaries, program), arguments...)
	command.Dir = c.base
	command.Env = []string{"PATH=" + c.binaries + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + c.base}
	command.SysProcAttr = c.account.attributes()
	return command
}

// choosePort returns the last port at the first attempt, if it is free.
func (c *cluster) choosePort(ctx context.Context, attempt int) (int, error) {
	want := 0
	if text, err := os.ReadFile(c.port); err == nil && attempt == 1 {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16); err == nil {
			want = int(n)
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", want))
	if err != nil && want != 0 {
		listener, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

func (c *cluster) rememberPort(port int) error {
	return os.WriteFile(c.port, fmt.Appendln(nil, port), 0o600)
}

// lastLog returns the end of the server's log, for an error.
func (c *cluster) lastLog() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
