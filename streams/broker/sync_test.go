package broker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// slowDisk syncs segment files when it is let, and counts.
type slowDisk struct {
	mu    sync.Mutex
	count int
	wait  chan struct{} // nil for no waiting
	begun chan struct{} // gets one for each sync that waits
	err   error         // for the next
}

func newSlowDisk() *slowDisk { return &slowDisk{begun: make(chan struct{}, 1000)} }

func (d *slowDisk) sync(file *os.File) error {
	if filepath.Ext(file.Name()) != ".dat" {
		return file.Sync()
	}
	d.mu.Lock()
	d.count++
	wait := d.wait
	d.mu.Unlock()
	if wait != nil {
		d.begun <- struct{}{}
		<-wait
	}
	d.mu.Lock()
	err := d.err
	d.err = nil
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return file.Sync()
}

func (d *slowDisk) hold() (release func()) {
	wait := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait = wait
	return sync.OnceFunc(func() {
		d.mu.Lock()
		d.wait = nil
		d.mu.Unlock()
		close(wait)
	})
}

func (d *slowDisk) syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

func startOn(t *testing.T, dir string, disk *slowDisk) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Sync: true, Logger: quiet()}.WithSync(disk.sync))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestNothingIsToldBeforeItIsSynced holds the sync of a batch. Meanwhile neither the producer hears of it, nor who asks
// for the end of the log, nor who reads it, over both kinds of connection.
func TestNothingIsToldBeforeItIsSynced(t *testing.T) {
	disk := newSlowDisk()
	b := startOn(t, t.TempDir(), disk)
	c := client(t, b.Addrs())
	createTopic(t, c, topic, nil)
	produce(t, c, topic, "one")
	for name, dial := range map[string]kgo.Opt{"near": kgo.Dialer(b.Dial), "far": kgo.WithHooks()} {
		t.Run(name, func(t *testing.T) {
			end := endOffset(t, c)
			producer, asker := client(t, b.Addrs(), dial), client(t, b.Addrs(), dial)
			reader := client(t, b.Addrs(), dial, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(end)}}))
			release := disk.hold()
			defer release()
			told := make(chan string, 3)
			go func() {
				producer.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("two")})
				told <- "the producer"
			}()
			go func() {
				for reader.PollFetches(t.Context()).NumRecords() == 0 && t.Context().Err() == nil {
				}
				told <- "a reader"
			}()
			<-disk.begun
			go func() {
				for endOffset(t, asker) == end && t.Context().Err() == nil {
				}
				told <- "who asks for the end"
			}()
			// What has nothing to do with the log is answered meanwhile. What is told too early would be by then.
			for range 50 {
				if _, err := kadm.NewClient(c).ListTopics(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case who := <-told:
				t.Fatalf("%s is told before the sync", who)
			default:
			}
			release()
			for range 3 {
				<-told
			}
		})
	}
}

func endOffset(t *testing.T, c *kgo.Client) int64 {
	t.Helper()
	ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Error(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestOneSyncForAllThatWait appends from many clients while a sync takes its time.
func TestOneSyncForAllThatWait(t *testing.T) {
	const clients = 16
	disk, dir := newSlowDisk(), t.TempDir()
	b := startOn(t, dir, disk)
	createTopic(t, client(t, b.Addrs()), topic, nil)
	produce(t, client(t, b.Addrs()), topic, "first")
	release := disk.hold()
	defer release()
	before := disk.syncs()
	var all sync.WaitGroup
	for range clients {
		c := client(t, b.Addrs(), kgo.Dialer(b.Dial))
		all.Go(func() {
			if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("one")}).FirstErr(); err != nil {
				t.Error(err)
			}
		})
	}
	<-disk.begun
	segment := filepath.Join(dir, "partitions", topic+"-0", "0.dat")
	until(t, "all are written", func() bool { return len(starts(read(t, segment))) == clients+2 })
	release()
	all.Wait()
	// The one that was held, and one for all that came meanwhile.
	if n := disk.syncs() - before; n != 2 {
		t.Errorf("%d batches took %d syncs", clients, n)
	}
}

// TestFirstFailedSyncStops has one sync fail while several wait for the disk. From then on nothing is acknowledged,
// although the next sync would succeed: what the failed one concerned may be lost, and the kernel does not say so twice.
func TestFirstFailedSyncStops(t *testing.T) {
	const clients = 8
	disk, dir := newSlowDisk(), t.TempDir()
	b := startOn(t, dir, disk)
	createTopic(t, client(t, b.Addrs()), topic, nil)
	produce(t, client(t, b.Addrs()), topic, numbered(0, 5)...)
	serving, done := b.While(t.Context())
	defer done()
	release := disk.hold()
	defer release()
	var all sync.WaitGroup
	for range clients {
		c := client(t, b.Addrs(), append(givesUp(), kgo.Dialer(b.Dial))...)
		all.Go(func() {
			if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("lost")}).FirstErr(); err == nil {
				t.Error("an append is acknowledged after a sync that failed")
			}
		})
	}
	<-disk.begun
	segment := filepath.Join(dir, "partitions", topic+"-0", "0.dat")
	until(t, "all are written", func() bool { return len(starts(read(t, segment))) == 5+clients+1 })
	disk.failOnce(syscall.EIO)
	release()
	all.Wait()
	<-b.Done()
	<-serving.Done()
	failed := (*broker.FailedError)(nil)
	if err := b.Err(); !errors.As(err, &failed) || !errors.Is(err, syscall.EIO) || failed.Dir != dir || !strings.Contains(err.Error(), "0.dat") {
		t.Errorf("it ends with %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	b = startOn(t, dir, disk)
	if got := values(t, b.Addrs(), topic); len(got) < 5 {
		t.Errorf("of 5 acknowledged records %d are left", len(got))
	}
}

// givesUp makes a producer that does not try for ever: an idempotent one would, for what it has sent has no outcome.
func givesUp() []kgo.Opt {
	return []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.UnknownTopicRetries(0), kgo.RecordDeliveryTimeout(time.Minute),
		kgo.MetadataMinAge(10 * time.Millisecond), kgo.RetryTimeout(time.Minute)}
}

func (d *slowDisk) failOnce(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// TestStartSyncsWhatIsThere refuses a folder that cannot be taken to the disk: a broker before this one may have left
// what the kernel has yet to write.
func TestStartSyncsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	c := client(t, b.Addrs())
	createTopic(t, c, topic, nil)
	produce(t, c, topic, "one")
	b.Close()
	disk := newSlowDisk()
	startOn(t, dir, disk).Close()
	if disk.syncs() == 0 {
		t.Error("the segment is not synced")
	}
	disk.failOnce(syscall.EIO)
	if b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Sync: true, Logger: quiet()}.WithSync(disk.sync)); !errors.Is(err, syscall.EIO) {
		t.Errorf("it starts with %v", err)
		if err == nil {
			b.Close()
		}
	}
}

// TestEachSegmentIsSynced rolls segments under load from several clients.
func TestEachSegmentIsSynced(t *testing.T) {
	disk, dir := newSlowDisk(), t.TempDir()
	b := startOn(t, dir, disk)
	size := "2000"
	createTopic(t, client(t, b.Addrs()), topic, map[string]*string{"segment.bytes": &size})
	var all sync.WaitGroup
	for range 4 {
		c := client(t, b.Addrs(), kgo.Dialer(b.Dial))
		all.Go(func() {
			for range 100 {
				if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("one")}).FirstErr(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	if n := len(values(t, b.Addrs(), topic)); n != 400 {
		t.Errorf("%d records", n)
	}
}

// TestTopicMadeAnew deletes topics under load and makes them again. What a new one acknowledges is synced, although the
// old one was synced further, and the broker does not take the end of a topic for the loss of its files.
func TestTopicMadeAnew(t *testing.T) {
	disk := newSlowDisk()
	b := startOn(t, t.TempDir(), disk)
	admin := kadm.NewClient(client(t, b.Addrs()))
	for range 10 {
		createTopic(t, client(t, b.Addrs()), topic, nil)
		var load sync.WaitGroup
		acknowledged := make(chan struct{}, 1000)
		for range 2 {
			c := client(t, b.Addrs(), append(givesUp(), kgo.Dialer(b.Dial))...)
			load.Go(func() {
				for c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("one")}).FirstErr() == nil {
					select {
					case acknowledged <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 20 {
			<-acknowledged
		}
		if _, err := admin.DeleteTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		load.Wait()
	}
	createTopic(t, client(t, b.Addrs()), topic, nil)
	before := disk.syncs()
	produce(t, client(t, b.Addrs()), topic, "new")
	if disk.syncs() == before {
		t.Error("a record of the new topic is acknowledged and not synced")
	}
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

// TestKindsOfRequests says with what a client that is no Kafka client is sent away. kfake would panic, or make room for
// a gigabyte.
func TestKindsOfRequests(t *testing.T) {
	b := start(t, t.TempDir())
	for name, sent := range map[string]string{
		"HTTP":           "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no such kind":   "\x00\x00\x00\x0a\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff",
		"a short one":    "\x00\x00\x00\x01\x00",
		"a negative one": "\xff\xff\xff\xff\x00\x00\x00\x00",
	} {
		c, err := b.Dial(t.Context(), "tcp", b.Addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(sent)); err != nil {
			t.Error(name, err)
		}
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: it answers %d bytes", name, n)
		}
		c.Close()
	}
	createTopic(t, client(t, b.Addrs()), topic, nil)
}
