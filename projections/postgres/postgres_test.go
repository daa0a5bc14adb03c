package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// The test binary starts itself again as a server's parent (to be killed) and
// as another user.
const (
	serveVariable = "PERPETUA_TEST_SERVE"
	userVariable  = "PERPETUA_TEST_AS_USER"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVariable); dir != "" {
		os.Exit(serve(dir))
	}
	code := m.Run()
	if used.dir != "" {
		os.RemoveAll(used.dir)
	}
	os.Exit(code)
}

// serve runs a server until its input ends.
func serve(dir string) int {
	s, err := postgres.Start(context.Background(), postgres.Config{Dir: dir})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	fmt.Println("ready", s.URL())
	bufio.NewReader(os.Stdin).ReadString('\n')
	s.Close()
	return 0
}

// folder makes a folder that another user can reach; t.TempDir() may not be. It is in memory if possible, because
// initdb writes and syncs a thousand files for each test.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := projectiontest.Folder("perpetua-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// used is a folder whose server has been started and stopped. TestMain removes it.
var used struct {
	once sync.Once
	dir  string
	err  error
}

// usedFolder makes a copy of a folder whose server has been started before. To initialize one takes more processor time than the rest
// of most tests. The copy remembers no port.
func usedFolder(t *testing.T) string {
	t.Helper()
	used.once.Do(func() {
		if used.dir, used.err = projectiontest.Folder("perpetua-test-"); used.err != nil {
			return
		}
		var s *postgres.Server
		if s, used.err = postgres.Start(context.Background(), postgres.Config{Dir: used.dir, Logger: slog.New(slog.DiscardHandler)}); used.err == nil {
			used.err = errors.Join(s.Close(), os.Remove(filepath.Join(used.dir, "port")))
		}
	})
	if used.err != nil {
		t.Fatal(used.err)
	}
	dir := folder(t)
	if out, err := exec.Command("cp", "-a", used.dir+"/.", dir).CombinedOutput(); err != nil { // which keeps the owner
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// reservePort gives the server of a folder a port that no other process takes while the server is down.
func reservePort(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(kafkatest.Port(t)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, dir string) *postgres.Server {
	t.Helper()
	s, err := postgres.Start(t.Context(), postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	port, err := os.ReadFile(filepath.Join(dir, "port"))
	if err != nil || !strings.Contains(s.URL(), ":"+strings.TrimSpace(string(port))+"/") {
		t.Errorf("the server at %s remembers the port %q, %v", s.URL(), port, err)
	}
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func ask[T any](t *testing.T, c *pgx.Conn, sql string, arguments ...any) T {
	t.Helper()
	var v T
	if err := c.QueryRow(t.Context(), sql, arguments...).Scan(&v); err != nil {
		t.Fatal(sql, err)
	}
	return v
}

func TestStartStopStart(t *testing.T) {
	dir := folder(t)
	reservePort(t, dir)
	s := start(t, dir)
	c := connect(t, s.URL())
	for setting, want := range map[string]string{
		"server_encoding": "UTF8", "lc_collate": "C", "lc_ctype": "C", "fsync": "on",
		"full_page_writes": "on", "listen_addresses": "127.0.0.1", "TimeZone": "UTC",
	} {
		sql := "select current_setting($1)"
		switch setting {
		case "lc_collate":
			sql = "select datcollate from pg_database where datname = current_database() and $1 <> ''"
		case "lc_ctype":
			sql = "select datctype from pg_database where datname = current_database() and $1 <> ''"
		}
		if got := ask[string](t, c, sql, setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if got := ask[string](t, c, "select current_database()"); got != "perpetua" {
		t.Errorf("database %q", got)
	}
	if _, err := c.Exec(t.Context(), "create table kept as select 7 as n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	default:
		t.Fatal("Close returned while the server was running")
	}
	again := start(t, dir)
	if again.URL() != s.URL() {
		t.Errorf("the address was %s and is %s", s.URL(), again.URL())
	}
	if n := ask[int](t, connect(t, again.URL()), "select n from kept"); n != 7 {
		t.Errorf("the row is %d", n)
	}
}

func TestPasswordIsNeeded(t *testing.T) {
	s := start(t, usedFolder(t))
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Password = "wrong"
	if c, err := pgx.ConnectConfig(t.Context(), config); err == nil {
		c.Close(t.Context())
		t.Fatal("connected with a wrong password")
	}
}

func TestSecondStartIsRefused(t *testing.T) {
	dir := usedFolder(t)
	start(t, dir)
	ended, end := context.WithCancel(t.Context())
	end() // else the start waits
	_, err := postgres.Start(ended, postgres.Config{Dir: dir})
	if inUse := (*broker.InUseError)(nil); !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("got %v, want the folder in use by this process", err)
	}
}

// child starts this test binary as a process that runs a server on dir.
func child(t *testing.T, dir string) (command *exec.Cmd, url string) {
	t.Helper()
	command = exec.Command(os.Args[0])
	command.Env = append(os.Environ(), serveVariable+"="+dir)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); command.Process.Kill(); command.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || word != "ready" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return command, rest
}

func TestParentKilled(t *testing.T) {
	dir := usedFolder(t)
	command, url := child(t, dir)
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), "create table kept as select 7 as n"); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	command.Wait()
	s := start(t, dir)
	if n := ask[int](t, connect(t, s.URL()), "select n from kept"); n != 7 {
		t.Errorf("the row is %d", n)
	}
}

// An orphan whose parent's death it did not hear of, as on systems other than
// Linux: a server started by hand on the same data directory.
func TestOrphanIsStopped(t *testing.T) {
	dir := usedFolder(t)
	s := start(t, dir)
	c := connect(t, s.AdminURL()) // only an administrator may see the folder
	data := ask[string](t, c, "select current_setting('data_directory')")
	pid := postmaster(t, data)
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.Skip("no /proc")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+data)
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		owner := info.Sys().(*syscall.Stat_t)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	command.Dir = data
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { command.Wait(); close(ended) }()
	t.Cleanup(func() { command.Process.Kill(); <-ended })
	await(t, "the orphan to run", func() bool {
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return err == nil && strings.Contains(string(text), "ready")
	})
	start(t, dir)
	select {
	case <-ended:
	case <-time.After(time.Minute): // to tell a failure: the orphan ended before Start returned, but the goroutine may be late
		t.Fatal("the orphan still runs")
	}
}

// A session in the middle of its work outlives a postmaster that is killed. It must be gone before another server
// writes to the same files.
func TestChildrenOfAKilledPostmaster(t *testing.T) {
	dir := usedFolder(t)
	s := start(t, dir)
	c := connect(t, s.AdminURL()) // only an administrator may see the folder
	data := ask[string](t, c, "select current_setting('data_directory')")
	busy := ask[int](t, c, "select pg_backend_pid()")
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", busy)); err != nil {
		t.Skip("no /proc")
	}
	ended := make(chan error, 1)
	go func() {
		// Not for ever, or it would outlive a test that fails.
		_, err := c.Exec(context.Background(), "do $$ begin while clock_timestamp() < now() + interval '5 minutes' loop null; end loop; end $$")
		ended <- err
	}()
	watch := connect(t, s.AdminURL())
	await(t, "the session to be busy", func() bool {
		return ask[string](t, watch, "select state from pg_stat_activity where pid = $1", busy) == "active"
	})
	if err := syscall.Kill(postmaster(t, data), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s.Close()
	again := start(t, dir)
	select {
	case <-ended:
	case <-time.After(time.Minute): // to tell a failure; the process ended before Start returned
		syscall.Kill(busy, syscall.SIGKILL)
		t.Fatal("a session of the killed server works beside the new one")
	}
	ask[int](t, connect(t, again.URL()), "select 1")
}

// TestMigrateAfterACrash kills a server after the first migrations and before a checkpoint. A later build can still add a migration.
func TestMigrateAfterACrash(t *testing.T) {
	dir := usedFolder(t)
	s := start(t, dir)
	migrate(t, s.URL())
	if err := syscall.Kill(postmaster(t, ask[string](t, connect(t, s.AdminURL()), "select current_setting('data_directory')")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s.Close()
	again := start(t, dir)
	migrate(t, again.URL())
	ask[int64](t, connect(t, again.URL()), "insert into schema_versions (version_id, is_applied) values (1000000, true) returning version_id")
}

// A pid file that names a living process which is no Postgres.
func TestStalePIDFileOfAnotherProcess(t *testing.T) {
	dir := usedFolder(t)
	s := start(t, dir)
	data := ask[string](t, connect(t, s.AdminURL()), "select current_setting('data_directory')")
	s.Close()
	other := exec.Command("sleep", "3600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { other.Process.Kill(); other.Wait() }()
	text := fmt.Sprintf("%d\n%s\n1\n1\n\n\n\n", other.Process.Pid, data)
	if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatal("the other process was stopped", err)
	}
}

func TestUnusableDataAreReplaced(t *testing.T) {
	for name, spoil := range map[string]func(password string) error{
		"no password":       os.Remove,
		"an empty password": func(password string) error { return os.Truncate(password, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := usedFolder(t)
			s := start(t, dir)
			data := ask[string](t, connect(t, s.AdminURL()), "select current_setting('data_directory')")
			s.Close()
			if err := spoil(filepath.Join(data, "perpetua.password")); err != nil {
				t.Fatal(err)
			}
			if got := ask[int](t, connect(t, start(t, dir).URL()), "select 1"); got != 1 {
				t.Fatal(got)
			}
		})
	}
}

func TestFolderThatTheServersUserCannotReach(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := folder(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "postgres")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	reservePort(t, inner)
	s := start(t, inner)
	text, err := os.ReadFile(filepath.Join(inner, "location"))
	if err != nil {
		t.Fatal(err)
	}
	place := strings.TrimSpace(string(text))
	t.Cleanup(func() { os.RemoveAll(place) })
	data := ask[string](t, connect(t, s.AdminURL()), "select current_setting('data_directory')")
	if filepath.Dir(data) != place {
		t.Fatalf("data in %s, location says %s", data, place)
	}
	s.Close()
	if again := start(t, inner); again.URL() != s.URL() {
		t.Fatalf("another server: %s", again.URL())
	}
}

// TestCopiedFolder copies a folder whose data lie elsewhere. The copy must not take the original's data for its own: it
// would stop the original's server, and find rows that are ahead of its log. A folder that was only moved keeps its data.
func TestCopiedFolder(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: otherwise the data are in the folder, and copied with it")
	}
	parent := folder(t)
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "original")
	dataOf := func(s *postgres.Server) string {
		return ask[string](t, connect(t, s.AdminURL()), "select current_setting('data_directory')")
	}
	s := start(t, dir)
	data := dataOf(s)
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(data)) })
	if _, err := connect(t, s.URL()).Exec(t.Context(), "create table kept as select 7 as n"); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(parent, "copy")
	if out, err := exec.Command("cp", "-a", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other := start(t, copied)
	othersData := dataOf(other)
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(othersData)) })
	if othersData == data {
		t.Fatal("the copy has the data of the original")
	}
	if n := ask[int](t, connect(t, other.URL()), "select count(*) from pg_tables where tablename = 'kept'"); n != 0 {
		t.Error("the copy has the rows of the original")
	}
	select {
	case <-s.Done():
		t.Error("the copy has stopped the server of the original")
	default:
	}
	other.Close()
	if again := start(t, copied); dataOf(again) != othersData {
		t.Error("the copy does not find its own data again")
	}
	s.Close()
	moved := filepath.Join(parent, "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, connect(t, start(t, moved).URL()), "select n from kept"); n != 7 {
		t.Errorf("after a move the row is %d", n)
	}
}

// Run by root, the suite runs once more as an ordinary user.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 || os.Getenv(userVariable) != "" {
		t.Skip("needs root")
	}
	dir := folder(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	programs, err := os.MkdirTemp("", "perpetua-test-") // a file system in memory may refuse to run programs
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(programs) })
	if err := os.Chmod(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(programs, "postgres.test")
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-test.v", "-test.run", "StartStopStart|ParentKilled|OrphanIsStopped")
	command.Dir = dir
	command.Env = append(os.Environ(), userVariable+"=1", "HOME="+dir, "TMPDIR="+dir)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := command.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
}

func postmaster(t *testing.T, data string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// await polls a condition that nothing announces, for at most 90 s.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(90 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatal("waited in vain for " + what)
		case <-tick.C:
		}
	}
}
