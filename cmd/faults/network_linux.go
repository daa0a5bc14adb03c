package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// insideVariable is set for a process that runs in its own network namespace and may change it.
const insideVariable = "PERPETUA_FAULTS_INSIDE"

// inNetwork runs the program in a network where packets to and from a broker or engine can be dropped. To get one, the program
// starts itself again in a new network namespace, so it never changes the machine's network. Without namespaces it runs on
// loopback and prints which faults are left out.
func inNetwork(ctx context.Context, o options, args []string, out, errs io.Writer) (int, error) {
	if os.Getenv(insideVariable) != "" {
		if err := os.Unsetenv(insideVariable); err != nil {
			return exitSetup, err
		}
		n, err := newBridge(ctx)
		if err != nil {
			return exitSetup, fmt.Errorf("the network: %w", err)
		}
		defer n.close()
		return run(ctx, o, n, out, errs)
	}
	if missing := noNamespace(o); missing != "" {
		fmt.Fprintf(out, "faults that drop packets are left out: %s\n", missing)
		return run(ctx, o, nil, out, errs)
	}
	if err := prepare(ctx, errs); err != nil {
		return exitSetup, err
	}
	return runInside(ctx, args, out, errs)
}

// runInside starts the program again in a new network namespace and returns its exit code.
func runInside(ctx context.Context, args []string, out, errs io.Writer) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return exitSetup, err
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Env = append(os.Environ(), insideVariable+"=1")
	child.Stdout, child.Stderr = out, errs
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET}
	p, err := start(child)
	if err != nil {
		return exitSetup, err
	}
	<-p.ended
	if code := child.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return exitSetup, fmt.Errorf("ended by %v", child.ProcessState)
}

// noNamespace returns the reason why no namespace can be created, or "".
func noNamespace(o options) string {
	if o.plain {
		return "-plain"
	}
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "without Java, brokers are containers, which have no network namespace of this program"
	}
	for _, tool := range []string{"ip", "bridge", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "there is no command " + tool
		}
	}
	// A kernel or container may refuse even root, so this tries the two kinds of devices that the network needs.
	try := exec.Command("sh", "-c", "ip link add faults0 type bridge && ip link add host1 type veth peer name eth9")
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if output, err := try.CombinedOutput(); err != nil {
		return fmt.Sprintf("this machine makes no network namespace with a bridge: %v %s", err, strings.TrimSpace(string(output)))
	}
	return ""
}

// bridge is a network in this process's namespace: a bridge with a port for each host. Every host has its own namespace. A
// disabled port drops every packet without an error to either side.
type bridge struct {
	holders map[int]*process // keep the namespaces, by the host's number
}

func (b *bridge) host(number int) string { return fmt.Sprintf("10.77.0.%d", number) }
func hardware(number int) string         { return fmt.Sprintf("02:00:00:00:00:%02x", number) }
func port(number int) string             { return "host" + strconv.Itoa(number) }

// hosts lists the hosts but the gateway.
func hosts() []int {
	all := []int{1, 2, 3}
	for i := range engines {
		all = append(all, firstEngine+i)
	}
	return all
}

// newBridge makes the network in this process's namespace.
func newBridge(ctx context.Context) (_ *bridge, err error) {
	b := &bridge{holders: make(map[int]*process)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if err := shell(ctx,
		"ip link set lo up",
		"ip link add faults0 type bridge",
		"ip link set faults0 address "+hardware(gateway)+" up",
		"ip addr add "+b.host(gateway)+"/24 dev faults0",
	); err != nil {
		return nil, err
	}
	for _, number := range hosts() {
		if err := b.connect(ctx, number); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// connect makes a host's namespace and connects it with the bridge.
func (b *bridge) connect(ctx context.Context, number int) error {
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET}
	p, err := start(holder)
	if err != nil {
		return err
	}
	b.holders[number] = p
	pid := holder.Process.Pid
	in := fmt.Sprintf("nsenter -t %d -n ", pid)
	lines := []string{
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", port(number), pid),
		"ip link set " + port(number) + " master faults0 up",
		in + "ip link set lo up",
		in + "ip link set eth0 address " + hardware(number) + " up",
		in + "ip addr add " + b.host(number) + "/24 dev eth0",
		// Fixed neighbor entries keep ARP out of the way: without an answer to ARP, a connection would fail with "no route
		// to host" after three seconds. Behind a router only a timeout shows that a host is cut off.
		fmt.Sprintf("ip neigh add %s lladdr %s dev faults0 nud permanent", b.host(number), hardware(number)),
	}
	for _, other := range append(hosts(), gateway) {
		if other != number {
			lines = append(lines, in+fmt.Sprintf("ip neigh add %s lladdr %s dev eth0 nud permanent", b.host(other), hardware(other)))
		}
	}
	return shell(ctx, lines...)
}

// wrap runs a command in a host's namespace. nsenter executes it, so the process id stays.
func (b *bridge) wrap(number int, command []string) []string {
	return append([]string{"nsenter", "-t", strconv.Itoa(b.holders[number].command.Process.Pid), "-n", "--"}, command...)
}

func (b *bridge) cut(number int) error {
	return shell(context.Background(), "bridge link set dev "+port(number)+" state 0")
}

func (b *bridge) join(number int) error {
	return shell(context.Background(), "bridge link set dev "+port(number)+" state 3")
}

func (b *bridge) close() {
	for _, h := range b.holders {
		h.kill()
	}
}

// shell runs command lines without quoting, up to the first that fails.
func shell(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w %s", line, err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

// prepare downloads Kafka's libraries and Postgres, which a process inside the namespace cannot reach.
func prepare(ctx context.Context, errs io.Writer) error {
	if err := kafkatest.Fetch(ctx, errs); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "perpetua-faults-")
	if err != nil {
		return err
	}
	db, err := startPostgres(ctx, dir)
	if err == nil {
		err = db.Close()
	}
	return errors.Join(err, os.RemoveAll(dir))
}
