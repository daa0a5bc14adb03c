package webhooks

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// journalName is the journal of notices and deliveries.
const journalName = "onboarding"

// PerReceiver is the maximum number of concurrent requests to one webhook. Each is about another owner.
const PerReceiver = 8

const (
	// turn is how long a job works on one webhook before waiting jobs run.
	turn = 10 * time.Second
	// queuesAtOnce is the maximum number of queues of one webhook with an attempt or a record in progress.
	queuesAtOnce = 8 * PerReceiver
	// linger is how long a job waits for new deliveries before it ends.
	linger = 200 * time.Millisecond
	// failureLimit is the number of consecutive unanswered attempts after which the turn ends early.
	failureLimit = 3 * PerReceiver
	// grace is how long attempts may continue after the sender is stopped, and then again how long their records may
	// take.
	grace = 3 * time.Second
	// behind is the timeout for a fold or rows that lag.
	behind = 5 * time.Second
)

// Config holds the dependencies of a sender.
type Config struct {
	Node string // the node's name, for humans
	DB   *pgxpool.Pool
	Fold record.Follower // of the onboarding journal
	// Rows returns the position of the rows.
	Rows interface {
		Wait(ctx context.Context, sequence int64) error
		Position() record.Position
	}
	To submit.Submitter // the journal's owner, on any node
	// Owners encrypts data about one owner. Box encrypts data about none, and the signing keys.
	Owners *seal.Owners
	Box    *seal.Box
	Client *http.Client
	// May returns nil if the venue may send now. It is called before each attempt; it may be nil.
	May func(ctx context.Context) error
	// Confirm returns nil if the key store is that of the venue now. It is called if an owner's key is missing; it may be nil.
	Confirm  func(ctx context.Context) error
	Schedule webhook.Schedule
	Logger   *slog.Logger
}

// Sender sends due deliveries to receivers.
type Sender struct {
	cfg     Config
	metrics metrics
	// backlog holds the open deliveries and recorder records attempts. Both are set while the sender runs.
	backlog  *backlog
	recorder *recorder
	// When the sender stops, stopping ends first and prevents new attempts. Then attempts ends and aborts those in
	// progress. Finally recording ends and abandons records in progress.
	stopping, attempts, recording context.Context
}

// New returns a sender. It sends nothing before Run is called.
func New(c Config) *Sender { return &Sender{cfg: c, metrics: newMetrics()} }

// Collectors returns the sender's metrics.
func (s *Sender) Collectors() []prometheus.Collector { return s.metrics.collectors() }

// Run sends until the context ends. Then it waits for the attempts in progress and for their records, a few seconds
// each. An aborted attempt is not recorded and will be repeated with the same ID and bytes.
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
	s.backlog = newBacklog(time.Now)
	defer s.cfg.Fold.ListenFrom(s.backlog.start, s.backlog.follow)()
	s.recorder = s.startRecorder()
	defer s.recorder.stop()
	q := jobs.Queue{Pool: s.cfg.DB, Node: s.cfg.Node, Due: s.next, Open: open, Work: s.work, Logger: s.cfg.Logger}
	return q.Run(ctx)
}
