package projectiontest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Pooler passes the connections of clients on to Postgres, like PgBouncer.
type Pooler struct {
	URL    string   // of Postgres
	Drops  []string // parameters of a client's connection that it ignores
	Shares bool     // whether it pools by transaction and not by session
	Pins   bool     // whether a client keeps its session from the first lock on

	mu   sync.Mutex
	free []*pgconn.HijackedConn // the one that was used last is at the end
}

// Start returns the URL at which the pooler accepts connections until the end of the test.
func (p *Pooler) Start(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	clients.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { p.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); cancel(); clients.Wait() })
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// serve ends when the client disconnects or the test ends.
func (p *Pooler) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	b := pgproto3.NewBackend(client, client)
	message, err := b.ReceiveStartupMessage()
	startup, ok := message.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return
	}
	server, err := p.connect(ctx, startup.Parameters)
	if err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range server.ParameterStatuses {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if p.Shares {
		p.release(server) // before the client goes on, and so does its second connection
	}
	if b.Flush() != nil {
		return
	}
	if p.Shares {
		p.share(client)
		return
	}
	defer func() { _ = server.Conn.Close() }()
	go func() {
		_, _ = io.Copy(server.Conn, client)
		_ = server.Conn.Close()
	}()
	_, _ = io.Copy(client, server.Conn)
}

func (p *Pooler) connect(ctx context.Context, parameters map[string]string) (*pgconn.HijackedConn, error) {
	cfg, err := pgconn.ParseConfig(p.URL)
	if err != nil {
		return nil, err
	}
	for name, value := range parameters {
		if name != "user" && name != "database" && !slices.Contains(p.Drops, name) {
			cfg.RuntimeParams[name] = value
		}
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	// After a slow write, pgconn reads in the background. It would take the answer to the first query of a client.
	if err := conn.SyncConn(ctx); err != nil {
		return nil, err
	}
	return conn.Hijack()
}

// share gives the client a session for the time of each transaction. It supports simple queries alone.
func (p *Pooler) share(client net.Conn) {
	var server *pgconn.HijackedConn
	pinned := false
	defer func() {
		if pinned && server != nil {
			_ = server.Conn.Close()
		}
	}()
	for {
		query, err := readMessage(client)
		if err != nil || query[0] != 'Q' {
			break
		}
		pinned = pinned || p.Pins && strings.Contains(string(query), "advisory_lock")
		if server == nil {
			server = p.take()
		}
		if _, err := server.Conn.Write(query); err != nil {
			break
		}
		session := server
		for answer := []byte{0}; answer[0] != 'Z'; {
			if answer, err = readMessage(session.Conn); err != nil {
				return
			}
			// The session must be free before the client has the answer: the client may send its next query on another connection.
			if answer[0] == 'Z' && answer[5] == 'I' && !pinned {
				p.release(server)
				server = nil
			}
			if _, err := client.Write(answer); err != nil {
				return
			}
		}
	}
}

func (p *Pooler) take() *pgconn.HijackedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	server := p.free[last]
	p.free = p.free[:last]
	return server
}

func (p *Pooler) release(server *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, server)
}

// readMessage reads one message with its type and its length.
func readMessage(from io.Reader) ([]byte, error) {
	message := make([]byte, 5)
	if _, err := io.ReadFull(from, message); err != nil {
		return nil, err
	}
	message = append(message, make([]byte, binary.BigEndian.Uint32(message[1:])-4)...)
	_, err := io.ReadFull(from, message[5:])
	return message, err
}
