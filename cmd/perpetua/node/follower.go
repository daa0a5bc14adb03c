package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/witness"
)

// follower is everything that a node derives from one journal: the fold that its interfaces read, the rows in Postgres,
// and the listeners of the fold.
type follower struct {
	journals.Journal
	client *journal.Client
	fold   *follow.Fold
	seed   *record.Seed    // seed of the fold; nil: from genesis
	maker  *snapshot.Maker // nil if this node makes no snapshots
	keeper *witness.Keeper
	runner *projections.Runner
	rows   readModels // the runner, or a watch of the rows that other nodes write
	tail   *admin.Tail
	owner  lastOwner
	time   atomic.Int64 // time of the last record folded, in Unix microseconds
	pace   pace         // of the rows

	verifies *verifying // nil unless the node follows a venue
}

// readModels reports the position of a journal's rows. It is a runner in this process or a watch of the database.
type readModels interface {
	Wait(ctx context.Context, sequence int64) error
	Position() record.Position
	Err() error
}

// followers are the followers of a node, one for each journal, in no particular order.
type followers []*follower

// openFollowers creates the followers. They do nothing until their tasks run.
func openFollowers(ctx context.Context, c Config, s *stores, mayWrite func() bool) (followers, error) {
	var all followers
	for _, j := range c.Journals {
		f, err := openFollower(ctx, c, s, j, mayWrite)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func openFollower(ctx context.Context, c Config, s *stores, j journals.Journal, mayWrite func() bool) (*follower, error) {
	seed, err := s.seed(ctx, c, j.Name())
	if err != nil {
		return nil, fmt.Errorf("loading a snapshot of %s: %w", j.Name(), err)
	}
	f := &follower{Journal: j, client: s.client, seed: seed, tail: admin.NewTail(j.Name(), 0)}
	var options []follow.Option
	if seed != nil {
		options = append(options, follow.FromSeed(*seed))
		f.tail.Start(seed)
		f.owner.url = seed.URL
	}
	if c.Follow != nil {
		if f.verifies, err = newVerifying(ctx, c, s, j, seed); err != nil {
			return nil, err
		}
		options = append(options, follow.Checked(f.verifies.check), follow.Through(f.verifies.earlier))
	}
	f.fold = follow.New(s.client, j.Rules, 0, options...)
	// A listener that is registered before the fold runs receives every record after the seed.
	f.fold.Listen(f.tail.Observe)
	f.fold.Listen(f.owner.observe)
	f.fold.Listen(func(e record.Entry, _ decide.State) { f.time.Store(int64(e.Record.Time)) })
	f.maker = s.snapshots.maker(s.client, j, f.fold, seed, c.ID, mayWrite)
	f.keeper = witness.NewKeeper(witness.KeeperConfig{Store: s.snapshots.witnesses, Client: s.client, Rules: j.Rules, Fold: f.fold, Node: c.ID, May: mayWrite})
	f.runner = f.newRunner(s.pool)
	f.rows = f.runner
	if !c.Roles.Projector {
		f.rows = projections.Watch{Pool: s.pool, Journal: j.Name()}
	}
	return f, nil
}

// newRunner returns the runner of the journal's rows. If the node follows a venue, the rows get verified records only.
func (f *follower) newRunner(pool *pgxpool.Pool) *projections.Runner {
	if f.verifies == nil {
		return projections.NewRunner(pool, f.client, f.Rules, f.Projections...)
	}
	f.fold.Listen(func(e record.Entry, _ decide.State) { f.verifies.marks.Note(e.Position) })
	log := projections.Verified{Log: projections.NewLog(f.client, f.Rules, 0), Marks: f.verifies.marks}
	return projections.Config{Pool: pool, Log: log, Journal: f.Name(), Logger: f.client.Logger(), Tracer: f.client.Tracer()}.Runner(f.Projections...)
}

// of returns the follower of a journal.
func (all followers) of(name string) (*follower, error) {
	for _, f := range all {
		if f.Name() == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("this node follows no journal %q", name)
}

// tasks returns the tasks that keep the follower at the tip. The rows wait for the comparison, unless it is nil.
func (f *follower) tasks(does Roles, log *slog.Logger, compares *comparison) []task {
	tasks := []task{
		{"follow " + f.Name(), f.outlive(f.fold.Run)},
		{"bear witness of " + f.Name(), f.keeper.Run},
		{"fill the tail of " + f.Name(), func(ctx context.Context) error { f.fillTail(ctx, log); return nil }},
	}
	if f.maker != nil {
		tasks = append(tasks, task{"save " + f.Name(), f.maker.Run})
	}
	if does.Projector {
		tasks = append(tasks, task{"project " + f.Name(), compares.beforeRows(f.outlive(f.runner.Run))})
	}
	return tasks
}

// catchUp waits, with a time limit, until the folds have read the records that this node's engine has appended.
func (all followers) catchUp(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, f := range all {
		if f.client.Gone() {
			continue
		}
		group.Go(func() { f.keeper.CatchUp(context.WithoutCancel(ctx)) })
	}
}

// save writes the witnesses, and the snapshots that are worthwhile, after the node has stopped.
func (all followers) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, f := range all { // Witnesses come first: they are small, and a snapshot may use up the remaining time.
		f.keeper.Stop(ctx)
	}
	for _, f := range all {
		if f.maker != nil {
			f.maker.Stop(ctx)
		}
	}
}

// fillTail reads the last records before the fold's snapshot, for the interface that lists the latest records.
func (f *follower) fillTail(ctx context.Context, log *slog.Logger) {
	from, to := f.tail.Missing()
	if f.seed == nil || from > to {
		return
	}
	anchors := new(record.Anchors)
	anchors.Fill(f.seed.Anchors)
	r := journal.NewReader(f.client, f.Rules, 0, anchors.Below(from))
	r.OrBase(to + 1)
	entries, err := readUpTo(ctx, r, to)
	if err == nil && f.verifies != nil {
		err = f.verifies.marks.Prove(entries)
	}
	if err == nil {
		f.tail.Precede(entries)
	} else if ctx.Err() == nil { // the fold reports errors of the same log
		log.Warn("the last records before the snapshot can't be read", "journal", f.Name(), "error", err)
	}
}

// readUpTo returns the records of a reader up to a sequence that the log contained.
func readUpTo(ctx context.Context, r *journal.Reader, to int64) (entries []record.Entry, err error) {
	defer r.Close()
	for r.Position().Sequence < to {
		more, err := r.PollFor(ctx, to)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// lastOwner tracks which node last took a journal, according to the fold.
type lastOwner struct {
	mu  sync.Mutex
	url string // URL of the node with the latest term; "" if the fold started after that record and its seed has no URL
}

// nobody is the URL for a journal that has its genesis but no term yet.
const nobody = "nobody"

// observe processes every record of the fold.
func (o *lastOwner) observe(e record.Entry, _ decide.State) {
	url := nobody
	switch event := e.Record.Events[0].(type) {
	case *record.Genesis:
	case *record.TermStarted:
		url = event.URL
	default:
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.url = url
}

// node returns the URL of the node that last took the journal, or nobody, or "" if unknown.
func (o *lastOwner) node() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.url
}
