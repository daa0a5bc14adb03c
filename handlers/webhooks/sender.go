package webhooks

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// journalName is the journal of what is sent.
const journalName = "onboarding"

// PerReceiver is how many requests are under way to one registration at a time, each about another owner.
const PerReceiver = 8

const (
	// turn is how long a job works on one registration before the others that wait get their turn.
	turn = 10 * time.Second
	// lanesAtOnce is how many owners' attempts to one registration are under way, or wait for their records.
	lanesAtOnce = 8 * PerReceiver
	// linger is how long a job waits for more before it ends.
	linger = 200 * time.Millisecond
	// tired is how many attempts in a row may get no answer before the turn ends early.
	tired = 3 * PerReceiver
	// grace is how long attempts may go on after the sender was told to stop, and then how long their records.
	grace = 3 * time.Second
	// behind is how long a fold or rows that have not come to what is known may take.
	behind = 5 * time.Second
)

// Fold is the node's own follower of the onboarding journal under onboarding.Rules.
type Fold interface {
	View(look func(s decide.State, at record.Position))
	// WaitTip returns once the fold has come to the end that the log has now.
	WaitTip(ctx context.Context) error
	// Wait returns once the fold has come to a sequence.
	Wait(ctx context.Context, sequence int64) error
	Position() record.Position
	// ListenFrom calls start with the state as it is and then call after each later record, until it is stopped.
	ListenFrom(start func(s decide.State, at record.Position), call func(e record.Entry, s decide.State)) (stop func())
}

// Config is what a sender is made of.
type Config struct {
	Node string // its name, for people
	DB   *pgxpool.Pool
	Fold Fold
	// Rows tells where the rows stand.
	Rows interface {
		Wait(ctx context.Context, sequence int64) error
		Position() record.Position
	}
	To submit.Submitter // wherever the journal's owner is
	// Owners seals what is about one owner, Box what is about none, and the keys that sign.
	Owners *seal.Owners
	Box    *seal.Box
	Client *http.Client
	// May returns nil if the venue may send now; nil for always. It is asked before each attempt.
	May      func(ctx context.Context) error
	Schedule webhook.Schedule
	Logger   *slog.Logger
}

// Sender sends to receivers what is due.
type Sender struct {
	cfg     Config
	metrics metrics
	// backlog is what is to be sent, recorder who records that it was; both are there while the sender runs.
	backlog  *backlog
	recorder *recorder
	// stopping ends when no further attempt is to begin, attempts when those under way are broken off, recording when their
	// records are not waited for any more.
	stopping, attempts, recording context.Context
}

// New makes a sender. It sends nothing before it runs.
func New(c Config) *Sender { return &Sender{cfg: c, metrics: newMetrics()} }

// Collectors are what the sender tells of itself.
func (s *Sender) Collectors() []prometheus.Collector { return s.metrics.collectors() }

// Run sends until the context ends, and then waits for the attempts under way and their records, a few seconds each. An attempt
// that it breaks off is not recorded, and will be made again with the same id and bytes.
func (s *Sender) Run(ctx context.Context) error {
	var breakOff, giveUp context.CancelFunc
	s.stopping = ctx
	s.attempts, breakOff = context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	s.recording, giveUp = context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, breakOff)
		time.AfterFunc(2*grace, giveUp)
	})()
	s.backlog = newBacklog()
	defer s.cfg.Fold.ListenFrom(s.backlog.start, s.backlog.follow)()
	s.recorder = s.startRecorder()
	defer s.recorder.stop()
	q := jobs.Queue{Pool: s.cfg.DB, Node: s.cfg.Node, Due: next, Open: open, Work: s.work, Logger: s.cfg.Logger}
	return q.Run(ctx)
}
