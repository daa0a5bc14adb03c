package broker_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// TestKernelFailsToSync has the kernel refuse all syncs of a broker under load. Then it stops by itself and says why,
// and what it has acknowledged until then is there.
func TestKernelFailsToSync(t *testing.T) {
	dir := t.TempDir()
	makeTopic(t, dir)
	b := startChild(t, dir, "1")
	acknowledged := map[int64]string{}
	ended, why := b.untilItStops(t)
	loadUntil(t, b, 0, 100, func() { io.WriteString(b.input, "fail\n") }, ended, acknowledged)
	if why := why(); !strings.Contains(why, "input/output error") || !strings.Contains(why, "sync") {
		t.Errorf("it stops because of %q", why)
	}
	allThere(t, dir, acknowledged)
}

// TestFilesMayNotGrow has the kernel refuse writes beyond a size, which cuts a batch in the middle.
func TestFilesMayNotGrow(t *testing.T) {
	for _, sync := range []string{"", "1"} {
		dir := t.TempDir()
		makeTopic(t, dir)
		b := startChild(t, dir, sync, limitVariable+"=100000")
		acknowledged := map[int64]string{}
		ended, why := b.untilItStops(t)
		loadUntil(t, b, 0, 0, nil, ended, acknowledged)
		if why := why(); !strings.Contains(why, "file too large") {
			t.Errorf("it stops because of %q", why)
		}
		if len(acknowledged) == 0 {
			t.Error("nothing was acknowledged before")
		}
		allThere(t, dir, acknowledged)
	}
}

func makeTopic(t *testing.T, dir string) {
	t.Helper()
	b := start(t, dir)
	createTopic(t, client(t, b.Addrs()), topic, nil)
	b.Close()
}

// allThere starts a broker and compares what is in the log with what was acknowledged.
func allThere(t *testing.T, dir string, acknowledged map[int64]string) {
	t.Helper()
	b := start(t, dir)
	all := values(t, b.Addrs(), topic)
	for offset, value := range acknowledged {
		if offset >= int64(len(all)) || all[offset] != value {
			t.Fatalf("the record at %d of %d was acknowledged and is lost", offset, len(all))
		}
	}
	t.Logf("%d records acknowledged, %d in the log", len(acknowledged), len(all))
	b.Close()
}

// smallDisk is a file system in memory that can be filled.
type smallDisk struct {
	t   *testing.T
	dir string
}

func mountSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	d := &smallDisk{t, t.TempDir()}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no file system may be mounted here:", err) // TestFilesMayNotGrow runs everywhere
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// fill leaves no page of the disk free.
func (d *smallDisk) fill() {
	file, err := os.Create(filepath.Join(d.dir, "filler"))
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if err := errors.Join(err, file.Close()); !errors.Is(err, unix.ENOSPC) {
		d.t.Error(err)
	}
}

func (d *smallDisk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
		d.t.Fatal(err)
	}
}

// TestFullDisk fills the disk under load, with and without syncing.
func TestFullDisk(t *testing.T) {
	for _, sync := range []string{"", "1"} {
		disk := mountSmallDisk(t)
		dir := filepath.Join(disk.dir, "kafka")
		makeTopic(t, dir)
		b := startChild(t, dir, sync)
		acknowledged := map[int64]string{}
		ended, why := b.untilItStops(t)
		loadUntil(t, b, 0, 100, disk.fill, ended, acknowledged)
		if why := why(); !strings.Contains(why, "no space left on device") {
			t.Errorf("it stops because of %q", why)
		}
		disk.free()
		allThere(t, dir, acknowledged)
	}
}

// TestHalfAnIndexEntry fills the disk when one byte of an index's page is left. The batch that comes then fits, its
// index entry does not, and kfake takes back the one only.
func TestHalfAnIndexEntry(t *testing.T) {
	const entry = 15
	disk := mountSmallDisk(t)
	dir := filepath.Join(disk.dir, "kafka")
	b := start(t, dir)
	c := client(t, b.Addrs(), givesUp()...)
	createTopic(t, c, topic, nil)
	fit := os.Getpagesize() / entry
	produce(t, c, topic, numbered(0, fit)...)
	segment := filepath.Join(dir, "partitions", topic+"-0", "0.dat")
	if left := os.Getpagesize() - len(read(t, segment))%os.Getpagesize(); left < 200 {
		t.Fatalf("%d bytes are left in the page of the segment", left)
	}
	disk.fill()
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err == nil {
		t.Error("a batch is acknowledged that was taken back")
	}
	<-b.Done()
	b.Close()
	if n := len(read(t, indexOf(segment))); n != os.Getpagesize() {
		t.Fatalf("the index has %d bytes", n)
	}
	disk.free()
	b = start(t, dir)
	if got := values(t, b.Addrs(), topic); fmt.Sprint(got) != fmt.Sprint(numbered(0, fit)) {
		t.Errorf("%d of %d records are left", len(got), fit)
	}
	produce(t, client(t, b.Addrs()), topic, "next")
}

// TestLostAnswer has a write fail, loses the answer that says so, and sends the batch again. kfake takes the second for
// a duplicate of the first, and would acknowledge what is nowhere.
func TestLostAnswer(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprint("sync ", sync), func(t *testing.T) {
			disk := mountSmallDisk(t)
			dir := filepath.Join(disk.dir, "kafka")
			b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Sync: sync, Logger: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			createTopic(t, client(t, b.Addrs()), topic, nil)
			request := idempotent(0)
			if code, err := exchangeProduce(b.Addrs()[0], request); code != 0 || err != nil {
				t.Fatalf("with room on the disk: code %d, %v", code, err)
			}
			disk.fill()
			request = idempotent(1)
			lost, err := net.Dial("tcp", b.Addrs()[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lost.Write(request); err != nil {
				t.Fatal(err)
			}
			lost.Close()
			for again := 0; ; again++ {
				code, err := exchangeProduce(b.Addrs()[0], request)
				if err == nil && code == 0 {
					t.Fatalf("the resend is acknowledged at the try %d", again)
				}
				select {
				case <-b.Done():
				default:
					if err == nil && again < 1000 {
						continue
					}
					t.Errorf("the resend gets code %d, %v", code, err)
				}
				break
			}
			if err := b.Err(); err == nil || !strings.Contains(err.Error(), "no space left on device") {
				t.Errorf("it stops because of %v", err)
			}
		})
	}
}

// idempotent makes the bytes of a request to append one batch of 64 KiB with a producer's sequence number.
func idempotent(sequence int32) []byte {
	record := kmsg.Record{Length: 0, Value: make([]byte, 64<<10)}
	record.Length = int32(len(record.AppendTo(nil)) - 1) // without the length itself, one byte while it is zero
	batch := kmsg.RecordBatch{Magic: 2, PartitionLeaderEpoch: -1, NumRecords: 1, ProducerID: 7, FirstSequence: sequence, Records: record.AppendTo(nil)}
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	batch.CRC = int32(crc32.Checksum(batch.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))

	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = batch.AppendTo(nil)
	named := kmsg.NewProduceRequestTopic()
	named.Topic, named.Partitions = topic, append(named.Partitions, partition)
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(9)
	request.Acks, request.Topics = -1, append(request.Topics, named)
	return kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)
}

// exchangeProduce sends a request and returns the error code of the answer.
func exchangeProduce(addr string, request []byte) (int16, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		return 0, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, err
	}
	response := kmsg.NewPtrProduceResponse()
	response.SetVersion(9)
	if err := response.ReadFrom(body[5:]); err != nil { // after the correlation id and the tags
		return 0, err
	}
	return response.Topics[0].Partitions[0].ErrorCode, nil
}
