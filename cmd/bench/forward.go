package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The loads of the measure.
const (
	closedLoop = 32 // connections with one order in flight each
	pipelined  = 32 // orders in flight on each socket
)

// measureForward measures the processor time that an order costs the owner of the journal: over REST at the owner itself, by a
// node that sends the command over a stream, and with nothing but Owner.Submit.
// The owner has only the engine's role, and its broker is another process.
func measureForward(ctx context.Context, b *bench) error {
	v, err := b.venueOnBroker(ctx)
	if err != nil {
		return err
	}
	defer v.discard()
	token, err := v.token(ctx, "broker-a")
	if err != nil {
		return err
	}
	direct, err := b.newTarget(ctx, loadConfig{URL: v.REST, Token: token}, v.PID)
	if err != nil {
		return err
	}
	defer direct.close()
	baseline := func() (float64, error) { return direct.cost(closedLoop, b.round) }
	const against = "over REST at the owner"
	row := func(how string, most float64) Row {
		r := Row{Measure: "processor time of the owner per order " + how, Unit: "µs", Against: against}
		if most > 0 {
			r.Aim = atMost(most)
		}
		return r
	}

	if err := b.streams(ctx, v, token, row, baseline); err != nil {
		return err
	}
	if err := b.submitAlone(ctx, row, baseline); err != nil {
		return err
	}
	return b.growth(ctx, v, token, direct)
}

// streams measures orders that reach the owner over a stream.
func (b *bench) streams(ctx context.Context, v *venue, token string, row func(string, float64) Row, baseline func() (float64, error)) error {
	node, err := b.newNode(ctx, v)
	if err != nil {
		return err
	}
	defer node.stop()
	sockets := loadConfig{URL: node.url, Token: token, WebSocket: node.webSocket(), InFlight: pipelined}
	for _, load := range []struct {
		how         string
		most        float64
		config      loadConfig
		connections int
	}{
		{fmt.Sprintf("over a stream, %d clients", closedLoop), 0.45, loadConfig{URL: node.url, Token: token}, closedLoop},
		{fmt.Sprintf("over a stream, %d in flight over sockets", 2*pipelined), 0.3, sockets, 2},
		{fmt.Sprintf("over a stream, %d in flight over sockets", submitters), 0, sockets, submitters / pipelined},
	} {
		t, err := b.newTarget(ctx, load.config, v.PID)
		if err != nil {
			return err
		}
		frames, commands, err := node.frames(ctx)
		if err == nil {
			err = b.pair(row(load.how, load.most), func() (float64, error) { return t.cost(load.connections, b.round) }, baseline)
		}
		t.close()
		if err != nil {
			return err
		}
		laterFrames, laterCommands, err := node.frames(ctx)
		if err != nil {
			return err
		}
		b.rows[len(b.rows)-1].Note = fmt.Sprintf("%s commands a frame on average", number((laterCommands-commands)/max(1, laterFrames-frames)))
	}
	return nil
}

// growth measures how many orders several nodes receive for one owner. On a machine with few cores they share these, and the
// processor time of the owner per order says how far more cores would carry.
func (b *bench) growth(ctx context.Context, v *venue, token string, direct *target) error {
	var nodes []*node
	var targets []*target
	defer func() {
		for i, n := range nodes {
			targets[i].close()
			n.stop()
		}
	}()
	for _, count := range []int{1, 2, 4} {
		for len(nodes) < count {
			n, err := b.newNode(ctx, v)
			if err != nil {
				return err
			}
			t, err := b.newTarget(ctx, loadConfig{URL: n.url, Token: token}, v.PID)
			if err != nil {
				n.stop()
				return err
			}
			nodes, targets = append(nodes, n), append(targets, t)
		}
		frames, commands, err := framesOf(ctx, nodes)
		if err != nil {
			return err
		}
		var answered int
		var ofOwner, ofNodes time.Duration
		ours := func() (float64, error) {
			owner, receivers := usedBy(v, nodes)
			perSecond, n, err := driveAll(targets, closedLoop, b.round)
			laterOwner, laterReceivers := usedBy(v, nodes)
			answered, ofOwner, ofNodes = answered+n, ofOwner+laterOwner-owner, ofNodes+laterReceivers-receivers
			return perSecond, err
		}
		baseline := func() (float64, error) {
			r, err := direct.drive(closedLoop, b.round)
			return r.PerSecond, err
		}
		if err := b.pair(Row{Measure: fmt.Sprintf("orders through %d API nodes, %d clients each", count, closedLoop), Unit: "orders/s", Against: "over REST at the owner"},
			ours, baseline); err != nil {
			return err
		}
		laterFrames, laterCommands, err := framesOf(ctx, nodes)
		if err != nil {
			return err
		}
		per := func(d time.Duration) string { return number(microseconds(d) / float64(max(1, answered))) }
		b.rows[len(b.rows)-1].Note = fmt.Sprintf("%s µs of the owner's processor time per order and %s µs of the nodes', %s commands a frame on average",
			per(ofOwner), per(ofNodes), number((laterCommands-commands)/max(1, laterFrames-frames)))
	}
	return nil
}

// usedBy returns the processor time that the owner's process and those of the nodes have used.
func usedBy(v *venue, nodes []*node) (owner, receivers time.Duration) {
	owner, _ = processorTimeOf(v.PID)
	for _, n := range nodes {
		used, _ := processorTimeOf(n.pid)
		receivers += used
	}
	return owner, receivers
}

// driveAll applies load to several targets simultaneously. It returns the number of answered requests, in total and per second.
func driveAll(targets []*target, connections int, length time.Duration) (perSecond float64, answered int, err error) {
	var all errgroup.Group
	replies := make([]loadReply, len(targets))
	for i, t := range targets {
		all.Go(func() (err error) {
			replies[i], err = t.drive(connections, length)
			return err
		})
	}
	err = all.Wait()
	for _, r := range replies {
		perSecond, answered = perSecond+r.PerSecond, answered+r.Count
	}
	return perSecond, answered, err
}

// framesOf adds up what node.frames returns.
func framesOf(ctx context.Context, nodes []*node) (frames, commands float64, err error) {
	for _, n := range nodes {
		f, c, err := n.frames(ctx)
		if err != nil {
			return 0, 0, err
		}
		frames, commands = frames+f, commands+c
	}
	return frames, commands, nil
}

// submitAlone measures the owner without any interface, and so what no transport can fall below.
func (b *bench) submitAlone(ctx context.Context, row func(string, float64) Row, baseline func() (float64, error)) error {
	owner, _, stop, err := b.newOwner(ctx, filepath.Join(b.dir, "alone"))
	if err != nil {
		return err
	}
	defer stop()
	for _, atOnce := range []int{closedLoop, submitters} {
		cost := func() (float64, error) { return b.costAlone(owner, atOnce) }
		if err := b.pair(row(fmt.Sprintf("by Owner.Submit alone, %d in flight", atOnce), 0), cost, baseline); err != nil {
			return err
		}
	}
	return nil
}

// costAlone returns the processor time per order of a journal child.
func (b *bench) costAlone(owner *child, atOnce int) (float64, error) {
	pid := owner.cmd.Process.Pid
	before, _ := processorTimeOf(pid)
	start := time.Now()
	var perSecond float64
	if err := owner.call(journalRequest{For: b.round, AtOnce: atOnce}, &perSecond); err != nil {
		return 0, err
	}
	took := time.Since(start).Seconds()
	after, _ := processorTimeOf(pid)
	return microseconds(after-before) / max(1, perSecond*took), nil
}

// cost applies load and returns the processor time of the target's process per answer, in microseconds.
func (t *target) cost(connections int, length time.Duration) (float64, error) {
	answered, used := t.answered, t.used
	_, err := t.drive(connections, length)
	return microseconds(t.used-used) / float64(max(1, t.answered-answered)), err
}

// venueOnBroker starts a venue on a broker in another process. It has the role of an engine only.
func (b *bench) venueOnBroker(ctx context.Context) (*venue, error) {
	dir, err := os.MkdirTemp(b.dir, "kafka-*")
	if err != nil {
		return nil, err
	}
	var ready brokerReady
	kafka, err := b.child(ctx, "broker", brokerConfig{Dir: dir}, &ready)
	if err != nil {
		return nil, err
	}
	v, err := b.newVenue(ctx, "--role", "engine", "--kafka-brokers", strings.Join(ready.Addrs, ","))
	if err != nil {
		kafka.stop()
		return nil, err
	}
	v.Kafka = ready.Addrs
	v.ended = kafka.stop
	return v, nil
}

// node is a node of a venue that owns no journal. It has the roles that serve clients, and projects the rows that they read.
type node struct {
	url  string
	pid  int
	stop func()
}

// newNode starts a node of a venue and waits until it is ready.
func (b *bench) newNode(ctx context.Context, v *venue) (*node, error) {
	dir, err := os.MkdirTemp(b.dir, "node-*")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--data", dir, "--listen", address, "--role", "api,live,projector", "--log-level", "warn", "--node-id", filepath.Base(dir),
		"--kafka-brokers", strings.Join(v.Kafka, ","), "--database-url", v.Database, "--key-url", "file://" + filepath.Join(v.dir, "keys"),
		"--blob-url", "file://" + filepath.Join(v.dir, "blob")}
	cmd, log, err := b.command(ctx, "node", b.binary, args...)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n := &node{url: "http://" + address, pid: cmd.Process.Pid, stop: func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		log.Close()
	}}
	if err := n.awaitReady(ctx); err != nil {
		n.stop()
		return nil, fmt.Errorf("%w%s", err, tail(log.Name()))
	}
	return n, nil
}

// webSocket returns the address of the node's sockets.
func (n *node) webSocket() string { return "ws" + strings.TrimPrefix(n.url, "http") + "/v1/ws" }

// freeAddress returns an address of this machine with a free port.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// awaitReady waits until the node is ready.
func (n *node) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		r, err := http.Get(n.url + "/readyz")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-late:
			return errors.New("a node is not ready")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// frames returns how many frames of commands the node has sent, and how many commands were in them.
func (n *node) frames(ctx context.Context) (frames, commands float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "perpetua_peer_frames_total":
			frames, err = strconv.ParseFloat(value, 64)
		case "perpetua_peer_commands_total":
			commands, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return frames, commands, lines.Err()
}
