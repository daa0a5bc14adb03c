package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// kafkaVersion is the newest release with all artifacts published.
const kafkaVersion = "4.3.1"

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>perpetua</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + kafkaVersion + `</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version></dependency>
  </dependencies>
</project>
`

const loggingForm = `<Configuration status="error"><Appenders><Console name="out"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
<Loggers>@<Root level="warn"><AppenderRef ref="out"/></Root></Loggers></Configuration>
`

// logging returns a log4j configuration that prints warnings, and information of the named loggers.
func logging(informative ...string) []byte {
	var loggers strings.Builder
	for _, name := range informative {
		fmt.Fprintf(&loggers, `<Logger name="%s" level="info"/>`, name)
	}
	return []byte(strings.Replace(loggingForm, "@", loggers.String(), 1))
}

// startJava runs Kafka from its Maven artifacts with the local Java.
func startJava(ctx context.Context, log io.Writer) (*Kafka, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("no Java: %w", err)
	}
	libraries, err := artifacts(ctx, log)
	if err != nil {
		return nil, err
	}
	// The ports are chosen before Kafka binds them, so another process may take one.
	for attempt := 1; ; attempt++ {
		k, err := runJava(ctx, java, libraries)
		if err == nil || attempt == 3 || !errors.Is(err, errEnded) {
			return k, err
		}
		fmt.Fprintf(log, "kafkatest: trying again: %v\n", err)
	}
}

// artifacts returns the folder of Kafka's libraries, after fetching them with Maven if needed.
func artifacts(ctx context.Context, log io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w", err)
	}
	folder := filepath.Join(cache, "perpetua", "kafka-"+kafkaVersion)
	libraries, done := filepath.Join(folder, "lib"), filepath.Join(folder, "complete")
	if _, err := os.Stat(done); err == nil {
		return libraries, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	lock, err := broker.WaitFolder(ctx, folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Unlock() }()
	if _, err := os.Stat(done); err == nil {
		return libraries, nil // another process has fetched them
	}
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("no Maven, which fetches Kafka %s for the local Java: %w", kafkaVersion, err)
	}
	fmt.Fprintf(log, "kafkatest: fetching Kafka %s with Maven, once, into %s\n", kafkaVersion, folder)
	file := filepath.Join(folder, "pom.xml")
	if err := os.WriteFile(file, []byte(pom), 0o644); err != nil {
		return "", err
	}
	for attempt := 1; ; attempt++ {
		arguments := []string{"-B", "-q", "-f", file, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + libraries}
		if attempt > 1 {
			arguments = append(arguments, "-U") // also retry artifacts that Maven remembers as not found
		}
		out, err := exec.CommandContext(ctx, maven, arguments...).CombinedOutput()
		if err == nil {
			return libraries, os.WriteFile(done, nil, 0o644)
		}
		if attempt == 3 || ctx.Err() != nil {
			return "", fmt.Errorf("fetch Kafka %s with Maven: %w\n%s", kafkaVersion, err, out)
		}
		fmt.Fprintf(log, "kafkatest: fetching again what is missing: %v\n", err) // Maven keeps the files that it has
	}
}

func runJava(ctx context.Context, java, libraries string) (_ *Kafka, err error) {
	dir, err := os.MkdirTemp("", "perpetua-kafka-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	ports, release, err := reservePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	k := &Kafka{Origin: "Apache Kafka " + kafkaVersion + " on the local Java", brokers: ports[:1]}
	configuration, log4j := filepath.Join(dir, "server.properties"), filepath.Join(dir, "log4j2.xml")
	err = errors.Join(
		os.WriteFile(configuration, []byte(properties(ports[0], ports[0], ports[1], filepath.Join(dir, "log"))), 0o644),
		os.WriteFile(log4j, logging(), 0o644))
	if err != nil {
		return nil, err
	}
	common := []string{"-cp", filepath.Join(libraries, "*"), "-Dlog4j2.configurationFile=" + log4j}
	format := append([]string{"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, common...)
	format = append(format, formatClass, "format", "-t", clusterID, "-c", configuration)
	if out, err := exec.CommandContext(ctx, java, format...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format Kafka's folder: %w\n%s", err, out)
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	// Kafka outlives the context that it was started with; Close ends it.
	command := exec.CommandContext(context.WithoutCancel(ctx), java, append(append(serverOptions(), common...), serverClass, configuration)...)
	command.Stdout, command.Stderr = output, output
	ended, err := startWithParent(command)
	if err != nil {
		return nil, err
	}
	kill := func() error {
		err := command.Process.Kill()
		<-ended
		release()
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := k.await(ctx, ended); err != nil {
		text, _ := os.ReadFile(output.Name())
		return nil, errors.Join(fmt.Errorf("start Kafka: %w\n%s", err, lastLines(string(text), 20)), kill())
	}
	k.stop = kill
	return k, nil
}

// startWithParent starts the command in a separate process group, so that a terminal's Ctrl-C does not reach it and
// Close ends it. On Linux the kernel also kills it when this process ends. The channel is closed when the command has
// ended.
func startWithParent(command *exec.Cmd) (<-chan struct{}, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(command.SysProcAttr)
	ended, started := make(chan struct{}), make(chan error)
	go func() {
		// The kernel sends the signal when the thread that started the child ends, not only when the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // it is killed in the end, so its exit code says nothing
			close(ended)
		}
	}()
	return ended, <-started
}

// reservePorts returns n addresses of ReservePort, and a function that releases them all.
func reservePorts(ctx context.Context, n int) (addresses []string, release func(), err error) {
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	for range n {
		address, one, err := ReservePort(ctx)
		if err != nil {
			release()
			return nil, nil, err
		}
		addresses, releases = append(addresses, address), append(releases, one)
	}
	return addresses, release, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
