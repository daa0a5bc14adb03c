package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// clusterNodes is the number of nodes of a Cluster, which is the number of replicas of a journal.
const clusterNodes = 3

// RecommendedTimings returns the broker settings that determine how soon a cluster notices a lost broker or controller.
// They equal those in docker/kafka.
func RecommendedTimings() map[string]string {
	return map[string]string{
		"broker.session.timeout.ms":                 "2000",
		"broker.heartbeat.interval.ms":              "300",
		"controller.quorum.fetch.timeout.ms":        "1000",
		"controller.quorum.election.timeout.ms":     "300",
		"controller.quorum.election.backoff.max.ms": "300",
		"replica.lag.time.max.ms":                   "5000",
		"replica.socket.timeout.ms":                 "3000",
	}
}

// ClusterConfig configures a Cluster.
type ClusterConfig struct {
	// Hosts are the addresses that the three nodes listen on. Nil means 127.0.0.1 for all. StartCluster chooses the
	// ports.
	Hosts []string
	// Wrap, if set, changes the command that starts a node, for example to run it in a network namespace. It MUST keep
	// the process id, so a wrapper has to use exec.
	Wrap func(node int, command []string) []string
	// Settings are additional broker properties.
	Settings map[string]string
	// Log receives progress.
	Log io.Writer
}

// Cluster is an Apache Kafka of three nodes with replication 3 and min ISR 2. Each node is broker and controller. The
// nodes are processes of the local Java, or containers if there is no Java. They can be killed, paused and started
// again. Node ids are 1, 2 and 3.
//
// A Cluster is not safe for concurrent use.
type Cluster struct {
	dir    string
	java   string  // the command; not used with docker
	libs   string  // folder of Kafka's libraries, in the container with docker
	docker *docker // nil if the nodes are processes
	wrap   func(node int, command []string) []string
	nodes  [clusterNodes]*clusterNode

	release func() // of the nodes' ports; nil before they are reserved
}

// clusterNode is one node of a Cluster.
type clusterNode struct {
	id            int
	address       string // advertised to clients
	configuration string
	output        string
	command       *exec.Cmd       // of the current or last process
	ended         <-chan struct{} // closed when that process has ended
}

// Fetch downloads Kafka's libraries if they are not in the user's cache yet, so that StartCluster needs no network. It
// fails without Java.
func Fetch(ctx context.Context, log io.Writer) error {
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("no Java: %w", err)
	}
	_, err := artifacts(ctx, log)
	return err
}

// Available returns nil if a Cluster can run here, with Java or with Docker. Otherwise the error says why neither
// works.
func Available(ctx context.Context) error {
	_, java := exec.LookPath("java")
	if java == nil {
		return nil
	}
	_, docker := findDocker(ctx, "")
	if docker == nil {
		return nil
	}
	return fmt.Errorf("no Java: %w; %w", java, docker)
}

// StartCluster starts three nodes and returns when they answer. The caller must close the cluster. If this process is
// killed, Linux ends the nodes that are processes.
func StartCluster(ctx context.Context, config ClusterConfig) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if config.Log == nil {
		config.Log = io.Discard
	}
	if config.Hosts == nil {
		config.Hosts = slices.Repeat([]string{"127.0.0.1"}, clusterNodes)
	}
	if len(config.Hosts) != clusterNodes {
		return nil, fmt.Errorf("kafkatest: %d hosts for %d nodes", len(config.Hosts), clusterNodes)
	}
	java, err := exec.LookPath("java")
	libs := imageLibraries
	switch {
	case err == nil:
		if libs, err = artifacts(ctx, config.Log); err != nil {
			return nil, err
		}
	case config.Wrap != nil:
		return nil, fmt.Errorf("no Java, which nodes with a wrapped command need: %w", err)
	default:
		if err := Available(ctx); err != nil {
			return nil, err
		}
		java = ""
		fmt.Fprintf(config.Log, "kafkatest: no Java here, so the nodes are containers of %s\n", image())
	}
	// Ports are reserved on 127.0.0.1 and on Linux only, so elsewhere another process may take one before Kafka binds it.
	for attempt := 1; ; attempt++ {
		c, err := startCluster(ctx, config, java, libs)
		if err == nil || attempt == 3 || !errors.Is(err, errEnded) {
			return c, err
		}
		fmt.Fprintf(config.Log, "kafkatest: trying again: %v\n", err)
	}
}

func startCluster(ctx context.Context, config ClusterConfig, java, libs string) (_ *Cluster, err error) {
	c := &Cluster{java: java, libs: libs, wrap: config.Wrap}
	if c.wrap == nil {
		c.wrap = func(_ int, command []string) []string { return command }
	}
	if c.dir, err = os.MkdirTemp("", "perpetua-kafka-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if java == "" {
		if c.docker, err = findDocker(ctx, c.dir); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, "log4j2.xml"), logging("org.apache.kafka.controller", "state.change.logger"), 0o644); err != nil {
		return nil, err
	}
	if err := c.configure(ctx, config); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if err := c.format(ctx, n); err != nil {
			return nil, err
		}
		if err := c.Start(n.id); err != nil {
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if err := (&Kafka{brokers: []string{n.address}}).await(ctx, n.ended); err != nil {
			text, _ := os.ReadFile(n.output)
			return nil, fmt.Errorf("start node %d of Kafka: %w\n%s", n.id, err, lastLines(string(text), 20))
		}
	}
	return c, nil
}

// configure reserves the ports until Close, as nodes are restarted on them, and writes the configuration of each node.
func (c *Cluster) configure(ctx context.Context, config ClusterConfig) error {
	ports, release, err := reservePorts(ctx, 2*clusterNodes)
	if err != nil {
		return err
	}
	c.release = release
	at := func(node, which int) string {
		_, port, _ := strings.Cut(ports[2*node+which], ":")
		return config.Hosts[node] + ":" + port
	}
	var voters []string
	for i := range c.nodes {
		voters = append(voters, strconv.Itoa(i+1)+"@"+at(i, 1))
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(config.Settings)) {
		more = append(more, name+"="+config.Settings[name])
	}
	for i := range c.nodes {
		dir := filepath.Join(c.dir, strconv.Itoa(i+1))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		n := &clusterNode{id: i + 1, address: at(i, 0), configuration: filepath.Join(dir, "server.properties"), output: filepath.Join(dir, "output")}
		text := nodeProperties(nodeSettings{id: n.id, bind: n.address, advertised: n.address, controller: at(i, 1),
			voters: strings.Join(voters, ","), replicas: clusterNodes, minISR: clusterNodes - 1, dir: filepath.Join(dir, "log"), more: more})
		if err := os.WriteFile(n.configuration, []byte(text), 0o644); err != nil {
			return err
		}
		c.nodes[i] = n
	}
	return nil
}

// format prepares the folder of a node. It needs no network.
func (c *Cluster) format(ctx context.Context, n *clusterNode) error {
	line := slices.Concat(c.javaFor(n), []string{"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, c.common(),
		[]string{formatClass, "format", "-t", clusterID, "-c", n.configuration})
	if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("format the folder of node %d: %w\n%s", n.id, err, out)
	}
	return nil
}

// javaFor returns the beginning of a command line that runs Java for a node.
func (c *Cluster) javaFor(n *clusterNode) []string {
	if c.docker != nil {
		return c.docker.java(c.docker.name(n.id))
	}
	return []string{c.java}
}

func (c *Cluster) common() []string {
	return []string{"-cp", filepath.Join(c.libs, "*"), "-Dlog4j2.configurationFile=" + filepath.Join(c.dir, "log4j2.xml")}
}

// Start starts a node that is not running. It does not wait until the node answers.
func (c *Cluster) Start(node int) error {
	n := c.nodes[node-1]
	if n.running() {
		return fmt.Errorf("kafkatest: node %d runs", node)
	}
	output, err := os.OpenFile(n.output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer output.Close()
	line := slices.Concat(c.javaFor(n), serverOptions(), c.common(), []string{serverClass, n.configuration})
	line = c.wrap(node, line)
	command := exec.Command(line[0], line[1:]...)
	command.Stdout, command.Stderr = output, output
	ended, err := startWithParent(command)
	if err != nil {
		return fmt.Errorf("start node %d of Kafka: %w", node, err)
	}
	n.command, n.ended = command, ended
	return nil
}

// Kill ends a node with SIGKILL and waits until its process has ended.
func (c *Cluster) Kill(node int) error {
	n := c.nodes[node-1]
	if !n.running() {
		return nil
	}
	if c.docker != nil { // the docker command ends with its container
		if err := c.docker.do("kill", node); err != nil && n.running() {
			return errors.Join(err, n.command.Process.Kill())
		}
	} else if err := n.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill node %d of Kafka: %w", node, err)
	}
	<-n.ended
	return nil
}

// Pause stops a node without ending it: its connections stay open and it answers nothing.
func (c *Cluster) Pause(node int) error { return c.signal(node, syscall.SIGSTOP, "pause") }

// Resume continues a paused node.
func (c *Cluster) Resume(node int) error { return c.signal(node, syscall.SIGCONT, "unpause") }

// signal sends a signal to the process of a node, or runs a docker command on its container.
func (c *Cluster) signal(node int, s syscall.Signal, command string) error {
	n := c.nodes[node-1]
	if !n.running() {
		return fmt.Errorf("kafkatest: node %d does not run", node)
	}
	if c.docker != nil {
		return c.docker.do(command, node)
	}
	if err := n.command.Process.Signal(s); err != nil {
		return fmt.Errorf("kafkatest: %v to node %d: %w", s, node, err)
	}
	return nil
}

// running reports whether the node's process exists, paused or not.
func (n *clusterNode) running() bool {
	if n.command == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// Running reports whether the process of a node exists, paused or not.
func (c *Cluster) Running(node int) bool { return c.nodes[node-1].running() }

// Brokers returns the addresses of all nodes, host:port, in the order of their
// ids.
func (c *Cluster) Brokers() []string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.address)
	}
	return all
}

// Output returns the path of a node's log output, which shows elections and fenced brokers. Close removes the file.
func (c *Cluster) Output(node int) string { return c.nodes[node-1].output }

// Close kills the nodes and removes their files.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.nodes {
		if n != nil {
			errs = append(errs, c.Kill(n.id))
		}
	}
	if c.release != nil {
		c.release()
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
