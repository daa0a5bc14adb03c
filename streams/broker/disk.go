package broker

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// disk holds a response back until all offsets that it reveals are on disk.
type disk struct {
	dir  string
	sync func(*os.File) error
	halt *halt
	fail func(error) // stops the broker

	cluster *kfake.Cluster // queried while using is held

	// using is locked for reading while a response is processed. close locks it for writing: it closes the files, and
	// kfake answers nothing afterwards.
	using sync.RWMutex

	mu         sync.Mutex
	partitions map[topicPartition]*flushed
	names      map[[16]byte]string // topic names by id
}

func newDisk(dir string, sync func(*os.File) error, h *halt, fail func(error)) *disk {
	return &disk{dir: dir, sync: sync, halt: h, fail: fail,
		partitions: map[topicPartition]*flushed{}, names: map[[16]byte]string{}}
}

// resume initializes the recovery points from the scan of a folder that flushAll has synced.
func (d *disk) resume(report *Report) error {
	for _, p := range report.partitions {
		at, ok := partitionOf(filepath.Base(p.dir))
		if !ok || len(p.segments) == 0 {
			continue
		}
		last := p.segments[len(p.segments)-1]
		file, err := os.Open(last.path)
		if err != nil {
			return err
		}
		f := newFlushed(p.dir, d.sync)
		f.file, f.base, f.at = file, last.base, last.tail.at
		f.recoveryPoint.Store(p.next)
		d.partitions[at] = f
	}
	return nil
}

// release returns when a response may be sent: everything that it reveals is on disk. After an error it must not be
// sent.
func (d *disk) release(r kmsg.Response) error {
	d.using.RLock()
	defer d.using.RUnlock()
	if d.halt.stopped() {
		return errStopped
	}
	if deleted, ok := r.(*kmsg.DeleteTopicsResponse); ok {
		d.forget(deleted)
		return nil
	}
	ends, err := logEnds(r)
	for i := 0; err == nil && i < len(ends); i++ {
		err = d.await(ends[i])
	}
	if err != nil && !errors.Is(err, errStopped) && !errors.Is(err, errDeleted) {
		d.fail(err)
	}
	return err
}

func (d *disk) await(e logEnd) error {
	if e.topic == "" {
		name, ok := d.name(e.id)
		if !ok {
			return errDeleted
		}
		e.topic = name
	}
	at := topicPartition{e.topic, e.partition}
	err := d.partition(at).await(e.end, d.halt)
	if missing := (*missingError)(nil); errors.As(err, &missing) || errors.Is(err, os.ErrNotExist) {
		// The topic may have been deleted, and even created again, while the response was on its way. If it was
		// deleted, kfake no longer reports this high watermark. If it does report it, the folder was read between
		// deletion and creation, and a second attempt finds the records written since.
		if info := d.cluster.PartitionInfo(at.topic, at.partition); info == nil || info.HighWatermark < e.end {
			return errDeleted
		}
		err = d.partition(at).await(e.end, d.halt)
	}
	return err
}

// partition returns the flush state of a partition.
func (d *disk) partition(at topicPartition) *flushed {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.partitions[at]
	if !ok {
		f = newFlushed(filepath.Join(d.dir, "partitions", at.folder()), d.sync)
		d.partitions[at] = f
	}
	return f
}

// errDeleted ends the connection of a client that waits for a deleted topic.
var errDeleted = errors.New("broker: the topic was deleted")

// name returns the name of a topic. Newer requests identify topics by id.
func (d *disk) name(id [16]byte) (string, bool) {
	d.mu.Lock()
	name, ok := d.names[id]
	d.mu.Unlock()
	if ok {
		return name, true
	}
	// Called without the lock, because kfake answers only between two requests.
	info := d.cluster.TopicIDInfo(id)
	if info == nil {
		return "", false
	}
	d.mu.Lock()
	d.names[id] = info.Topic
	d.mu.Unlock()
	return info.Topic, true
}

// forget drops the state of deleted topics. A topic that is created again under the same name begins at offset 0, below
// the old recovery point. forget runs before the answer to the deletion is sent, so a client that creates the topic
// again after that answer comes later.
func (d *disk) forget(r *kmsg.DeleteTopicsResponse) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range r.Topics {
		if t.ErrorCode != 0 || t.Topic == nil {
			continue
		}
		delete(d.names, t.TopicID)
		for at := range d.partitions {
			if at.topic == *t.Topic {
				// The file is not closed here: another goroutine may still flush it.
				delete(d.partitions, at)
			}
		}
	}
}

// close waits for the responses in progress and closes the files. The broker has stopped before, so later responses are
// refused.
func (d *disk) close() error {
	d.using.Lock()
	defer d.using.Unlock()
	var errs []error
	for _, f := range d.partitions {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// flushAll syncs all segments of a folder, and makes later reads come from the disk. A killed broker leaves data that
// the kernel has not written yet, and a broker that failed to sync leaves pages that the kernel regards as written.
// Read from the page cache, both would look like an intact log.
func flushAll(dir string, sync func(*os.File) error) error {
	paths, err := filepath.Glob(filepath.Join(dir, "partitions", "*", "*"+segmentExtension))
	if err != nil {
		return err
	}
	folders := map[string]bool{}
	for _, path := range paths {
		if err := flushFile(path, sync); err != nil {
			return err
		}
		folders[filepath.Dir(path)] = true
	}
	for folder := range folders {
		if err := syncFolder(folder, sync); err != nil {
			return err
		}
	}
	return nil
}

func flushFile(path string, sync func(*os.File) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	err = sync(file)
	if err == nil {
		// The pages of a failed sync are at the end of the file, and no more than the largest amount of data in flight.
		err = dropCached(file, maxBatchBytes)
	}
	return errors.Join(err, file.Close())
}
