package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// holds reports whether the findings hold one with a verdict whose line contains a text.
func (d *diagnosis) holds(v verdict, text string) bool {
	for _, f := range d.findings {
		if f.Verdict == v && strings.Contains(f.Check+" "+f.Message, text) {
			return true
		}
	}
	return false
}

// recommended returns settings of a broker that nothing is said about.
func recommended() map[string]string {
	return map[string]string{
		"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300", "controller.quorum.fetch.timeout.ms": "1000",
		"controller.quorum.election.timeout.ms": "300", "replica.lag.time.max.ms": "5000", "replica.socket.timeout.ms": "3000",
		"unclean.leader.election.enable": "false", "auto.create.topics.enable": "false",
	}
}

// with returns the settings with one changed.
func with(name, value string) map[string]string {
	s := recommended()
	s[name] = value
	return s
}

func TestJudgments(t *testing.T) {
	three := func(last map[string]string) []journal.BrokerSettings {
		return []journal.BrokerSettings{{ID: 1, Settings: recommended()}, {ID: 2, Settings: recommended()}, {ID: 3, Settings: last}}
	}
	at := func(sequences ...int64) (out []record.Position) {
		for _, s := range sequences {
			out = append(out, record.Position{Sequence: s})
		}
		return out
	}
	cases := []struct {
		name  string
		judge func(d *diagnosis)
		want  verdict
		text  string
	}{
		{"brokers as recommended", func(d *diagnosis) { d.judgeBrokers(three(recommended()), []int32{1, 2, 3}, nil) }, isGood, "brokers 3, with the recommended settings"},
		{"a long session", func(d *diagnosis) { d.judgeBrokers(three(with("broker.session.timeout.ms", "9000")), nil, nil) }, isWarning, "broker 3 broker.session.timeout.ms is 9000, recommended is at most 2000"},
		{"a session below six heartbeats", func(d *diagnosis) { d.judgeBrokers(three(with("broker.session.timeout.ms", "1800")), nil, nil) }, isWarning, "not above 6 heartbeats"},
		{"slow heartbeats", func(d *diagnosis) { d.judgeBrokers(three(with("broker.heartbeat.interval.ms", "2000")), nil, nil) }, isWarning, "broker.heartbeat.interval.ms is 2000"},
		{"slow controllers", func(d *diagnosis) {
			d.judgeBrokers(three(with("controller.quorum.fetch.timeout.ms", "2000")), nil, nil)
		}, isWarning, "controller.quorum.fetch.timeout.ms is 2000"},
		{"slow elections", func(d *diagnosis) {
			d.judgeBrokers(three(with("controller.quorum.election.timeout.ms", "1000")), nil, nil)
		}, isWarning, "controller.quorum.election.timeout.ms is 1000"},
		{"a patient leader", func(d *diagnosis) { d.judgeBrokers(three(with("replica.lag.time.max.ms", "30000")), nil, nil) }, isWarning, "replica.lag.time.max.ms is 30000"},
		{"a patient follower", func(d *diagnosis) { d.judgeBrokers(three(with("replica.socket.timeout.ms", "30000")), nil, nil) }, isWarning, "replica.socket.timeout.ms is 30000"},
		{"unclean elections", func(d *diagnosis) { d.judgeBrokers(three(with("unclean.leader.election.enable", "true")), nil, nil) }, isWarning, "unclean.leader.election.enable is true"},
		{"topics out of nothing", func(d *diagnosis) { d.judgeBrokers(three(with("auto.create.topics.enable", "true")), nil, nil) }, isWarning, "auto.create.topics.enable is true"},
		{"a broker that does not answer", func(d *diagnosis) {
			d.judgeBrokers([]journal.BrokerSettings{{ID: 7, Address: "there:9092", Err: errors.New("refused")}}, nil, nil)
		}, isFailed, "broker 7 there:9092 does not tell its settings: refused"},
		{"a user who may not ask", func(d *diagnosis) {
			d.judgeBrokers([]journal.BrokerSettings{{ID: 7, Err: fmt.Errorf("asking: %w", kerr.ClusterAuthorizationFailed)}}, nil, nil)
		}, isWarning, "broker 7 its settings were not checked"},
		{"one broker", func(d *diagnosis) { d.judgeBrokers(three(recommended())[:1], nil, nil) }, isWarning, "1 instead of three"},
		{"one controller", func(d *diagnosis) { d.judgeBrokers(three(recommended()), []int32{1}, nil) }, isWarning, "controllers 1 instead of three"},
		{"dedicated controllers", func(d *diagnosis) { d.judgeBrokers(three(recommended()), []int32{1, 2, 100}, nil) }, isNote, "node 100 is a dedicated controller"},

		{"a broker that is down", func(d *diagnosis) {
			d.judgeBrokers(three(recommended())[:2], []int32{1, 2, 3}, []journal.Replication{{Topic: "trading", Leader: 1, Replicas: []int32{1, 2, 3}, InSync: 2}, {Topic: "identity", Leader: 1, Replicas: []int32{1, 2, 3}, InSync: 2}})
		}, isFailed, "broker 3 it has replicas and is not registered"},

		{"all in sync", func(d *diagnosis) {
			d.judgeReplication([]journal.Replication{{Topic: "trading", Leader: 1, Replicas: []int32{1, 2, 3}, InSync: 3}}, 3)
		}, isGood, "replication 1 partitions, all replicas in sync"},
		{"one replica out of sync", func(d *diagnosis) {
			d.judgeReplication([]journal.Replication{{Topic: "trading", Leader: 1, Replicas: []int32{1, 2, 3}, InSync: 2}}, 3)
		}, isFailed, "trading/0 has 2 of 3 replicas in sync"},
		{"no leader", func(d *diagnosis) {
			d.judgeReplication([]journal.Replication{{Topic: "trading", Leader: -1, Replicas: []int32{1, 2, 3}, InSync: 3}}, 3)
		}, isFailed, "trading/0 has no leader"},
		{"one replica", func(d *diagnosis) {
			d.judgeReplication([]journal.Replication{{Topic: "__consumer_offsets", Leader: 1, Replicas: []int32{1}, InSync: 1}}, 3)
		}, isFailed, "__consumer_offsets/0 has 1 replicas instead of 3"},
		{"one replica on one broker", func(d *diagnosis) {
			d.judgeReplication([]journal.Replication{{Topic: "trading", Leader: 1, Replicas: []int32{1}, InSync: 1}}, 1)
		}, isGood, "all replicas in sync"},

		{"a topic with a wrong setting", func(d *diagnosis) {
			d.judgeTopics(&journal.SettingsError{Deviations: []string{"trading: retention.ms is \"1\" instead of \"-1\""}})
		}, isFailed, "topics trading: retention.ms"},
		{"topics that nobody tells of", func(d *diagnosis) { d.judgeTopics(errors.New("away")) }, isFailed, "topics away"},

		{"tables as they must be", func(d *diagnosis) { d.judgeSchema(19, 19) }, isGood, "tables at migration 19"},
		{"no tables", func(d *diagnosis) { d.judgeSchema(0, 19) }, isFailed, "run perpetua migrate"},
		{"old tables", func(d *diagnosis) { d.judgeSchema(18, 19) }, isFailed, "at migration 18 of 19"},
		{"newer tables", func(d *diagnosis) { d.judgeSchema(20, 19) }, isWarning, "a newer version"},

		{"a table dropped", func(d *diagnosis) { d.judgeDamage(projections.Damage{Missing: []string{"orders", "trades"}}, nil) }, isFailed,
			"tables missing: orders, trades. No migration makes them again"},
		{"no tables of jobs", func(d *diagnosis) {
			d.judgeDamage(projections.Damage{Missing: []string{"perpetua_jobs.river_job", "perpetua_jobs.river_migration"}}, nil)
		}, isFailed, "run perpetua migrate"},
		{"a table unlogged", func(d *diagnosis) { d.judgeDamage(projections.Damage{Unlogged: []string{"orders"}}, nil) }, isFailed, "ALTER TABLE orders SET LOGGED"},
		{"an invalid index", func(d *diagnosis) { d.judgeDamage(projections.Damage{Invalid: []string{"by_time"}}, nil) }, isWarning, "REINDEX INDEX by_time"},
		{"tables that cannot be examined", func(d *diagnosis) { d.judgeDamage(projections.Damage{}, errors.New("away")) }, isFailed, "tables away"},

		{"clocks that agree", func(d *diagnosis) { d.judgeClock(-time.Second) }, isGood, "agree"},
		{"a clock that is a little off", func(d *diagnosis) { d.judgeClock(-2 * time.Second) }, isWarning, "2s apart"},
		{"a clock that is off", func(d *diagnosis) { d.judgeClock(2 * time.Minute) }, isFailed, "2m0s apart"},
		{"a log that is a little ahead", func(d *diagnosis) { d.judgeClockOfLog("trading", 2*time.Second) }, isWarning, "2s ahead"},
		{"a log that is ahead", func(d *diagnosis) { d.judgeClockOfLog("trading", 2*time.Minute) }, isFailed, "no node here owns the journal"},

		{"rows at the tip", func(d *diagnosis) { d.judgeRows("trading", 9, at(3, 9), nil) }, isGood, "at trading/0@9, 0 records behind"},
		{"rows far behind", func(d *diagnosis) { d.judgeRows("trading", 9999, at(3, 9), nil) }, isWarning, "9990 records behind"},
		{"no rows", func(d *diagnosis) { d.judgeRows("trading", 9, nil, nil) }, isWarning, "empty, 10 records behind"},
		{"rows that cannot be read", func(d *diagnosis) { d.judgeRows("trading", 9, nil, errors.New("away")) }, isFailed, "away"},
		{"a witness", func(d *diagnosis) { d.judgeWitnesses("trading", 9, at(7), nil) }, isGood, "1, the newest at trading/0@7, 2 records behind"},
		{"no witness", func(d *diagnosis) { d.judgeWitnesses("trading", 9, nil, nil) }, isWarning, "there are none"},
		{"witnesses that cannot be read", func(d *diagnosis) { d.judgeWitnesses("trading", 9, nil, errors.New("away")) }, isFailed, "away"},

		{"room on the disk", func(d *diagnosis) { d.judgeDisk("/data", 50<<30, 100<<30) }, isGood, "50.0 of 100.0 GiB free for /data"},
		{"a fence of this venue", func(d *diagnosis) {
			d.judgeFence(fence.Fence{Epoch: 3, Venue: "v", Location: "here"}, "here", true, nil, "take")
		}, isGood, "fence it is this venue's: epoch 3, venue v, log at here"},
		{"a fence of another venue", func(d *diagnosis) {
			d.judgeFence(fence.Fence{Epoch: 3, Venue: "v", Location: "there"}, "here", true, nil, "take --x")
		}, isWarning, "log at there, and this log is at here. To have this one act in place of the other: take --x"},
		{"a take-over", func(d *diagnosis) {
			d.judgeFence(fence.Fence{Location: "here", Settling: true}, "here", true, nil, "take --x")
		}, isWarning, "has not ended. If nobody runs it: take --x"},
		{"no fence yet", func(d *diagnosis) { d.judgeFence(fence.Fence{}, "", false, nil, "") }, isNote, "fence none yet"},
		{"a log without its fence", func(d *diagnosis) {
			d.judgeFence(fence.Fence{}, "here", true, fmt.Errorf("read: %w", fence.ErrNone), "")
		}, isWarning, "is it the key store of this venue?"},
		{"a key store that is away", func(d *diagnosis) {
			d.judgeFence(fence.Fence{}, "here", true, seal.ErrAway, "")
		}, isFailed, "fence it cannot be read: the key store does not answer"},
		{"whole files", func(d *diagnosis) { d.judgeFiles("lake", blob.Checked{Blobs: 2, Read: 2}, nil, false) }, isGood, "lake all 2 files"},
		{"a lost file", func(d *diagnosis) {
			d.judgeFiles("lake", blob.Checked{Blobs: 2, Read: 1, Wrong: []string{"lake/main/trades/a.parquet is missing", "b has 0 bytes instead of 7"}}, context.DeadlineExceeded, true)
		}, isFailed, "2 of the 2 files are missing or damaged (1 were read): lake/main/trades/a.parquet is missing; b has 0 bytes instead of 7"},
		{"many damaged files", func(d *diagnosis) {
			d.judgeFiles("lake", blob.Checked{Blobs: 25, Read: 25, Wrong: slices.Repeat([]string{"x is missing"}, 25)}, nil, false)
		}, isFailed, strings.Repeat("x is missing; ", 20) + "and 5 more"},
		{"many files", func(d *diagnosis) {
			d.judgeFiles("lake", blob.Checked{Blobs: 9, Read: 4}, context.DeadlineExceeded, true)
		}, isWarning, "only 4 of the 9 files"},
		{"files in a bucket that is away", func(d *diagnosis) {
			d.judgeFiles("lake", blob.Checked{Blobs: 9}, fmt.Errorf("no route: %w", context.DeadlineExceeded), false)
		}, isFailed, "no route"},
		{"little room", func(d *diagnosis) { d.judgeDisk("/data", 5<<30, 100<<30) }, isWarning, "5.0 of 100.0 GiB"},
		{"no room", func(d *diagnosis) { d.judgeDisk("/data", 1<<20, 100<<30) }, isFailed, "a node that cannot write ends"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := &diagnosis{}
			c.judge(d)
			if !d.holds(c.want, c.text) {
				t.Errorf("no finding %s %q among %v", c.want, c.text, d.findings)
			}
			if c.want == isGood && len(d.findings) != 1 {
				t.Errorf("more than that it is well: %v", d.findings)
			}
		})
	}
}

// TestRecommendationsAreThoseOfDocker holds what doctor recommends against the brokers that docker/ starts.
func TestRecommendationsAreThoseOfDocker(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", "..", "docker", "kafka", "start.sh"))
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[string]string)
	for line := range strings.Lines(string(script)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			have[name] = value
		}
	}
	for _, r := range recommendations() {
		if _, set := have[r.name]; !set {
			t.Errorf("docker/kafka/start.sh does not set %s", r.name)
		}
	}
	if wrong := deviations(have); len(wrong) > 0 {
		t.Errorf("docker/kafka/start.sh: %s", strings.Join(wrong, "; "))
	}
}

func TestOffset(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	end := start.Add(time.Second)
	for _, c := range []struct {
		theirs time.Time
		want   time.Duration
	}{
		{start, 0}, {start.Add(time.Millisecond), 0}, {end, 0},
		{start.Add(-time.Second), -time.Second}, {end.Add(3 * time.Second), 3 * time.Second},
	} {
		if got := offset(start, c.theirs, end); got != c.want {
			t.Errorf("offset of %v is %v, not %v", c.theirs, got, c.want)
		}
	}
}

func TestLastButOne(t *testing.T) {
	at := func(s int64) record.Position { return record.Position{Sequence: s} }
	for _, c := range []struct {
		known []record.Position
		want  int64
	}{{nil, -1}, {[]record.Position{at(5)}, -1}, {[]record.Position{at(5), at(5)}, -1}, {[]record.Position{at(3), at(5), at(4)}, 4}, {[]record.Position{at(5), at(3)}, 3}} {
		if got := lastButOne(c.known).Sequence; got != c.want {
			t.Errorf("of %v: %d, not %d", c.known, got, c.want)
		}
	}
}

func TestNearestFolder(t *testing.T) {
	dir := t.TempDir()
	if got, err := nearestFolder(filepath.Join(dir, "not", "there")); err != nil || got != dir {
		t.Errorf("%q, %v, not %q", got, err, dir)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := nearestFolder(file); err == nil {
		t.Errorf("a file is the folder %q", got)
	}
	if free, total, err := diskSpace(dir); err != nil || free == 0 || total < free {
		t.Errorf("%d of %d bytes free, %v", free, total, err)
	}
}

// TestDiagnosisIsPrinted prints findings as lines and as JSON.
func TestDiagnosisIsPrinted(t *testing.T) {
	d := &diagnosis{}
	d.add("disk", isGood, "%s", "room")
	d.add("kafka", isFailed, "%s", "two\nlines")
	d.add("clock", isWarning, "off")
	var text, object bytes.Buffer
	if err := errors.Join(d.print(&text), d.printJSON(&object)); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 3 || lines[1] != "FAIL  kafka                two lines" {
		t.Errorf("printed as\n%s", &text)
	}
	var read struct {
		Healthy  bool
		Warnings int
		Findings []finding
	}
	if err := json.Unmarshal(object.Bytes(), &read); err != nil || read.Healthy || read.Warnings != 1 || len(read.Findings) != 3 || read.Findings[1].Verdict != isFailed {
		t.Errorf("as JSON %s, read as %+v, %v", &object, read, err)
	}
}

// TestABucketThatRefusesWrites: doctor writes to the buckets, because one that can only be read looks healthy otherwise.
func TestABucketThatRefusesWrites(t *testing.T) {
	folder := t.TempDir()
	s := &settings.Settings{}
	s.Stores.ArchiveURL = blob.URLOf(folder) + "?prefix=venue/"
	examine := func() *diagnosis {
		d := &diagnosis{}
		d.checkArchive(t.Context(), s)
		return d
	}
	if d := examine(); !d.holds(isGood, "takes writes") {
		t.Errorf("%v", d.findings)
	}
	venue := filepath.Join(folder, "venue")
	if left, err := os.ReadDir(venue); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.Remove(venue); err != nil {
		t.Fatal(err)
	}
	// A file in place of the folder refuses writes, also those of the superuser.
	if err := os.WriteFile(venue, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := examine(); !d.holds(isFailed, "refuses writes") {
		t.Errorf("%v", d.findings)
	}
	s.Stores.ArchiveURL = blob.URLOf(filepath.Join(folder, "none"))
	if d := examine(); !d.holds(isFailed, "none") {
		t.Errorf("%v", d.findings)
	}
}

// TestTheArchiveLacksTrimmedRecords: the venue starts without its archive, so only doctor tells before the records are needed.
func TestTheArchiveLacksTrimmedRecords(t *testing.T) {
	dir, _ := trimmedFolder(t, 300, 200)
	d := archivesOf(t, outputTo(io.Discard), "--data", dir)
	if len(d.findings) != 1 || !d.holds(isFailed, "archive trading the records before 200 were trimmed") {
		t.Errorf("%v", d.findings)
	}
}

// TestBrokersOfARunFile: the brokers may be those that a node of the data folder uses, which no setting names.
func TestBrokersOfARunFile(t *testing.T) {
	s, err := settings.Parse("doctor", []string{"--data", t.TempDir()}, settings.IO{Env: func(string) (string, bool) { return "", false }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const nobody = "127.0.0.1:1"
	writeRunFile(t, s.Data, local.RunFile{Kafka: []string{nobody}})
	d := &diagnosis{}
	d.checkLog(t.Context(), s, nil, nil)
	if !d.holds(isFailed, nobody) || d.holds(isFailed, "from ,") {
		t.Errorf("%v", d.findings)
	}
}

// TestDoctorOfAFollower: a follower has no fence, and the brokers that it reads are the venue's.
func TestDoctorOfAFollower(t *testing.T) {
	const brokers = "127.0.0.1:1"
	for follows, args := range map[string][]string{local.FollowsBrokers: nil, local.FollowsBrokers + ", named": {"--kafka-brokers", brokers}, local.FollowsArchive: nil} {
		s, err := settings.Parse("doctor", append([]string{"--data", t.TempDir()}, args...), outputTo(io.Discard), nil)
		if err != nil {
			t.Fatal(err)
		}
		follows, _, _ := strings.Cut(follows, ",")
		writeRunFile(t, s.Data, local.RunFile{Kafka: []string{brokers}, Follows: follows})
		d := &diagnosis{}
		d.checkFence(t.Context(), s, nil)
		d.checkBrokers(t.Context(), s, nil)
		if len(d.findings) != 2 || !d.holds(isNote, "only a venue has a fence") || d.holds(isNote, "of the venue that this node follows") != (follows == local.FollowsBrokers) {
			t.Errorf("%s %v: %v", follows, args, d.findings)
		}
	}
}

// TestDoctorOfAStoppedFollower: the checks say what the folder is when no node runs on it, and where the log of its node is. A folder
// on which a node of a venue started is the venue's.
func TestDoctorOfAStoppedFollower(t *testing.T) {
	for _, follows := range []string{local.FollowsBrokers, local.FollowsArchive, ""} {
		s, err := settings.Parse("doctor", []string{"--data", t.TempDir()}, outputTo(io.Discard), nil)
		if err != nil {
			t.Fatal(err)
		}
		folder := local.Folder{Dir: s.Data}
		if err := errors.Join(folder.SetFollows(local.FollowsArchive), folder.SetFollows(follows)); err != nil {
			t.Fatal(err)
		}
		d := &diagnosis{}
		d.checkLog(t.Context(), s, nil, nil)
		if named := d.holds(isFailed, "follows the brokers of a venue"); named != (follows == local.FollowsBrokers) || !named && !d.holds(isFailed, "no log in") {
			t.Errorf("%q: %v", follows, d.findings)
		}
		if follows == "" {
			continue
		}
		d = &diagnosis{}
		d.checkFence(t.Context(), s, nil)
		if !d.holds(isNote, "only a venue has a fence") {
			t.Errorf("%q: %v", follows, d.findings)
		}
	}
}
