package broker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// The test binary starts itself again as a broker that can be killed.
const serveVariable, syncVariable, limitVariable = "PERPETUA_TEST_SERVE", "PERPETUA_TEST_SYNC", "PERPETUA_TEST_LIMIT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVariable); dir != "" {
		os.Exit(serve(dir, os.Getenv(syncVariable) != "", os.Getenv(limitVariable)))
	}
	os.Exit(m.Run())
}

// serve runs a broker until its input ends or it stops by itself. The limit is the size in bytes above which the kernel
// lets no file grow, if it is a number. The line "fail" makes all syncs fail from then on. The line "trim N" trims the log at
// offset N, and kills the process between trim.json and the deletion.
func serve(dir string, sync bool, limit string) int {
	if n, err := strconv.ParseUint(limit, 10, 64); err == nil {
		limitFiles(n)
	}
	b, err := broker.Start(context.Background(), broker.Config{Dir: dir, Sync: sync, Logger: quiet()}.WithTrimmed(killSelf))
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	fmt.Println("ready", b.Addrs()[0])
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				b.Close()
				return 0
			}
			if line == "fail" {
				failSyncs()
				fmt.Println("failing")
			}
			if at, ok := strings.CutPrefix(line, "trim "); ok {
				offset, _ := strconv.ParseInt(at, 10, 64)
				_, err := b.Trim(context.Background(), topic, trimTo(offset), offset)
				fmt.Println("alive", err)
				return 4
			}
		case <-b.Done():
			fmt.Println("stopped", b.Err())
			b.Close()
			return 3
		}
	}
}

func killSelf() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until the kernel has done it
}

// child is a broker in a process of its own.
type child struct {
	command *exec.Cmd
	addrs   []string
	input   io.Writer
	output  *bufio.Reader
	killed  sync.Once
}

func startChild(t *testing.T, dir, sync string, environment ...string) *child {
	t.Helper()
	c := &child{command: exec.Command(os.Args[0])}
	c.command.Env = append(append(os.Environ(), serveVariable+"="+dir, syncVariable+"="+sync), environment...)
	c.command.Stderr = os.Stderr
	input, err := c.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); c.kill() })
	c.input, c.output = input, bufio.NewReader(output)
	c.addrs = []string{c.says(t, "ready")}
	return c
}

// says returns what follows a word on the child's next line, which must begin with it.
func (c *child) says(t *testing.T, word string) string {
	t.Helper()
	line, err := c.output.ReadString('\n')
	begin, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || begin != word {
		t.Fatalf("the child says %q, %v, where %q comes next", line, err, word)
	}
	return rest
}

// untilItStops returns, once the broker has stopped by itself, why.
func (c *child) untilItStops(t *testing.T) (ended <-chan struct{}, why func() string) {
	t.Helper()
	done, said := make(chan struct{}), []byte(nil)
	go func() {
		said, _ = io.ReadAll(c.output)
		close(done)
	}()
	return done, func() string {
		<-done
		err := c.command.Wait()
		if c.command.ProcessState.ExitCode() != 3 {
			t.Errorf("the child ends with %v, having said %q", err, said)
		}
		return string(said)
	}
}

// kill ends the broker and returns when it is gone, also to those who come meanwhile.
func (c *child) kill() {
	c.killed.Do(func() {
		c.command.Process.Kill()
		c.command.Wait()
	})
}

// load produces without pause until the broker is killed, which happens when
// the given number of records is acknowledged, and adds what was acknowledged.
func load(t *testing.T, b *child, round, kill int, acknowledged map[int64]string) {
	t.Helper()
	ended := make(chan struct{})
	loadUntil(t, b, round, kill, func() { b.kill(); close(ended) }, ended, acknowledged)
}

// loadUntil produces until the broker's end, which it is told of, or the first error, and calls then, on a goroutine of
// its own, when the number of records is acknowledged.
func loadUntil(t *testing.T, b *child, round, many int, then func(), ended <-chan struct{}, acknowledged map[int64]string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.ProducerLinger(0), kgo.DisableClientMetrics(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-ended
		cancel()
	}()
	var mu sync.Mutex
	window := make(chan struct{}, 64)
	var pending sync.WaitGroup
	count := 0
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		pending.Add(1)
		value := fmt.Sprintf("round %d record %d %s", round, i, strings.Repeat("x", i%700))
		c.TryProduce(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}, func(r *kgo.Record, err error) {
			defer pending.Done()
			<-window
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				cancel()
				return
			}
			acknowledged[r.Offset] = value
			if count++; count == many {
				go then()
			}
		})
	}
	// With the broker gone, a record that may have been sent has no outcome
	// until the client gives up.
	c.Close()
	pending.Wait()
}

func TestKilledUnderLoad(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, sync := range []string{"", "1"} {
		dir := t.TempDir()
		b := start(t, dir)
		size := "200000"
		c := client(t, b.Addrs())
		createTopic(t, c, topic, map[string]*string{"segment.bytes": &size})
		c.Close()
		b.Close()
		acknowledged := map[int64]string{}
		for round := range 6 {
			b := startChild(t, dir, sync)
			load(t, b, round, 1+random.IntN(600), acknowledged)
			b.kill()
		}
		b = start(t, dir)
		all := values(t, b.Addrs(), topic)
		for offset, value := range acknowledged {
			if offset >= int64(len(all)) || all[offset] != value {
				t.Fatalf("the record at %d of %d was acknowledged and is lost", offset, len(all))
			}
		}
		t.Logf("sync %q: %d records acknowledged, %d in the log", sync, len(acknowledged), len(all))
		b.Close()
	}
}

// After a kill, a group takes new members at once, also one with the static id
// of a member that died with the broker.
func TestGroupAfterKill(t *testing.T) {
	dir := t.TempDir()
	reservePort(t, dir)
	b := startChild(t, dir, "")
	createTopic(t, client(t, b.addrs), topic, nil)
	produce(t, client(t, b.addrs), topic, "one")
	join := func(addrs []string, instance string) *kgo.Client {
		return client(t, addrs, kgo.ConsumerGroup("perpetua-engine"), kgo.ConsumeTopics(topic), kgo.InstanceID(instance),
			kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(6*time.Second),
			kgo.HeartbeatInterval(time.Second), kgo.RebalanceTimeout(10*time.Second),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	}
	poll := func(c *kgo.Client) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for {
			fetches := c.PollFetches(ctx)
			if fetches.NumRecords() > 0 {
				return
			}
			if err := ctx.Err(); err != nil {
				t.Fatal("never assigned", err, errors.Join(fetches.Err0()))
			}
		}
	}
	survivor := join(b.addrs, "node-1")
	poll(survivor)
	for round := range 3 {
		b.kill()
		b = startChild(t, dir, "")
		produce(t, client(t, b.addrs), topic, fmt.Sprint(round))
		poll(survivor) // on the same port
	}
	survivor.Close()
	b.kill()
	b = startChild(t, dir, "")
	again := join(b.addrs, "node-1")
	poll(again)
	again.Close()
}
