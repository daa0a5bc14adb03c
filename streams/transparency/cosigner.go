package transparency

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	// CosignEvery is the time between two submissions to the witnesses.
	CosignEvery = 10 * time.Second
	// cosignAgain is the age at which the cosignatures of a log that does not grow are renewed. Their times show monitors that
	// the log is not merely hidden from them.
	cosignAgain = time.Minute
	// cosignWithin is the time that a witness has for an answer.
	cosignWithin = 8 * time.Second
)

// CosignerConfig configures a Cosigner.
type CosignerConfig struct {
	Origin   Origin
	Policy   *Policy
	Store    *Store
	Heads    Heads
	Cosigned CosignedTrees
	Client   *http.Client
	Logger   *slog.Logger
	// Every and Again replace the constants, unless zero. For tests.
	Every, Again time.Duration
}

// Cosigner sends the published checkpoints of one log to the witnesses of a policy, and publishes those that its quorum has
// cosigned. It is apart from the Follower: a witness that does not answer delays cosignatures and nothing else. Cosigners of several
// nodes may run at the same time: the witness answers the later one with the size that it has cosigned.
type Cosigner struct {
	cfg       CosignerConfig
	witnesses []*witnessClient
	last      Checkpoint // cosigned by all witnesses
	at        time.Time  // when it was

	mu     sync.Mutex
	status []WitnessStatus
}

// WitnessStatus says how the last submission to a witness ended.
type WitnessStatus struct {
	Name string
	Size int64 // of the last tree that it cosigned for this node
	Err  error // nil: it cosigned
}

// NewCosigner returns a cosigner. It does nothing before Run.
func NewCosigner(cfg CosignerConfig) *Cosigner {
	if cfg.Every == 0 {
		cfg.Every = CosignEvery
	}
	if cfg.Again == 0 {
		cfg.Again = cosignAgain
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	client := http.Client{}
	if cfg.Client != nil {
		client = *cfg.Client
	}
	client.Timeout = cosignWithin
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Cosigner{cfg: cfg}
	for _, w := range cfg.Policy.Witnesses {
		if w.URL != "" {
			c.witnesses = append(c.witnesses, &witnessClient{Witness: w, http: &client})
			c.status = append(c.status, WitnessStatus{Name: w.Name, Err: errors.New("not asked yet")})
		}
	}
	return c
}

// Status returns how the last submission to each witness ended.
func (c *Cosigner) Status() []WitnessStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]WitnessStatus(nil), c.status...)
}

// Run submits checkpoints until the context ends. It starts at the last cosigned checkpoint.
func (c *Cosigner) Run(ctx context.Context) error {
	started := false
	for {
		if !started {
			last, err := c.cfg.Cosigned.Cosigned(ctx, c.cfg.Origin)
			if started = err == nil; started {
				for _, w := range c.witnesses { // one that knows another size says so
					w.known = last.Size
				}
			}
		}
		if started {
			if err := c.round(ctx); err != nil && ctx.Err() == nil {
				c.cfg.Logger.Warn("the checkpoint is not sent to the witnesses", "error", err)
			}
		}
		if !wait(ctx, c.cfg.Every) {
			return ctx.Err()
		}
	}
}

// cosigned is a witness's answer.
type cosigned struct {
	witness int
	line    string
	err     error
}

// round submits the last checkpoint to all witnesses at the same time. After each cosignature, it publishes the checkpoint if the
// quorum is met, without waiting for the others.
func (c *Cosigner) round(ctx context.Context) error {
	signed, err := c.cfg.Heads.Published(ctx, c.cfg.Origin)
	if err != nil || signed.Size == 0 || signed.Size == c.last.Size && time.Since(c.at) < c.cfg.Again {
		return err
	}
	policy, err := c.cfg.Policy.ForLog(signed.Verifier) // the log's keys change
	if err != nil {
		return err
	}
	opened, err := policy.OpenSigned(signed.Note)
	if err != nil {
		return err
	}
	answers := make(chan cosigned, len(c.witnesses))
	for i, w := range c.witnesses {
		go func() {
			tiles := &tileReader{ctx: ctx, store: c.cfg.Store}
			s := &submission{opened, signed.Note, tlog.TileHashReader(opened.Tree(), tiles)}
			line, err := w.submit(ctx, s)
			answers <- cosigned{i, line, err}
		}()
	}
	lines, all := make([]string, len(c.witnesses)), true
	for range c.witnesses { // each ends within the client's time limit
		a := <-answers
		lines[a.witness] = a.line
		all = all && a.err == nil
		c.report(a, opened.Size)
		if a.err == nil {
			err = errors.Join(err, c.publish(ctx, policy, signed, lines))
		}
	}
	if all && err == nil {
		c.last, c.at = signed, time.Now()
	}
	return err
}

// report notes how a submission ended, and logs a change.
func (c *Cosigner) report(a cosigned, size int64) {
	c.mu.Lock()
	s := &c.status[a.witness]
	before := s.Err
	if s.Err = a.err; a.err == nil {
		s.Size = size
	}
	c.mu.Unlock()
	switch {
	case errors.Is(a.err, errRefused):
		c.cfg.Logger.Error("a witness contradicts the log", "witness", s.Name, "error", a.err)
	case a.err != nil && (before == nil || before.Error() != a.err.Error()):
		c.cfg.Logger.Warn("a witness has not cosigned", "witness", s.Name, "error", a.err)
	case a.err == nil && before != nil:
		c.cfg.Logger.Info("a witness cosigns", "witness", s.Name, "size", size)
	}
}

// publish publishes a checkpoint with the cosignatures so far, if they meet the quorum.
func (c *Cosigner) publish(ctx context.Context, policy *Policy, signed Checkpoint, lines []string) error {
	signed.Note = append(append([]byte(nil), signed.Note...), strings.Join(lines, "")...)
	if _, err := policy.Open(signed.Note); errors.Is(err, ErrQuorum) {
		return nil
	} else if err != nil {
		return err
	}
	return c.cfg.Cosigned.PublishCosigned(ctx, c.cfg.Origin, signed)
}
