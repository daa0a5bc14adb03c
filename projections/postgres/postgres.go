// Package postgres runs an embedded Postgres server for the projections, so that `perpetua run` needs no installation.
//
// It uses the newest Postgres on the machine, or downloads one, and starts it on loopback with a random password.
// Postgres refuses to run as root. A process that runs as root starts it as the user postgres or nobody, in a folder
// that this user can reach.
//
// The role in the URL owns the database but is not a superuser. Start creates it. In a data directory of an earlier
// version, in which a superuser owns everything, Start transfers the ownership to that role.
//
// The database contains only projections, which can be rebuilt from the log. So the settings trade some durability for
// speed, but never consistency: synchronous_commit is off, and a power failure may lose the last transactions, rows and
// checkpoint together. For the same reason, a cluster that cannot be used, because of another major version or a
// missing password, is replaced by an empty one.
//
// If this process is killed, the server is stopped (on Linux) or continues as an orphan. The next Start in the folder
// stops the orphan and starts a new server.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

const (
	// superuser is the role that initdb makes. It owns the server, and nothing connects as it but Start and administrators.
	superuser = "perpetua"
	// Owner is the role of the URL. It owns the database and may do nothing else.
	Owner = "perpetua_venue"
	// database is the database of the URL.
	database = "perpetua"

	// startLimit bounds a start with crash recovery.
	startLimit = 5 * time.Minute
	// stopLimit is how long a fast shutdown may take before an immediate one.
	stopLimit = 20 * time.Second
)

// Config says where to run the server.
type Config struct {
	// Dir is the server's folder, created if missing. Required. It should be
	// reachable (mode x for others on it and its parents) when started by root;
	// where it is not, the data lie elsewhere and Dir/location names the place.
	Dir string
	// Logger gets the launcher's messages; slog.Default() if nil. The server's
	// own go to Dir/postgres.log.
	Logger *slog.Logger
}

// Server is a running Postgres server.
type Server struct {
	url     string // as the owner of the database
	admin   string // as the superuser
	process *process
	lock    *broker.Lock
	logger  *slog.Logger
	once    sync.Once
	err     error
}

// Start starts the server and returns when it answers. If another process uses
// the folder, the error is a *broker.InUseError.
func Start(ctx context.Context, config Config) (*Server, error) {
	if config.Dir == "" {
		return nil, errors.New("postgres: no folder")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	lock, err := broker.LockFolderSoon(ctx, dir, config.Logger)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s := &Server{lock: lock, logger: config.Logger}
	if err := s.open(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), lock.Unlock())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, dir string) error {
	c, err := openCluster(ctx, dir, s.logger)
	if err != nil {
		return err
	}
	if err := c.stopOrphan(ctx); err != nil {
		return err
	}
	password, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	ownerPassword, err := c.ownerPassword()
	if err != nil {
		return err
	}
	// Another process may take the port between the choice and Postgres's listen, so try several.
	for attempt := 1; ; attempt++ {
		port, err := c.choosePort(ctx, attempt)
		if err != nil {
			return err
		}
		address := url.URL{
			Scheme: "postgres", User: url.UserPassword(superuser, password),
			Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/" + database, RawQuery: "sslmode=disable",
		}
		s.process, err = c.launch(ctx, port)
		if err != nil {
			return err
		}
		err = s.process.awaitAnswer(ctx, address)
		if err == nil {
			err = separate(ctx, address.String(), ownerPassword)
		}
		if err == nil {
			s.admin = address.String()
			address.User = url.UserPassword(Owner, ownerPassword)
			s.url = address.String()
			s.logger.Info("embedded Postgres started", "port", port, "dir", c.data, "pid", s.process.pid())
			return c.rememberPort(port)
		}
		err = errors.Join(err, s.process.stop())
		if attempt == 5 || !errors.Is(err, errExited) || ctx.Err() != nil {
			return fmt.Errorf("%w\n%s", err, c.lastLog())
		}
	}
}

// URL returns the address of the database with the name and password of its owner, which is not a superuser.
func (s *Server) URL() string { return s.url }

// AdminURL returns the address of the database with the password of the superuser, for administration such as creating roles.
func (s *Server) AdminURL() string { return s.admin }

// AdminURL returns the URL of a database on the server of a folder, which some process has started, with the password of
// the superuser in place of the user and the password in the URL. The caller must be allowed to read the server's files.
func AdminURL(dir, address string) (string, error) {
	base := filepath.Join(dir, "cluster")
	if text, err := os.ReadFile(filepath.Join(dir, locationFile)); err == nil {
		base = strings.TrimSpace(string(text))
	}
	password, err := os.ReadFile(filepath.Join(base, "data", passwordFile))
	if err != nil {
		return "", fmt.Errorf("postgres: the administrator's password: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("postgres: the address of the database: %w", err)
	}
	u.User = url.UserPassword(superuser, strings.TrimSpace(string(password)))
	return u.String(), nil
}

// Done is closed when the server's process has ended, after Close or for another reason.
func (s *Server) Done() <-chan struct{} { return s.process.done }

// Close stops the server, ending open connections, and waits until it is gone.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.err = errors.Join(s.process.stop(), s.lock.Unlock())
		s.logger.Info("embedded Postgres stopped")
	})
	return s.err
}

// Postgres's shutdown signals. Fast ends the sessions and writes a checkpoint. Immediate ends the server without a
// checkpoint and leaves recovery to the next start.
const (
	fastShutdown      = syscall.SIGINT
	immediateShutdown = syscall.SIGQUIT
)
