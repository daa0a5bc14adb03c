package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errExited says that the server ended before it answered.
var errExited = errors.New("the server ended while starting")

// process is the postmaster, a child of this process.
type process struct {
	command *exec.Cmd
	done    chan struct{}
}

// launch starts the postmaster with our settings.
func (c *cluster) launch(ctx context.Context, port int) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	arguments := []string{"-D", c.data}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1",
		fmt.Sprintf("port=%d", port),
		"unix_socket_directories=",
		"max_connections=200",
		"shared_buffers=256MB", // holds the indexes that grow at random places
		// Rows and checkpoint are lost together or not at all, and the log contains the data. So Postgres need not wait
		// for the disk at every commit, nor sync several times a second next to a broker that syncs its log.
		"synchronous_commit=off",
		"wal_writer_delay=1s",
		"wal_writer_flush_after=16MB",
		"wal_buffers=16MB",
		// Nobody replicates from here.
		"wal_level=minimal",
		"max_wal_senders=0",
		// Checkpoints are rare: the first change of a page after each puts the
		// whole page into the write-ahead log.
		"max_wal_size=2GB",
		"checkpoint_timeout=30min",
		"jit=off",
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
	} {
		arguments = append(arguments, "-c", setting)
	}
	// It outlives the context that it was started with; stop ends it.
	p := &process{command: c.run(context.WithoutCancel(ctx), "postgres", arguments...), done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = log, log
	endWithParent(p.command.SysProcAttr)
	started := make(chan error)
	go func() {
		// The kernel signals the child when the thread that started it ends,
		// so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait() // its exit code is in ProcessState
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.command.Path, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// errForeign says that the server of another folder answers at the port. A copied folder has the passwords of the original, and the
// port that it remembers.
var errForeign = errors.New("another server answers at the port")

// awaitAnswer waits until the server takes connections and the database exists.
func (p *process) awaitAnswer(ctx context.Context, address url.URL) error {
	maintenance := address
	maintenance.Path = "/postgres"
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		err := p.createDatabase(ctx, maintenance.String())
		if err == nil {
			return nil
		}
		// A server that answers with an error other than "starting up" will
		// not answer differently later.
		refusal := (*pgconn.PgError)(nil)
		if errors.As(err, &refusal) && refusal.Code != "57P03" {
			return err
		}
		select {
		case <-p.done:
			return fmt.Errorf("%w (%s)", errExited, p.command.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", errors.Join(ctx.Err(), err))
		case <-pause.C:
		}
	}
}

// createDatabase creates the database, unless it exists or the server is another process.
func (p *process) createDatabase(ctx context.Context, maintenance string) error {
	connection, err := pgx.Connect(ctx, maintenance)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()
	var pid string
	if err := connection.QueryRow(ctx, `select split_part(pg_read_file('postmaster.pid'), E'\n', 1)`).Scan(&pid); err != nil {
		return err
	}
	if pid != strconv.Itoa(p.pid()) {
		return errForeign
	}
	var exists bool
	if err := connection.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", database).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = connection.Exec(ctx, "create database "+database)
	return err
}

// stop ends the server and waits for it, with less and less patience.
func (p *process) stop() error {
	for _, signal := range []os.Signal{fastShutdown, immediateShutdown, os.Kill} {
		if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("postgres: stop process %d: %w", p.pid(), err)
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(stopLimit):
		}
	}
	return fmt.Errorf("postgres: process %d does not end", p.pid())
}
